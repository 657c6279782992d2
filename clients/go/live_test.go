package ranktree_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ranktree"
	"ranktree/internal/servers"
)

// watcher has updates one by one. Each must come before the test's time is up.
type watcher struct {
	t    *testing.T
	next func() (*ranktree.LiveUpdate, error, bool)
}

func watch(t *testing.T, client *ranktree.Client, board string, query *ranktree.LiveQuery) watcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servers.Limit)
	next, stop := iter.Pull2(client.Live(ctx, board, query))
	t.Cleanup(func() {
		cancel()
		stop()
	})
	return watcher{t, next}
}

// until goes on to an update for which something holds, and returns it.
func (w watcher) until(what string, is func(*ranktree.LiveUpdate) bool) *ranktree.LiveUpdate {
	w.t.Helper()
	for {
		update, err, more := w.next()
		if err != nil || !more {
			w.t.Fatal(what, err)
		}
		if is(update) {
			return update
		}
	}
}

func names(entries []ranktree.ListedEntry) []string {
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Member)
	}
	return found
}

func put(t *testing.T, client *ranktree.Client, board, member string, score int64) string {
	t.Helper()
	return must(client.Write(t.Context(), board, member, ranktree.EntryInput{Score: ranktree.Score{score}}, nil))(t).Token
}

func TestAWatcherIsShownTheStateAndThenWhatChanges(t *testing.T) {
	ctx, client := open(t)
	token := fill(t, client, "live", map[string]int64{"a": 40, "b": 30, "c": 20, "d": 10})
	query := &ranktree.LiveQuery{Top: ranktree.Ptr[int64](2), Members: []string{"d", "nobody", "a"}, After: token, MaxRate: 20}
	watching := watch(t, client, "live", query)
	first := watching.until("state", func(*ranktree.LiveUpdate) bool { return true })
	if first.Changes != nil {
		t.Error("the first update is a change")
	}
	equal(t, "first", []any{names(first.Entries), names(first.Members), first.NotFound, first.Total}, "[[a b] [d a] [nobody] 4]")
	put(t, client, "live", "c", 35)
	put(t, client, "live", "nobody", 1<<60)
	both := watching.until("both changes", func(u *ranktree.LiveUpdate) bool { return u.Total == 5 })
	equal(t, "both", []any{names(both.Entries), names(both.Members), both.NotFound}, "[[nobody a] [d nobody a] []]")
	equal(t, "score", both.Entries[0].Score, "[1152921504606846976]")
	if both.Changes == nil {
		t.Error("the second update is a whole state")
	}
	must(client.Remove(ctx, "live", "d", nil))(t)
	gone := watching.until("d is gone", func(u *ranktree.LiveUpdate) bool { return u.Total == 4 })
	equal(t, "gone", []any{names(gone.Members), gone.NotFound}, "[[nobody a] [d]]")
	// What the caller has stays as it was.
	equal(t, "first", []any{names(first.Entries), names(first.Members)}, "[[a b] [d a]]")
	must(client.Clear(ctx, "live"))(t)
	watching.until("a state of the cleared board", func(u *ranktree.LiveUpdate) bool { return u.Changes == nil && u.Total == 0 })
	must(client.Drop(ctx, "live"))(t)
	for {
		_, err, _ := watching.next()
		if err != nil {
			equal(t, "the end", []any{code(err), errors.Is(err, ranktree.ErrNotFound)}, "[unknown_board true]")
			break
		}
	}
	if _, _, more := watching.next(); more {
		t.Error("it goes on after its end")
	}
}

func TestWhatIsShownIsWhatIsRead(t *testing.T) {
	ctx, client := open(t)
	members := []string{"p1", "p7", "p30"}
	watching := watch(t, client, "shown", &ranktree.LiveQuery{Members: members, MaxRate: 20})
	_, err, _ := watching.next()
	equal(t, "a board that is not there", code(err), ranktree.CodeUnknownBoard)
	must(client.Define(ctx, "shown", nil))(t)
	watching = watch(t, client, "shown", &ranktree.LiveQuery{Members: members, MaxRate: 20})
	for range 20 {
		token := ""
		for range 10 {
			member := fmt.Sprint("p", rand.IntN(31))
			if rand.IntN(4) > 0 {
				token = must(ranktree.Latest(token, put(t, client, "shown", member, rand.Int64N(50))))(t)
			} else {
				token = must(ranktree.Latest(token, must(client.Remove(ctx, "shown", member, nil))(t).Token))(t)
			}
		}
		page := must(client.Top(ctx, "shown", &ranktree.TopQuery{Limit: 10, After: token}))(t)
		group := must(client.Lookup(ctx, "shown", members, &ranktree.LookupQuery{After: token}))(t)
		expected := map[string]string{}
		for _, entry := range group.Entries {
			expected[entry.Member] = fmt.Sprint(entry.Score, entry.Position)
		}
		watching.until("the same as is read", func(u *ranktree.LiveUpdate) bool {
			found := map[string]string{}
			for _, entry := range u.Members {
				found[entry.Member] = fmt.Sprint(entry.Score, entry.Position)
			}
			same := func(a, b ranktree.ListedEntry) bool {
				return a.Member == b.Member && a.Position == b.Position && fmt.Sprint(a.Score) == fmt.Sprint(b.Score)
			}
			return slices.EqualFunc(u.Entries, page.Entries, same) && maps.Equal(found, expected)
		})
	}
}

