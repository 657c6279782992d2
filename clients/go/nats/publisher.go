// Package nats publishes jobs to NATS, without asking a node.
//
// A message is an array of jobs of one shard. A publisher has one message of each shard on its way at a
// time: jobs that come meanwhile make the next array, and a message that is sent again cannot overtake
// another. Each message has a Nats-Msg-Id, which it keeps when it is sent again, so that the server
// stores it once.
package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	official "github.com/nats-io/nats.go"

	"ranktree"
	"ranktree/internal/wire"
)

const (
	// Fixed, because ids of a PublishMany follow from where it is cut into messages.
	jobsMax = 1000
	// Every jobs stream takes messages of 128 KiB; the rest is for the headers.
	bytesMax = 127 * 1024
	idMax    = 512
	// The server forgets an id after two minutes, unless the operator set another time on the stream.
	giveUpMax = 110 * time.Second
)

// Publisher publishes jobs to the streams that nodes read. Many goroutines may use one at a time.
type Publisher struct {
	connection  *official.Conn
	isOwn       bool
	shards      int
	prefix      string
	ackTimeout  time.Duration
	giveUpAfter time.Duration
	maxWaiting  int
	more        []official.Option
	room        chan struct{}
	lanes       []*lane

	mutex    sync.Mutex
	isClosed bool
	users    sync.WaitGroup
}

// Option is an option of [Connect] and [New].
type Option func(*Publisher)

// WithShards is how many shards there are. Without it the publisher asks the first jobs stream, for which
// its user needs the permission to publish to $JS.API.STREAM.INFO.*.
func WithShards(shards int) Option { return func(p *Publisher) { p.shards = shards } }

// WithPrefix is the nodes' --prefix, ranktree unless it is given.
func WithPrefix(prefix string) Option { return func(p *Publisher) { p.prefix = prefix } }

// WithAckTimeout is when a message that was not acknowledged is sent again: after 5 seconds, unless it
// is given.
func WithAckTimeout(after time.Duration) Option { return func(p *Publisher) { p.ackTimeout = after } }

// WithGiveUpAfter is how long the publisher sends a message again: a minute unless it is given, and 110
// seconds at most.
func WithGiveUpAfter(after time.Duration) Option { return func(p *Publisher) { p.giveUpAfter = after } }

// WithMaxWaiting is how many jobs and arrays wait to be stored, 10,000 unless it is given; further calls
// wait for room.
func WithMaxWaiting(count int) Option { return func(p *Publisher) { p.maxWaiting = count } }

// WithConnection has options of the connection that [Connect] makes, such as users and certificates.
func WithConnection(options ...official.Option) Option {
	return func(p *Publisher) { p.more = append(p.more, options...) }
}

// Connect connects to NATS, at one address or several joined by commas. The connection is made anew
// whenever it is lost, and closed with the publisher. The first one is not tried again.
func Connect(ctx context.Context, servers string, options ...Option) (*Publisher, error) {
	asked := Publisher{}
	for _, option := range options {
		option(&asked)
	}
	how := []official.Option{official.MaxReconnects(-1)}
	if until, has := ctx.Deadline(); has {
		how = append(how, official.Timeout(time.Until(until)))
	}
	connection, err := official.Connect(servers, append(how, asked.more...)...)
	if err != nil {
		return nil, ranktree.NewConnectionError("NATS does not answer", false, err)
	}
	p, err := New(ctx, connection, options...)
	if err != nil {
		connection.Close()
		return nil, err
	}
	p.isOwn = true
	return p, nil
}

