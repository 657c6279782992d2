package ranktree

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ranktree/internal/wire"
)

const (
	// The service says something every 10 seconds.
	silence = 30 * time.Second
	// Until the service says when to connect again.
	reconnect = 2 * time.Second
)

// LiveUpdate is a watched board after an event.
type LiveUpdate struct {
	// All that is watched: the top, and the members in the order in which they were asked for.
	LiveState
	// What has changed since the update before; nil if the state is another as a whole, as the first is.
	Changes *LiveChanges
}

// Live watches the top of a board, and members wherever they are. The first update has all of it, and
// each further one what has changed as well. The loop ends with the context, and with an error that
// the service told: the board was dropped, the instance is not kept, the token was taken back.
//
// A connection that is lost, or silent for half a minute, is made anew until the context ends, and goes on
// from the last event: nothing is missed. Only the first one fails after as many tries as a read.
func (c *Client) Live(ctx context.Context, board string, query *LiveQuery) iter.Seq2[*LiveUpdate, error] {
	if query == nil {
		query = &LiveQuery{}
	}
	return func(yield func(*LiveUpdate, error) bool) {
		w := &watch{
			client:  c,
			request: request{method: http.MethodGet, route: path("boards", board) + "/live", query: encodeQuery(query)},
			asked:   slices.Clone(query.Members),
			retry:   reconnect,
		}
		w.over = *c.http
		// The answer has no end.
		w.over.Timeout = 0
		for failures := 0; ; failures++ {
			before := w.last
			err := w.follow(ctx, func(update *LiveUpdate) bool { return yield(update, nil) })
			if errors.Is(err, errStopped) {
				return
			}
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if w.last != before {
				failures = 0
			}
			pause, again := w.pause(err, failures)
			if !again {
				yield(nil, err)
				return
			}
			if err := wire.Sleep(ctx, pause); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

var errStopped = errors.New("the loop was left")

// watch is a board that is watched over one connection after the other.
type watch struct {
	client  *Client
	over    http.Client
	request request
	asked   []string
	// The id of the last event, and what is known since.
	last  string
	state LiveState
	retry time.Duration
	ended *ProblemError
}

// pause is how long to wait after an error, and whether to try again at all.
func (w *watch) pause(err error, failures int) (time.Duration, bool) {
	var problem *ProblemError
	isProblem := errors.As(err, &problem)
	if w.ended != nil {
		return 0, false
	}
	if w.last == "" {
		again := !isProblem || w.request.mayRepeat(problem)
		return wire.Pause(failures), again && failures < w.client.retries
	}
	// All who watched a node that is gone do not come back at the same moment.
	pause := w.retry/2 + rand.N(w.retry/2+1)
	if isProblem {
		pause = max(pause, problem.RetryAfter)
		return pause, problem.Status >= 500
	}
	return pause, true
}

// follow reads the events of one connection. It does not return without an error.
func (w *watch) follow(ctx context.Context, yield func(*LiveUpdate) bool) error {
	c := w.client
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(c.timeout+waits(w.request.query), cancel)
	defer timer.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if w.last != "" {
		header["Last-Event-ID"] = []string{w.last}
	}
	response, err := c.open(ctx, &w.over, &w.request, header)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return c.noAnswer(&w.request, false, err)
		}
		return NewProblemError(response.StatusCode, body, response.Header.Get("Retry-After"))
	}
	reader := bufio.NewReader(response.Body)
	var kind, id, data string
	for {
		timer.Reset(c.silence)
		line, err := reader.ReadString('\n')
		if err != nil {
			return c.noAnswer(&w.request, false, err)
		}
		// What a loop does with an update is none of the connection's silence.
		timer.Stop()
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			update, err := w.event(kind, data)
			if err != nil {
				return err
			}
			if id != "" {
				w.last = id
			}
			kind, data = "", ""
			if update != nil && !yield(update) {
				return errStopped
			}
		case name == "event":
			kind = value
		case name == "id":
			id = value
		case name == "data":
			data += value
		case name == "retry":
			if number, err := strconv.ParseUint(value, 10, 20); err == nil {
				w.retry = time.Duration(number) * time.Millisecond
			}
		}
	}
}

func (w *watch) event(kind, data string) (*LiveUpdate, error) {
	var changes *LiveChanges
	switch kind {
	case "state":
		var state LiveState
		if err := json.Unmarshal([]byte(data), &state); err != nil {
			return nil, fmt.Errorf("the event %s cannot be read: %w", kind, err)
		}
		w.arrange(state.Members)
		w.state = state
	case "changes":
		changes = new(LiveChanges)
		if err := json.Unmarshal([]byte(data), changes); err != nil {
			return nil, fmt.Errorf("the event %s cannot be read: %w", kind, err)
		}
		w.apply(changes)
	case "end":
		var problem struct {
			Status int `json:"status"`
		}
		_ = json.Unmarshal([]byte(data), &problem)
		w.ended = NewProblemError(problem.Status, []byte(data), "")
		return nil, w.ended
	default:
		// One of a later version, or a comment.
		return nil, nil
	}
	return &LiveUpdate{LiveState: w.state, Changes: changes}, nil
}

// apply makes a new state, so that the one that the caller has stays as it is.
func (w *watch) apply(changes *LiveChanges) {
	byPlace := func(a, b ListedEntry) int { return cmp.Compare(a.Position, b.Position) }
	entries := replaced(w.state.Entries, changes.Entries, changes.Left)
	slices.SortFunc(entries, byPlace)
	members := replaced(w.state.Members, changes.Members, changes.NotFound)
	known := map[string]bool{}
	for _, one := range members {
		known[one.Member] = true
	}
	missing := slices.DeleteFunc(slices.Clone(w.asked), func(member string) bool { return known[member] })
	w.arrange(members)
	w.state = LiveState{
		Board:    changes.Board,
		Window:   changes.Window,
		Total:    changes.Total,
		Entries:  entries,
		Members:  members,
		NotFound: missing,
		AsOf:     changes.AsOf,
		Stale:    changes.Stale,
	}
}

// arrange puts members into the order in which they were asked for.
func (w *watch) arrange(members []ListedEntry) {
	place := func(one ListedEntry) int { return slices.Index(w.asked, one.Member) }
	slices.SortFunc(members, func(a, b ListedEntry) int { return cmp.Compare(place(a), place(b)) })
}

// replaced puts changed entries in the place of those of the same member, and takes away those who are gone.
func replaced(entries, changed []ListedEntry, gone []string) []ListedEntry {
	is := map[string]bool{}
	for _, member := range gone {
		is[member] = true
	}
	for _, one := range changed {
		is[one.Member] = true
	}
	rest := slices.DeleteFunc(slices.Clone(entries), func(one ListedEntry) bool { return is[one.Member] })
	return append(rest, changed...)
}
