package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	official "github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"ranktree/internal/wire"
)

// waiting are jobs that go into one message, and who waits for it.
type waiting struct {
	lane *lane
	jobs [][]byte
	size int
	// Jobs without an id of the caller's may share a message with others.
	id   string
	done chan struct{}
	// Once it is done.
	token string
	err   error
}

// finish is called once, by whoever took it out of its lane.
func (w *waiting) finish(token string, err error) {
	w.token, w.err = token, err
	close(w.done)
	w.lane.publisher.leave()
}

// lane has the messages of one shard, one after the other.
type lane struct {
	publisher *Publisher
	shard     int

	mutex     sync.Mutex
	waiting   []*waiting
	isRunning bool
}

func (l *lane) put(one *waiting) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.waiting = append(l.waiting, one)
	if !l.isRunning {
		l.isRunning = true
		go l.run()
	}
}

// withdraw takes jobs out of the lane, unless they are on their way: those may be stored.
func (l *lane) withdraw(one *waiting, why error) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	failed := &PublishError{MessageID: one.id, MayBeStored: true, err: why}
	if at := slices.Index(l.waiting, one); at >= 0 {
		l.waiting = slices.Concat(l.waiting[:at], l.waiting[at+1:])
		failed = &PublishError{MessageID: one.id, err: why}
		one.finish("", failed)
	}
	return failed
}

func (l *lane) run() {
	for {
		message, id := l.take()
		if message == nil {
			return
		}
		var jobs [][]byte
		for _, one := range message {
			jobs = append(jobs, one.jobs...)
		}
		payload := append(append([]byte{'['}, bytes.Join(jobs, []byte{','})...), ']')
		sequence, failed := l.store(payload, id)
		for _, one := range message {
			if failed != nil {
				// Not the id of a shared message: the server would take one of its jobs, published again alone,
				// for the whole.
				one.finish("", &PublishError{MessageID: one.id, MayBeStored: failed.MayBeStored, err: failed.err})
			} else {
				one.finish(fmt.Sprintf("%d:%d", l.shard, sequence), nil)
			}
		}
	}
}

// take is the next message with its id: the first that waits, and those after it that fit into the same
// array.
func (l *lane) take() ([]*waiting, string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	count, jobs, size := 0, 0, 0
	for _, one := range l.waiting {
		isAlone := one.id != ""
		if count > 0 && (isAlone || jobs+len(one.jobs) > jobsMax || size+one.size > bytesMax) {
			break
		}
		count, jobs, size = count+1, jobs+len(one.jobs), size+one.size
		if isAlone {
			break
		}
	}
	if count == 0 {
		l.isRunning, l.waiting = false, nil
		return nil, ""
	}
	taken := l.waiting[:count:count]
	l.waiting = l.waiting[count:]
	id := taken[0].id
	if id == "" {
		id = nuid.Next()
	}
	return taken, id
}

var errNotConnected = errors.New("not connected to NATS: nothing was sent")

// isWaiting is whether a connection was lost and is being made anew.
func isWaiting(connection *official.Conn) bool {
	return !connection.IsConnected() && !connection.IsClosed()
}

type apiError struct {
	Code        int    `json:"code"`
	Description string `json:"description"`
}

// store publishes until the server acknowledges, always under the same id, and returns the sequence.
func (l *lane) store(payload []byte, id string) (uint64, *PublishError) {
	p := l.publisher
	subject := fmt.Sprintf("%s.jobs.%d", p.prefix, l.shard)
	stream := fmt.Sprintf("%s_JOBS_%d", strings.ToUpper(p.prefix), l.shard)
	end := time.Now().Add(p.giveUpAfter)
	mayBeStored := false
	for number := 0; ; number++ {
		sequence, known, err := l.once(subject, stream, payload, id)
		if err == nil {
			return sequence, nil
		}
		mayBeStored = mayBeStored || known == unknown
		failed := &PublishError{MessageID: id, MayBeStored: mayBeStored, err: fmt.Errorf("%s: %w", subject, err)}
		pause := wire.Pause(number)
		if known == final || time.Now().Add(pause).After(end) {
			return 0, failed
		}
		time.Sleep(pause)
	}
}

// What is known of a message that was not acknowledged.
type fate int

const (
	// It may be stored.
	unknown fate = iota
	// It is not stored, and may be later.
	refused
	// It is not stored, and cannot be.
	final
)

func (l *lane) once(subject, stream string, payload []byte, id string) (uint64, fate, error) {
	message := official.NewMsg(subject)
	message.Data = payload
	message.Header.Set("Nats-Msg-Id", id)
	message.Header.Set("Nats-Expected-Stream", stream)
	// What is sent without a connection waits in memory, once for each time that it is sent, and goes out when
	// there is one again: maybe after the server has forgotten the id.
	if isWaiting(l.publisher.connection) {
		return 0, refused, errNotConnected
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.publisher.ackTimeout)
	defer cancel()
	answer, err := l.publisher.connection.RequestMsgWithContext(ctx, message)
	switch {
	case errors.Is(err, official.ErrNoResponders):
		return 0, refused, fmt.Errorf("there is no stream %s; a node with the same prefix creates it", stream)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, official.ErrTimeout):
		return 0, unknown, fmt.Errorf("not acknowledged within %s", l.publisher.ackTimeout)
	case errors.Is(err, official.ErrReconnectBufExceeded):
		return 0, refused, err
	case err != nil:
		return 0, final, err
	}
	var ack struct {
		Stream string    `json:"stream"`
		Seq    uint64    `json:"seq"`
		Error  *apiError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, unknown, fmt.Errorf("the acknowledgement cannot be read: %w", err)
	}
	if ack.Error != nil {
		// A full stream, and one without a leader, have a status from 500 on: they may come back.
		if ack.Error.Code >= 500 {
			return 0, refused, errors.New(ack.Error.Description)
		}
		return 0, final, errors.New(ack.Error.Description)
	}
	return ack.Seq, refused, nil
}