// New uses a connection of your own, which is not closed with the publisher.
func New(ctx context.Context, connection *official.Conn, options ...Option) (*Publisher, error) {
	p := &Publisher{
		connection:  connection,
		prefix:      "ranktree",
		ackTimeout:  5 * time.Second,
		giveUpAfter: time.Minute,
		maxWaiting:  10_000,
	}
	for _, option := range options {
		option(p)
	}
	if p.giveUpAfter > giveUpMax {
		told := "a message is given up after %s at most, because the server forgets ids; got %s"
		return nil, fmt.Errorf(told, giveUpMax, p.giveUpAfter)
	}
	if p.maxWaiting < 1 {
		return nil, fmt.Errorf("at least 1 waits; got WithMaxWaiting(%d)", p.maxWaiting)
	}
	if p.shards == 0 {
		var err error
		if p.shards, err = findShards(ctx, connection, p.prefix); err != nil {
			return nil, err
		}
	}
	if _, err := ranktree.ShardOf("", p.shards); err != nil {
		return nil, err
	}
	p.room = make(chan struct{}, p.maxWaiting)
	for shard := range p.shards {
		p.lanes = append(p.lanes, &lane{publisher: p, shard: shard})
	}
	return p, nil
}

// Shards is how many shards there are.
func (p *Publisher) Shards() int { return p.shards }

// ErrClosed says that the publisher is closed.
var ErrClosed = errors.New("the publisher is closed")

// Close waits for what is on its way, and closes the connection if [Connect] made it. If the context
// ends before, it does not wait any longer.
func (p *Publisher) Close(ctx context.Context) error {
	p.mutex.Lock()
	p.isClosed = true
	p.mutex.Unlock()
	done := make(chan struct{})
	go func() {
		p.users.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if p.isOwn {
		p.connection.Close()
	}
	return err
}

// PublishOption is an option of a publish.
type PublishOption func(*publishOptions)

type publishOptions struct{ id string }

// MessageID has the job sent in a message of its own under this id. That switches batching off: the next
// message of its shard waits until this one is acknowledged. You may publish it again under the same id
// then, also after your process was killed: within two minutes it counts once. For many jobs give one id
// to a PublishMany, whose messages' ids follow from it, or give the jobs a Version.
func MessageID(id string) PublishOption { return func(o *publishOptions) { o.id = id } }

// Pending is a job that is on its way.
type Pending struct{ waiting *waiting }

// Done is closed when it is known what became of the job.
func (f *Pending) Done() <-chan struct{} { return f.waiting.done }

// Token waits until the job is stored, and returns its token. If the context ends before, a job that is
// not yet on its way is not sent any more.
func (f *Pending) Token(ctx context.Context) (string, error) {
	one := f.waiting
	select {
	case <-one.done:
		return one.token, one.err
	case <-ctx.Done():
		return "", one.lane.withdraw(one, ctx.Err())
	}
}

// Submit publishes a job and does not wait until it is stored, but for room. Without [MessageID] jobs of
// the same moment share messages.
func (p *Publisher) Submit(ctx context.Context, job ranktree.Job, options ...PublishOption) (*Pending, error) {
	asked, err := optionsOf(options)
	if err != nil {
		return nil, err
	}
	shard, text, err := p.encode(job)
	if err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.users.Done()
	one, err := p.put(ctx, shard, [][]byte{text}, asked.id)
	if err != nil {
		return nil, err
	}
	return &Pending{one}, nil
}

// Publish stores a job, and returns its token. Whether it is applied or rejected is not known then.
// Without [MessageID] jobs of the same moment share messages.
func (p *Publisher) Publish(ctx context.Context, job ranktree.Job, options ...PublishOption) (string, error) {
	pending, err := p.Submit(ctx, job, options...)
	if err != nil {
		return "", err
	}
	return pending.Token(ctx)
}

// PublishMany stores jobs of any members, in as few messages as possible, and returns one token for all.
//
// Jobs of a member stay in their order. With [MessageID] they share messages with each other and with no
// other jobs; to publish again under the same one, give the same jobs in the same order. The error is a
// [PublishManyError] if messages were not acknowledged.
func (p *Publisher) PublishMany(ctx context.Context, jobs []ranktree.Job, options ...PublishOption) (string, error) {
	asked, err := optionsOf(options)
	if err != nil {
		return "", err
	}
	if len(jobs) == 0 {
		return "", errors.New("there are no jobs to publish")
	}
	byShard := make([][][]byte, p.shards)
	for _, job := range jobs {
		shard, text, err := p.encode(job)
		if err != nil {
			return "", err
		}
		byShard[shard] = append(byShard[shard], text)
	}
	if err := p.enter(); err != nil {
		return "", err
	}
	defer p.users.Done()
	tokens, errs := make([]string, p.shards), make([][]*PublishError, p.shards)
	var parts sync.WaitGroup
	for shard, texts := range byShard {
		parts.Add(1)
		go func() {
			defer parts.Done()
			tokens[shard], errs[shard] = p.putAll(ctx, shard, cut(texts), asked.id)
		}()
	}
	parts.Wait()
	token, err := ranktree.Latest(tokens...)
	if failed := slices.Concat(errs...); len(failed) > 0 {
		return "", &PublishManyError{MessageID: asked.id, Errors: failed, Token: token}
	}
	return token, err
}

// putAll stores the messages of a shard. After one that failed the others are not sent, to stay in order.
func (p *Publisher) putAll(ctx context.Context, shard int, messages [][][]byte, base string) (string, []*PublishError) {
	token := ""
	var errs []*PublishError
	for number, jobs := range messages {
		id, before := "", "a message before it"
		if base != "" {
			id = fmt.Sprintf("%s.%d.%d", base, shard, number)
		}
		if len(errs) > 0 {
			if errs[0].MessageID != "" {
				before = errs[0].MessageID
			}
			told := fmt.Errorf("not sent, because %s was not acknowledged", before)
			errs = append(errs, &PublishError{MessageID: id, err: told})
			continue
		}
		one, err := p.put(ctx, shard, jobs, id)
		var stored string
		if err == nil {
			stored, err = (&Pending{one}).Token(ctx)
		}
		var failed *PublishError
		switch {
		case err == nil:
			token = stored
		case errors.As(err, &failed):
			errs = append(errs, failed)
		default:
			errs = append(errs, &PublishError{MessageID: id, err: err})
		}
	}
	return token, errs
}

// enter counts a call, for which Close waits.
func (p *Publisher) enter() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.isClosed {
		return ErrClosed
	}
	p.users.Add(1)
	return nil
}