func TestALostConnectionGoesOnWhereItWas(t *testing.T) {
	node := servers.StartNode(t)
	client := clientOf(t, node.URL)
	link := servers.StartLink(t, node.URL[len("http://"):])
	far := clientOf(t, "http://"+link.Address)
	put(t, client, "lost", "a", 1)
	watching := watch(t, far, "lost", nil)
	watching.until("state", func(u *ranktree.LiveUpdate) bool { return u.Total == 1 })
	link.Cut()
	put(t, client, "lost", "b", 2)
	after := watching.until("what was missed", func(u *ranktree.LiveUpdate) bool { return u.Total == 2 })
	// The node still knew what this watcher had.
	if after.Changes == nil {
		t.Error("it was told the whole state")
	}
	node.Kill()
	node.Start()
	put(t, client, "lost", "c", 3)
	last := watching.until("the node that was killed", func(u *ranktree.LiveUpdate) bool { return u.Total == 3 })
	equal(t, "last", names(last.Entries), "[c b a]")
}

func TestASilentConnectionCountsAsLost(t *testing.T) {
	node := servers.StartNode(t)
	client := clientOf(t, node.URL)
	link := servers.StartLink(t, node.URL[len("http://"):])
	far := clientOf(t, "http://"+link.Address)
	ranktree.SetSilence(far, time.Second)
	put(t, client, "silent", "a", 1)
	watching := watch(t, far, "silent", nil)
	watching.until("state", func(u *ranktree.LiveUpdate) bool { return u.Total == 1 })
	link.IsDeaf.Store(true)
	put(t, client, "silent", "b", 2)
	servers.Until(t, "the event is lost", func() bool { return link.Lost.Load() > 0 })
	// The connection itself stays open.
	time.AfterFunc(1500*time.Millisecond, func() { link.IsDeaf.Store(false) })
	watching.until("what was lost", func(u *ranktree.LiveUpdate) bool { return u.Total == 2 })
}

func TestAWatchEndsWithItsContextAndItsLoop(t *testing.T) {
	_, client := open(t)
	put(t, client, "ends", "a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	count := 0
	var last error
	for _, err := range client.Live(ctx, "ends", nil) {
		count++
		last = err
		cancel()
	}
	if count != 2 || !errors.Is(last, context.Canceled) {
		t.Error(count, last)
	}
	for _, err := range clientOf(t, "http://"+servers.FreePort(t)).Live(t.Context(), "ends", nil) {
		var failed *ranktree.ConnectionError
		if !errors.As(err, &failed) {
			t.Error(err)
		}
	}
}

func TestWhatAWatchIsAskedWith(t *testing.T) {
	var asked atomic.Int64
	seen := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Last-Event-ID") + " " + r.URL.RawQuery + " " + r.Header.Get("Authorization")
		switch asked.Add(1) {
		case 1:
			fmt.Fprint(w, ":\n\nretry: 10\nevent: state\nid: 00@0:1\ndata: {\"total\":1}\n\n")
			// An event that is not whole counts as none.
			fmt.Fprint(w, "event: changes\nid: 01@0:2\ndata: {\"total\":2}\n")
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			fmt.Fprint(w, "event: other\r\nid: 02@0:3\r\ndata: x\r\n\r\nevent: end\r\ndata: {\"status\":401,\"code\":\"invalid_token\"}\r\n\r\n")
		}
	}))
	defer server.Close()
	client := clientOf(t, server.URL, ranktree.WithBearer("rkt_abc"))
	query := &ranktree.LiveQuery{Top: ranktree.Ptr[int64](0), Members: []string{"a,b", "c"}, After: "0:1"}
	var totals []int64
	for update, err := range client.Live(t.Context(), "asked", query) {
		if err != nil {
			equal(t, "the end", []any{code(err), errors.Is(err, ranktree.ErrAccess)}, "[invalid_token true]")
			break
		}
		totals = append(totals, update.Total)
	}
	equal(t, "totals", totals, "[1]")
	close(seen)
	id := ""
	for one := range seen {
		equal(t, "asked", one, id+" after=0%3A1&top=0&members=a%2Cb,c Bearer rkt_abc")
		id = "00@0:1"
	}
	equal(t, "connections", asked.Load(), 3)
}
