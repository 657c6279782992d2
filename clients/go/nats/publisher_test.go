package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	official "github.com/nats-io/nats.go"

	"ranktree"
	"ranktree/internal/servers"
	"ranktree/nats"
)

func job(member string, score int64) ranktree.Job {
	return ranktree.Job{Board: "arena", Member: member, Score: ranktree.Score{score}, Op: "incr"}
}

// must is the value of a call that may not fail.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal(t *testing.T, what string, found, expected any) {
	t.Helper()
	if fmt.Sprint(found) != fmt.Sprint(expected) {
		t.Errorf("%s: %v, and not %v", what, found, expected)
	}
}

// start starts a nats-server, a node with three shards that reads from it, and a client of that.
func start(t *testing.T, flags ...string) (*servers.Nats, *servers.Node, *ranktree.Client) {
	t.Helper()
	server := servers.StartNats(t, flags...)
	node := servers.StartNode(t, "--nats", server.URL, "--shards", "3")
	client := must(ranktree.New(node.URL))(t)
	t.Cleanup(client.Close)
	// Jobs for a board that does not exist wait for its definition, and tokens do not wait for that.
	must(client.Define(t.Context(), "arena", nil))(t)
	return server, node, client
}

func connect(t *testing.T, url string, options ...nats.Option) *nats.Publisher {
	t.Helper()
	publisher := must(nats.Connect(t.Context(), url, options...))(t)
	t.Cleanup(func() {
		// The test's context has ended here.
		ctx, cancel := context.WithTimeout(context.Background(), servers.Limit)
		defer cancel()
		if err := publisher.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return publisher
}

func membersOf(shard, count int) []string {
	var found []string
	for number := 0; len(found) < count; number++ {
		member := fmt.Sprint("p", number)
		if of, _ := ranktree.ShardOf(member, 3); of == shard {
			found = append(found, member)
		}
	}
	return found
}

// lastSequences are those of the three streams.
func lastSequences(t *testing.T, server *servers.Nats) []uint64 {
	t.Helper()
	connection := must(official.Connect(server.URL))(t)
	defer connection.Close()
	var found []uint64
	for shard := range 3 {
		answer := must(connection.Request(fmt.Sprintf("$JS.API.STREAM.INFO.RANKTREE_JOBS_%d", shard), nil, servers.Limit))(t)
		var info struct {
			State struct {
				Last uint64 `json:"last_seq"`
			} `json:"state"`
		}
		if err := json.Unmarshal(answer.Data, &info); err != nil {
			t.Fatal(err)
		}
		found = append(found, info.State.Last)
	}
	return found
}

// after reads what a token names, however long that takes.
func scoreOf(t *testing.T, client *ranktree.Client, member, token string) int64 {
	t.Helper()
	query := &ranktree.MemberQuery{After: token, TimeoutMS: ranktree.Ptr[int64](60_000)}
	return must(client.Member(t.Context(), "arena", member, query))(t).Score[0]
}

func TestAPublishedJobIsRanked(t *testing.T) {
	server, _, client := start(t)
	publisher := connect(t, server.URL)
	equal(t, "shards", publisher.Shards(), 3)
	token := must(publisher.Publish(t.Context(), job("p42", 1200)))(t)
	equal(t, "shard", strings.Split(token, ":")[0], "1")
	equal(t, "score", scoreOf(t, client, "p42", token), 1200)
	// An answer over HTTP is 202 there: a token, and nothing else.
	accepted := must(client.Write(t.Context(), "arena", "p42", ranktree.EntryInput{Score: ranktree.Score{5}, Op: "incr"}, nil))(t)
	equal(t, "accepted", []any{accepted.Token != "", accepted.Changed, accepted.Entry}, "[true false <nil>]")
	both := must(ranktree.Latest(token, accepted.Token))(t)
	equal(t, "score", scoreOf(t, client, "p42", both), 1205)
}

func TestAnIDCountsOnce(t *testing.T) {
	server, _, client := start(t)
	publisher := connect(t, server.URL)
	token := ""
	for range 3 {
		again := must(publisher.Publish(t.Context(), job("p42", 1), nats.MessageID("match-8841-p42")))(t)
		if token != "" && token != again {
			t.Error(token, again)
		}
		token = again
	}
	equal(t, "score", scoreOf(t, client, "p42", token), 1)
	var jobs []ranktree.Job
	for number := range 2_500 {
		jobs = append(jobs, job(fmt.Sprint("p", number), 1))
	}
	first := must(publisher.PublishMany(t.Context(), jobs, nats.MessageID("match-8842")))(t)
	equal(t, "again", must(publisher.PublishMany(t.Context(), jobs, nats.MessageID("match-8842")))(t), first)
	board := must(client.Board(t.Context(), "arena", &ranktree.BoardQuery{After: first}))(t)
	equal(t, "total", board.Totals["all"], 2_500)
	rank := must(client.Rank(t.Context(), "arena", ranktree.Score{1}, nil))(t)
	equal(t, "p42 has two points, and nobody else", rank.Better, 1)
	for _, wrong := range []string{"", "é", "a\nb", strings.Repeat("x", 513)} {
		if _, err := publisher.Publish(t.Context(), job("p42", 1), nats.MessageID(wrong)); err == nil {
			t.Errorf("%q is an id", wrong)
		}
	}
}

func TestJobsOfTheSameMomentShareMessages(t *testing.T) {
	server, _, client := start(t)
	publisher := connect(t, server.URL)
	before := lastSequences(t, server)
	var pending []*nats.Pending
	for number := range int64(7_000) {
		one := job(fmt.Sprint("p", number%700), number)
		one.Op = "set"
		pending = append(pending, must(publisher.Submit(t.Context(), one))(t))
	}
	token := ""
	for _, one := range pending {
		token = must(ranktree.Latest(token, must(one.Token(t.Context()))(t)))(t)
	}
	// Each member's jobs stayed in their order: the last one stands.
	count := 0
	for entry, err := range client.AllTop(t.Context(), "arena", &ranktree.TopQuery{Limit: 1000, After: token}) {
		if err != nil {
			t.Fatal(err)
		}
		number, _ := strconv.ParseInt(entry.Member[1:], 10, 64)
		equal(t, entry.Member, entry.Score[0], 6_300+number)
		count++
	}
	equal(t, "members", count, 700)
	messages := uint64(0)
	for shard, last := range lastSequences(t, server) {
		messages += last - before[shard]
	}
	if messages > 3_500 {
		t.Errorf("%d messages for 7,000 jobs", messages)
	}
}

func TestAJobWithAnIDHasAMessageOfItsOwnAndListsWithoutOneShareThem(t *testing.T) {
	server, _, _ := start(t)
	publisher := connect(t, server.URL)
	before := lastSequences(t, server)[1]
	member := membersOf(1, 1)[0]
	var pending []*nats.Pending
	for number := range 50 {
		id := nats.MessageID(fmt.Sprint("match-", number))
		pending = append(pending, must(publisher.Submit(t.Context(), job(member, 1), id))(t))
	}
	for number, one := range pending {
		equal(t, "token", must(one.Token(t.Context()))(t), fmt.Sprintf("1:%d", before+1+uint64(number)))
	}
	// As the documents say: one id for many jobs keeps them together.
	jobs := slices.Repeat([]ranktree.Job{job(member, 1)}, 50)
	must(publisher.PublishMany(t.Context(), jobs, nats.MessageID("match-50")))(t)
	equal(t, "messages", lastSequences(t, server)[1], before+51)
	var lists sync.WaitGroup
	for range 400 {
		lists.Add(1)
		go func() {
			defer lists.Done()
			if _, err := publisher.PublishMany(t.Context(), jobs[:2]); err != nil {
				t.Error(err)
			}
		}()
	}
	lists.Wait()
	// One for each list if they did not share.
	if messages := lastSequences(t, server)[1] - before - 51; messages >= 200 {
		t.Errorf("%d messages for 400 lists", messages)
	}
}

func TestArraysAreCutAtAThousandJobsAnd127KiB(t *testing.T) {
	server, _, client := start(t)
	publisher := connect(t, server.URL)
	member := membersOf(0, 1)[0]
	var jobs []ranktree.Job
	for range 300 {
		one := job(member, 1)
		one.Meta = map[string]string{"text": strings.Repeat("x", 900)}
		jobs = append(jobs, one)
	}
	for range 2_001 {
		jobs = append(jobs, job(member, 1))
	}
	before := lastSequences(t, server)[0]
	token := must(publisher.PublishMany(t.Context(), jobs))(t)
	equal(t, "score", scoreOf(t, client, member, token), 2_301)
	if messages := lastSequences(t, server)[0] - before; messages > 6 {
		t.Errorf("%d messages", messages)
	}
	big := job("p1", 1)
	big.Meta = map[string]string{"text": strings.Repeat("x", 200_000)}
	for _, wrong := range []ranktree.Job{big, job("", 1), job(strings.Repeat("x", 257), 1)} {
		if _, err := publisher.Publish(t.Context(), wrong); err == nil || errors.As(err, new(*nats.PublishError)) {
			t.Error(err)
		}
	}
}

// The node is killed between a publish, whose acknowledgement is lost, and its retry.
func TestALostAcknowledgementAndAKilledNodeCountOnce(t *testing.T) {
	server, node, client := start(t)
	link := servers.StartLink(t, server.Address)
	before := lastSequences(t, server)
	publisher := connect(t, "nats://"+link.Address, nats.WithAckTimeout(time.Second))
	link.IsDeaf.Store(true)
	pending := must(publisher.Submit(t.Context(), job("p42", 1), nats.MessageID("match-8841-p42")))(t)
	servers.Until(t, "the stream has the message", func() bool { return lastSequences(t, server)[1] > before[1] })
	servers.Until(t, "its acknowledgement is lost", func() bool { return link.Lost.Load() > 0 })
	node.Kill()
	lost := link.Lost.Load()
	// The publisher sends it again, and the server acknowledges again: that is lost as well.
	servers.Until(t, "the first retry is lost", func() bool { return link.Lost.Load() > lost })
	select {
	case <-pending.Done():
		t.Error("it is done without an acknowledgement")
	default:
	}
	link.IsDeaf.Store(false)
	token := must(pending.Token(t.Context()))(t)
	node.Start()
	client = must(ranktree.New(node.URL))(t)
	equal(t, "score", scoreOf(t, client, "p42", token), 1)
	// Another process, which knows no more than the id, tries again.
	again := must(connect(t, server.URL).Publish(t.Context(), job("p42", 1), nats.MessageID("match-8841-p42")))(t)
	equal(t, "again", again, token)
	equal(t, "score", scoreOf(t, client, "p42", token), 1)
	equal(t, "sequence", lastSequences(t, server)[1], before[1]+1)
	equal(t, "token", token, fmt.Sprintf("1:%d", before[1]+1))
}

func TestGivingUpSaysWhatIsKnown(t *testing.T) {
	server, _, _ := start(t)
	link := servers.StartLink(t, server.Address)
	options := []nats.Option{nats.WithAckTimeout(200 * time.Millisecond), nats.WithGiveUpAfter(time.Second)}
	publisher := connect(t, "nats://"+link.Address, options...)
	link.IsDeaf.Store(true)
	var unknown *nats.PublishError
	_, err := publisher.Publish(t.Context(), job("p42", 1), nats.MessageID("match-1"))
	if !errors.As(err, &unknown) || !unknown.MayBeStored || unknown.MessageID != "match-1" {
		t.Error(err)
	}
	var many *nats.PublishManyError
	_, err = publisher.PublishMany(t.Context(), []ranktree.Job{job("p42", 1), job("alice", 1)}, nats.MessageID("match-2"))
	if !errors.As(err, &many) || many.Token != "" || len(many.Errors) != 2 || !many.MayBeStored() {
		t.Error(err)
	}
	// What is behind a message that failed is not sent, so that no job overtakes another.
	_, err = publisher.PublishMany(t.Context(), slices.Repeat([]ranktree.Job{job("p42", 1)}, 1_500), nats.MessageID("match-3"))
	if !errors.As(err, &many) {
		t.Fatal(err)
	}
	var known []any
	for _, one := range many.Errors {
		known = append(known, one.MessageID, one.MayBeStored)
	}
	equal(t, "known", known, "[match-3.1.0 true match-3.1.1 false]")
	equal(t, "id", many.MessageID, "match-3")
	// The server would take one job, published alone under the id of an array, for all of it.
	var shared []*nats.Pending
	for _, member := range membersOf(1, 3) {
		shared = append(shared, must(publisher.Submit(t.Context(), job(member, 1)))(t))
	}
	for _, one := range shared {
		if _, err := one.Token(t.Context()); !errors.As(err, &unknown) || !unknown.MayBeStored || unknown.MessageID != "" {
			t.Error(err)
		}
	}
	_, err = publisher.PublishMany(t.Context(), slices.Repeat([]ranktree.Job{job("p42", 1)}, 1_500))
	if !errors.As(err, &many) || many.MessageID != "" || len(many.Errors) != 2 {
		t.Fatal(err)
	}
	for number, one := range many.Errors {
		equal(t, "without an id", []any{one.MessageID, one.MayBeStored}, []any{"", number == 0})
	}
	// There is no such stream, which is told each time: then it is certain.
	other := connect(t, server.URL, append(options, nats.WithPrefix("other"), nats.WithShards(2))...)
	if _, err := other.Publish(t.Context(), job("p42", 1)); !errors.As(err, &unknown) || unknown.MayBeStored {
		t.Error(err)
	}
	if _, err := nats.Connect(t.Context(), server.URL, nats.WithGiveUpAfter(2*time.Minute)); err == nil {
		t.Error("a message may be sent again when its id is forgotten")
	}
	if _, err := nats.Connect(t.Context(), server.URL, nats.WithMaxWaiting(0)); err == nil {
		t.Error("no job would ever be sent")
	}
}

func TestAContextEndsAWaitAndWhatIsNotOnItsWayIsNotSent(t *testing.T) {
	server, _, client := start(t)
	link := servers.StartLink(t, server.Address)
	publisher := connect(t, "nats://"+link.Address, nats.WithAckTimeout(500*time.Millisecond), nats.WithMaxWaiting(2))
	link.IsDeaf.Store(true)
	first := must(publisher.Submit(t.Context(), job("p42", 1)))(t)
	servers.Until(t, "it is on its way", func() bool { return link.Lost.Load() > 0 })
	second := must(publisher.Submit(t.Context(), job("p42", 10)))(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// There is no room for a third.
	var failed *nats.PublishError
	if _, err := publisher.Submit(ended, job("p42", 100)); !errors.As(err, &failed) || failed.MayBeStored || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := second.Token(ended); !errors.As(err, &failed) || failed.MayBeStored || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := first.Token(ended); !errors.As(err, &failed) || !failed.MayBeStored || failed.MessageID != "" {
		t.Error(err)
	}
	link.IsDeaf.Store(false)
	token := must(first.Token(t.Context()))(t)
	equal(t, "score", scoreOf(t, client, "p42", token), 1)
	if err := publisher.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := publisher.Publish(t.Context(), job("p42", 1)); !errors.Is(err, nats.ErrClosed) {
		t.Error(err)
	}
}

// Copies that wait in memory for a connection would arrive when the server has forgotten their id.
func TestWhatWasGivenUpWithoutAConnectionIsNotStoredLater(t *testing.T) {
	server, _, _ := start(t)
	before := lastSequences(t, server)[1]
	lost := make(chan struct{}, 1)
	connection := nats.WithConnection(
		official.ReconnectWait(50*time.Millisecond),
		official.DisconnectErrHandler(func(*official.Conn, error) {
			select {
			case lost <- struct{}{}:
			default:
			}
		}),
	)
	publisher := connect(t, server.URL, connection, nats.WithAckTimeout(200*time.Millisecond), nats.WithGiveUpAfter(time.Second))
	server.Kill()
	<-lost
	var failed *nats.PublishError
	_, err := publisher.Publish(t.Context(), job("p42", 1), nats.MessageID("match-1"))
	if !errors.As(err, &failed) || failed.MayBeStored {
		t.Error(err)
	}
	var unsent *ranktree.ConnectionError
	if _, err := publisher.Write(t.Context(), []ranktree.Job{job("p42", 1)}); !errors.As(err, &unsent) || unsent.MayBeApplied {
		t.Error(err)
	}
	server.Start()
	servers.Until(t, "what is published later is the next message", func() bool {
		token, err := publisher.Publish(t.Context(), job("p42", 1), nats.MessageID("match-2"))
		return err == nil && token == fmt.Sprintf("1:%d", before+1)
	})
	equal(t, "last", lastSequences(t, server)[1], before+1)
}

func TestAKilledServerIsWaitedFor(t *testing.T) {
	server, _, client := start(t)
	wait := nats.WithConnection(official.ReconnectWait(50 * time.Millisecond))
	publisher := connect(t, server.URL, wait, nats.WithAckTimeout(time.Second))
	server.Kill()
	var pending []*nats.Pending
	for number := range 100 {
		pending = append(pending, must(publisher.Submit(t.Context(), job(fmt.Sprint("p", number), 1)))(t))
	}
	server.Start()
	token := ""
	for _, one := range pending {
		token = must(ranktree.Latest(token, must(one.Token(t.Context()))(t)))(t)
	}
	query := &ranktree.TopQuery{Limit: 1000, After: token, TimeoutMS: ranktree.Ptr[int64](60_000)}
	page := must(client.Top(t.Context(), "arena", query))(t)
	equal(t, "entries", len(page.Entries), 100)
	for _, entry := range page.Entries {
		equal(t, entry.Member, entry.Score, "[1]")
	}
}

// Nothing is lost or doubled while the server is killed again and again, and connections are cut.
func TestEveryJobCountsOnceWhateverIsKilled(t *testing.T) {
	server, _, client := start(t)
	link := servers.StartLink(t, server.Address)
	wait := nats.WithConnection(official.ReconnectWait(50 * time.Millisecond))
	publisher := connect(t, "nats://"+link.Address, wait, nats.WithAckTimeout(500*time.Millisecond))
	var writers sync.WaitGroup
	tokens := make([]string, 8)
	for writer := range tokens {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for number := range 200 {
				token, err := publisher.Publish(t.Context(), job(fmt.Sprint("p", number%20), 1))
				if err != nil {
					t.Error(err)
					return
				}
				if tokens[writer], err = ranktree.Latest(tokens[writer], token); err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	for range 3 {
		time.Sleep(200 * time.Millisecond)
		link.Cut()
		time.Sleep(200 * time.Millisecond)
		server.Kill()
		server.Start()
	}
	writers.Wait()
	token := must(ranktree.Latest(tokens...))(t)
	for number := range 20 {
		equal(t, "points", scoreOf(t, client, fmt.Sprint("p", number), token), 80)
	}
}

func TestNodesWriteJobsAndAnswer(t *testing.T) {
	server, node, _ := start(t)
	publisher := connect(t, server.URL)
	members := membersOf(2, 2)
	set := job(members[0], 1<<60)
	set.Op = "set"
	written := must(publisher.Write(t.Context(), []ranktree.Job{set, job(members[1], 5)}))(t)
	equal(t, "score", written.Results[0].Entry.Score, "[1152921504606846976]")
	short := must(publisher.Write(t.Context(), []ranktree.Job{job(members[0], 1)}, nats.ChangedOnly()))(t)
	equal(t, "short", []any{short.Results[0].Changed, short.Results[0].Entry}, "[true <nil>]")
	_, err := publisher.Write(t.Context(), []ranktree.Job{{Board: "no board", Member: members[0], Score: ranktree.Score{1}}})
	var invalid *ranktree.ProblemError
	if !errors.As(err, &invalid) || !errors.Is(err, ranktree.ErrInvalid) || invalid.Errors[0].Index != 0 {
		t.Error(err)
	}
	if _, err := publisher.Write(t.Context(), []ranktree.Job{job("p42", 1), job("alice", 1)}); err == nil {
		t.Error("jobs of two shards are written")
	}
	node.Kill()
	servers.Until(t, "the server knows that the node is gone", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := publisher.Write(ctx, []ranktree.Job{job(members[0], 1)})
		var failed *ranktree.ConnectionError
		if errors.As(err, &failed) && !failed.MayBeApplied {
			t.Error(err)
		}
		return errors.Is(err, ranktree.ErrUnavailable)
	})
}

func TestAGameWithTheLeastPermissionsPublishes(t *testing.T) {
	for _, user := range []string{"NODE", "GAME", "REJECTS"} {
		t.Setenv("RANKTREE_"+user+"_PASSWORD", "nats_"+user)
	}
	t.Setenv("RANKTREE_NATS_PASSWORD", "nats_NODE")
	text := must(os.ReadFile(filepath.Join(servers.Root(), "deploy", "nats", "ranktree.conf")))(t)
	config := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	server := servers.StartNats(t, "-c", config)
	node := servers.StartNode(t, "--nats", server.URL, "--nats-user", "node", "--shards", "3")
	client := must(ranktree.New(node.URL))(t)
	must(client.Define(t.Context(), "arena", nil))(t)
	game := nats.WithConnection(official.UserInfo("game", "nats_GAME"), official.CustomInboxPrefix("_INBOX.game"))
	publisher := connect(t, server.URL, game, nats.WithShards(3))
	token := must(publisher.Publish(t.Context(), job("p42", 1), nats.MessageID("match-1")))(t)
	equal(t, "again", must(publisher.Publish(t.Context(), job("p42", 1), nats.MessageID("match-1")))(t), token)
	equal(t, "score", scoreOf(t, client, "p42", token), 1)
	short := must(publisher.Write(t.Context(), []ranktree.Job{job("p42", 1)}, nats.ChangedOnly()))(t)
	equal(t, "written", short.Results[0].Changed, true)
	if _, err := nats.Connect(t.Context(), server.URL, game); err == nil || !strings.Contains(err.Error(), "WithShards") {
		t.Error(err)
	}
}