// put waits for room, and has jobs sent.
func (p *Publisher) put(ctx context.Context, shard int, jobs [][]byte, id string) (*waiting, error) {
	p.users.Add(1)
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		p.users.Done()
		return nil, &PublishError{MessageID: id, err: ctx.Err()}
	}
	one := &waiting{lane: p.lanes[shard], jobs: jobs, id: id, done: make(chan struct{})}
	for _, job := range jobs {
		one.size += len(job) + 1
	}
	p.lanes[shard].put(one)
	return one, nil
}

// leave is the end of a put.
func (p *Publisher) leave() {
	<-p.room
	p.users.Done()
}

func (p *Publisher) shard(member string) (int, error) {
	if len(member) < 1 || len(member) > 256 {
		return 0, fmt.Errorf("a member's id is 1 to 256 bytes; got %q", member)
	}
	return ranktree.ShardOf(member, p.shards)
}

func (p *Publisher) encode(job ranktree.Job) (int, []byte, error) {
	shard, err := p.shard(job.Member)
	if err != nil {
		return 0, nil, err
	}
	text, err := wire.Encode(job)
	if err == nil && len(text) >= bytesMax {
		err = fmt.Errorf("a job has at most %d bytes; got %d", bytesMax, len(text))
	}
	return shard, text, err
}

// WriteOption is an option of [Publisher.Write].
type WriteOption func(*official.Msg)

// ChangedOnly asks for a short answer, which says of each job only whether it changed anything.
func ChangedOnly() WriteOption {
	return func(m *official.Msg) { m.Header.Set("Ranktree-Results", "changed") }
}

// writeTimeout is how long a write waits for its answer if the context has no deadline.
const writeTimeout = 35 * time.Second

// Write has a node write jobs of members of one shard, and returns what came of them.
//
// Nothing is sent again. If no answer came in time, the error is a [ranktree.ConnectionError]; give jobs
// a Version, and send them again before later ones of the same members.
func (p *Publisher) Write(ctx context.Context, jobs []ranktree.Job, options ...WriteOption) (*ranktree.JobsWritten, error) {
	shards := map[int]bool{}
	of := 0
	for _, job := range jobs {
		var err error
		if of, err = p.shard(job.Member); err != nil {
			return nil, err
		}
		shards[of] = true
	}
	if len(shards) != 1 {
		return nil, fmt.Errorf("the jobs of a write belong to one shard; these belong to %d", len(shards))
	}
	body, err := wire.Encode(jobs)
	if err != nil {
		return nil, err
	}
	subject := fmt.Sprintf("%s.write.%d", p.prefix, of)
	message := official.NewMsg(subject)
	message.Data = body
	for _, option := range options {
		option(message)
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, writeTimeout)
		defer cancel()
	}
	// It would be sent once there is a connection again, however long nobody has waited for it by then.
	if isWaiting(p.connection) {
		return nil, ranktree.NewConnectionError(subject, false, errNotConnected)
	}
	answer, err := p.connection.RequestMsgWithContext(ctx, message)
	if errors.Is(err, official.ErrNoResponders) {
		told := map[string]any{"code": ranktree.CodeShardUnavailable, "detail": "no node answers to " + subject + "; try again"}
		problem, _ := json.Marshal(told)
		return nil, ranktree.NewProblemError(503, problem, "")
	}
	if err != nil {
		return nil, ranktree.NewConnectionError("no node answered to "+subject, true, err)
	}
	if status := answer.Header.Get("Nats-Service-Error-Code"); status != "" {
		code, _ := strconv.Atoi(status)
		return nil, ranktree.NewProblemError(code, answer.Data, "")
	}
	written := new(ranktree.JobsWritten)
	return written, json.Unmarshal(answer.Data, written)
}

func optionsOf(options []PublishOption) (publishOptions, error) {
	var asked publishOptions
	for _, option := range options {
		option(&asked)
		isPlain := !strings.ContainsFunc(asked.id, func(letter rune) bool { return letter < ' ' || letter > '~' })
		if !isPlain || len(asked.id) < 1 || len(asked.id) > idMax {
			told := "a message's id is 1 to %d printable ASCII characters; got %q"
			return asked, fmt.Errorf(told, idMax, asked.id)
		}
	}
	return asked, nil
}

// cut makes arrays of at most as many jobs and bytes as a message may have.
func cut(jobs [][]byte) [][][]byte {
	var found [][][]byte
	begin, size := 0, 0
	for at, job := range jobs {
		if at > begin && (at-begin == jobsMax || size+len(job)+1 > bytesMax) {
			found = append(found, jobs[begin:at])
			begin, size = at, 0
		}
		size += len(job) + 1
	}
	if begin < len(jobs) {
		found = append(found, jobs[begin:])
	}
	return found
}

// findShards asks the first jobs stream how many shards there are.
func findShards(ctx context.Context, connection *official.Conn, prefix string) (int, error) {
	stream := strings.ToUpper(prefix) + "_JOBS_0"
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := connection.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, nil)
	var info struct {
		Config struct {
			Metadata map[string]string `json:"metadata"`
		} `json:"config"`
		Error *apiError `json:"error"`
	}
	if err == nil {
		err = json.Unmarshal(answer.Data, &info)
	}
	if err == nil && info.Error != nil {
		err = errors.New(info.Error.Description)
	}
	if err != nil {
		told := "the stream %s does not say how many shards there are: %w; start a node, or give WithShards"
		return 0, fmt.Errorf(told, stream, err)
	}
	shards, err := strconv.Atoi(info.Config.Metadata["ranktree-shards"])
	if err != nil {
		return 0, fmt.Errorf("the stream %s is not one of ranktree's", stream)
	}
	return shards, nil
}
