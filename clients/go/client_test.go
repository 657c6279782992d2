package ranktree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ranktree"
	"ranktree/internal/servers"
)

// open starts a node without NATS, and a client of it.
func open(t *testing.T) (context.Context, *ranktree.Client) {
	t.Helper()
	return t.Context(), clientOf(t, servers.StartNode(t, "--shards", "2").URL)
}

func clientOf(t *testing.T, url string, options ...ranktree.Option) *ranktree.Client {
	t.Helper()
	client, err := ranktree.New(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
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

func fill(t *testing.T, client *ranktree.Client, board string, scores map[string]int64) string {
	t.Helper()
	var jobs []ranktree.Job
	for member, score := range scores {
		jobs = append(jobs, ranktree.Job{Board: board, Member: member, Score: ranktree.Score{score}})
	}
	return must(client.WriteMany(t.Context(), jobs, nil))(t).Token
}

func code(err error) string {
	var problem *ranktree.ProblemError
	if errors.As(err, &problem) {
		return problem.Code
	}
	return fmt.Sprint(err)
}

func TestAWriteIsReadBack(t *testing.T) {
	ctx, client := open(t)
	must(client.Define(ctx, "written", &ranktree.DefinitionInput{Policy: "best", Ties: "member"}))(t)
	at := time.Date(2026, 11, 20, 9, 59, 58, 123456000, time.FixedZone("", 9*3600))
	job := ranktree.EntryInput{Score: ranktree.Score{1200}, At: at, Meta: map[string]any{"car": "<mx5>"}}
	written := must(client.Write(ctx, "written", "p42", job, &ranktree.PutMemberQuery{Wait: ranktree.Applied}))(t)
	equal(t, "written", []any{written.Changed, written.Previous == nil}, []any{true, true})
	entry := must(client.Member(ctx, "written", "p42", &ranktree.MemberQuery{After: written.Token}))(t)
	equal(t, "entry", []any{entry.Score, entry.Rank, entry.Total}, []any{"[1200]", 1, 1})
	equal(t, "meta", string(entry.Meta), `{"car":"<mx5>"}`)
	if !entry.UpdatedAt.Equal(at) {
		t.Error(entry.UpdatedAt)
	}
	equal(t, "removed", must(client.Remove(ctx, "written", "p42", nil))(t).Changed, true)
	_, err := client.Member(ctx, "written", "p42", nil)
	equal(t, "code", code(err), ranktree.CodeUnknownMember)
	equal(t, "kind", []bool{errors.Is(err, ranktree.ErrNotFound), errors.Is(err, ranktree.ErrRejected)}, []bool{true, false})
}

func TestSeasons(t *testing.T) {
	ctx, client := open(t)
	manual := &ranktree.DefinitionInput{Windows: []string{"all", "season"}, Season: &ranktree.Season{Manual: true}}
	must(client.Define(ctx, "league", manual))(t)
	begin := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	opened := must(client.OpenSeason(ctx, "league", begin))(t)
	equal(t, "season", []any{opened.Season, opened.Begin}, []any{"s1", begin})
	_, err := client.OpenSeason(ctx, "league", time.Time{})
	equal(t, "code", code(err), ranktree.CodeSeasonConflict)
	equal(t, "kind", errors.Is(err, ranktree.ErrRejected), true)
	starts := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	fixed := &ranktree.DefinitionInput{Windows: []string{"season"}, Season: &ranktree.Season{Starts: starts, Every: "15d"}}
	must(client.Define(ctx, "fixed", fixed))(t)
	equal(t, "fixed", *must(client.Board(ctx, "fixed", nil))(t).Season, *fixed.Season)
	equal(t, "manual", must(client.Board(ctx, "league", nil))(t).Season.Manual, true)
}

func TestIDsOfMembersSurviveThePathAndLists(t *testing.T) {
	ctx, client := open(t)
	members := []string{"a/b", "..", ".", "日本", "with space", "%2F", "?a=b&c", "#", "a+b", ":lookup", "é\\\"'", "a,b", "<>"}
	for number, member := range members {
		job := ranktree.EntryInput{Score: ranktree.Score{int64(number)}}
		must(client.Write(ctx, "ids", member, job, nil))(t)
		equal(t, "member", must(client.Member(ctx, "ids", member, nil))(t).Member, member)
		equal(t, "around", must(client.Around(ctx, "ids", member, nil))(t).Entries[0].Member, member)
		boards := &ranktree.MemberBoardsQuery{Boards: []string{"ids", "none"}}
		found := must(client.MemberBoards(ctx, member, boards))(t)
		equal(t, "boards", []any{found.Entries[0].Member, found.NotFound}, []any{member, "[none]"})
	}
	for update, err := range client.Live(ctx, "ids", &ranktree.LiveQuery{Members: members}) {
		if err != nil {
			t.Fatal(err)
		}
		for at, entry := range update.Members {
			equal(t, "watched", entry.Member, members[at])
		}
		equal(t, "watched", len(update.Members), len(members))
		break
	}
	for _, member := range members {
		must(client.RemoveEverywhere(ctx, member, nil))(t)
	}
	equal(t, "total", must(client.Board(ctx, "ids", nil))(t).Totals["all"], 0)
}

func TestIntegersAreExactUpTo64Bits(t *testing.T) {
	ctx, client := open(t)
	least := ranktree.Ptr[int64](-(1 << 62))
	keys := []ranktree.KeyInput{{Name: "points", Min: least}, {Name: "time"}}
	must(client.Define(ctx, "exact", &ranktree.DefinitionInput{Keys: keys}))(t)
	scores := []ranktree.Score{{math.MaxInt64, math.MinInt64}, {1<<53 + 1, 5}, {1 << 53, 4}}
	for number, score := range scores {
		// What callers keep there is theirs, as it was written.
		meta := json.RawMessage(`{"score":"1152921504606846976","big":12345678901234567890}`)
		job := ranktree.EntryInput{Score: score, Meta: meta, Version: ranktree.Ptr[uint64](math.MaxUint64)}
		written := must(client.Write(ctx, "exact", fmt.Sprint("p", number), job, &ranktree.PutMemberQuery{Wait: ranktree.Applied}))(t)
		equal(t, "score", written.Entry.Score, score)
		equal(t, "meta", string(written.Entry.Meta), string(meta))
	}
	equal(t, "rank", must(client.Rank(ctx, "exact", scores[1], nil))(t).Rank, 2)
	equal(t, "least", *must(client.Board(ctx, "exact", nil))(t).Keys[0].Min, *least)
	all := must(client.Percentiles(ctx, "exact", []float64{100, 0.5}, nil))(t)
	equal(t, "percentiles", []any{all.Percentiles[0].Score, len(all.Percentiles)}, []any{scores[0], 2})
	count := must(client.Count(ctx, "exact", &ranktree.CountQuery{Min: ranktree.Ptr[int64](1<<53 + 1)}))(t)
	equal(t, "count", []any{count.Count, *count.Min, count.Max == nil}, []any{2, int64(1<<53 + 1), true})
}

func TestPagesAreIteratedWithoutAGap(t *testing.T) {
	ctx, client := open(t)
	scores := map[string]int64{}
	for number := range int64(500) {
		// Ties everywhere.
		scores[fmt.Sprintf("p%03d", number)] = number / 3
	}
	fill(t, client, "pages", scores)
	fill(t, client, "other", map[string]int64{"p007": 1})
	// Each time it is gone over, it begins anew.
	top := client.AllTop(ctx, "pages", &ranktree.TopQuery{Limit: 37})
	for range 2 {
		position := int64(0)
		for entry, err := range top {
			if position++; err != nil || entry.Position != position {
				t.Fatal(entry.Position, position, err)
			}
		}
		equal(t, "all", position, 500)
	}
	position := int64(500)
	for entry, err := range client.AllTop(ctx, "pages", &ranktree.TopQuery{Limit: 499, From: "bottom"}) {
		if err != nil || entry.Position != position {
			t.Fatal(entry.Position, position, err)
		}
		position--
	}
	least, most := ranktree.Ptr[int64](10), ranktree.Ptr[int64](20)
	var found, expected []int64
	for entry, err := range client.AllRange(ctx, "pages", &ranktree.RangeQuery{Min: least, Max: most, Limit: 7}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, entry.Score[0])
	}
	for score := int64(20); score >= 10; score-- {
		expected = append(expected, score, score, score)
	}
	equal(t, "range", found, expected)
	equal(t, "count", must(client.Count(ctx, "pages", &ranktree.CountQuery{Min: least, Max: most}))(t).Count, 33)
	var names []string
	for board, err := range client.AllBoards(ctx, &ranktree.BoardsQuery{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, board.Board)
	}
	equal(t, "boards", names, "[other pages]")
	var of []string
	for entry, err := range client.AllMemberBoards(ctx, "p007", nil) {
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, entry.Board)
	}
	equal(t, "boards of p007", of, "[other pages]")
	for _, err := range client.AllTop(ctx, "nothing", nil) {
		equal(t, "an unknown board", code(err), ranktree.CodeUnknownBoard)
	}
}

func TestEveryReadAnswers(t *testing.T) {
	ctx, client := open(t)
	token := fill(t, client, "reads", map[string]int64{"alice": 30, "bob": 20, "carol": 20, "dave": 10})
	page := must(client.Top(ctx, "reads", &ranktree.TopQuery{Limit: 2, After: token}))(t)
	equal(t, "top", []any{page.Entries[0].Member, len(page.Entries), page.NextCursor != ""}, []any{"alice", 2, true})
	equal(t, "ranks", must(client.Positions(ctx, "reads", 3, nil))(t).Entries[0].Rank, 2)
	group := must(client.Lookup(ctx, "reads", []string{"dave", "alice", "nobody"}, nil))(t)
	equal(t, "group", []any{group.Entries[1].Member, group.Entries[1].GroupRank, group.NotFound}, []any{"dave", 2, "[nobody]"})
	ranks := must(client.Ranks(ctx, "reads", []ranktree.Score{{31}, {20}, {0}}, nil))(t)
	equal(t, "ranks", []any{ranks.Ranks[0].Rank, ranks.Ranks[1].Rank, ranks.Ranks[2].Rank}, "[1 2 5]")
	place := must(client.Score(ctx, "reads", &ranktree.ScoreQuery{Rank: 2}))(t)
	equal(t, "place", []any{place.Score, place.Tied}, "[[20] 2]")
	spread := must(client.Histogram(ctx, "reads", &ranktree.HistogramQuery{Edges: []int64{0, 15, 25}}))(t)
	equal(t, "histogram", []any{spread.Buckets[0].Count, spread.Buckets[1].Count}, "[1 2]")
	near := &ranktree.AroundQuery{Above: ranktree.Ptr[int64](1), Below: ranktree.Ptr[int64](0)}
	equal(t, "around", len(must(client.Around(ctx, "reads", "dave", near))(t).Entries), 2)
	trimmed := must(client.Trim(ctx, "reads", ranktree.TrimInput{PositionsBeyond: 3}, nil))(t)
	equal(t, "trimmed", trimmed.Removed, 1)
	equal(t, "cleared", must(client.Clear(ctx, "reads"))(t).Removed, 3)
	equal(t, "dropped", must(client.Drop(ctx, "reads"))(t).Dropped, true)
	status := must(client.Status(ctx))(t)
	equal(t, "status", []any{status.Ready, len(status.Shards), status.Shards[1].Shard}, "[true 2 1]")
}

func TestProblemsBecomeErrors(t *testing.T) {
	ctx, client := open(t)
	keys := []ranktree.KeyInput{{Name: "points", Min: ranktree.Ptr[int64](0), Max: ranktree.Ptr[int64](100)}}
	must(client.Define(ctx, "bounded", &ranktree.DefinitionInput{Keys: keys}))(t)
	_, err := client.Write(ctx, "bounded", "p42", ranktree.EntryInput{Score: ranktree.Score{101}}, nil)
	equal(t, "code", []any{code(err), errors.Is(err, ranktree.ErrRejected)}, "[out_of_range true]")
	job := ranktree.EntryInput{Score: ranktree.Score{1}, Version: ranktree.Ptr[uint64](7)}
	must(client.Write(ctx, "bounded", "p42", job, nil))(t)
	_, err = client.Write(ctx, "bounded", "p42", job, nil)
	equal(t, "code", code(err), ranktree.CodeStaleVersion)
	jobs := []ranktree.Job{
		{Board: "bounded", Member: "p1", Score: ranktree.Score{1}},
		{Board: "bounded", Member: "", Score: ranktree.Score{1}},
	}
	_, err = client.WriteMany(ctx, jobs, nil)
	var problem *ranktree.ProblemError
	if !errors.As(err, &problem) || !errors.Is(err, ranktree.ErrInvalid) {
		t.Fatal(err)
	}
	equal(t, "errors", []any{len(problem.Errors), problem.Errors[0].Index, problem.Errors[0].Code}, "[1 1 bad_member]")
	_, err = client.Define(ctx, "bounded", &ranktree.DefinitionInput{Ties: "last"})
	equal(t, "code", code(err), ranktree.CodeBoardDiffers)
	late := &ranktree.MemberQuery{After: "0:1000000", TimeoutMS: ranktree.Ptr[int64](1)}
	_, err = client.Member(ctx, "bounded", "p42", late)
	equal(t, "kind", errors.Is(err, ranktree.ErrNotYetApplied), true)
	var codes []string
	for reject, err := range client.AllRejects(ctx, &ranktree.RejectsQuery{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, reject.Reason)
	}
	equal(t, "rejects", codes, "[stale_version out_of_range]")
}

func TestNoNodeIsToldFromNoAnswer(t *testing.T) {
	job := ranktree.EntryInput{Score: ranktree.Score{1}}
	var failed *ranktree.ConnectionError
	_, err := clientOf(t, "http://"+servers.FreePort(t)).Write(t.Context(), "arena", "p42", job, nil)
	if !errors.As(err, &failed) || failed.MayBeApplied {
		t.Error(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	soon := ranktree.WithTimeout(200 * time.Millisecond)
	client := clientOf(t, "http://user:secret@"+silent.Addr().String(), soon, ranktree.WithRetries(1))
	_, err = client.Write(t.Context(), "arena", "p42", job, nil)
	if !errors.As(err, &failed) || !failed.MayBeApplied || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err = client.Member(t.Context(), "arena", "p42", nil); !errors.As(err, &failed) || failed.MayBeApplied {
		t.Error(err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = client.Member(ended, "arena", "p42", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// answering is a server that says what it is told to, one answer after the other.
func answering(t *testing.T, asked *atomic.Int64, answers ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := asked.Add(1) - 1
		status, body, _ := strings.Cut(answers[min(number, int64(len(answers)-1))], " ")
		w.Header().Set("Retry-After", "0")
		var code int
		fmt.Sscan(status, &code)
		w.WriteHeader(code)
		fmt.Fprint(w, strings.ReplaceAll(body, "%s", r.Header.Get("Authorization")))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestWhatIsSentAgain(t *testing.T) {
	job := ranktree.EntryInput{Score: ranktree.Score{1}}
	for _, one := range []struct {
		first string
		write int64
		read  int64
	}{
		{`503 {"code":"overloaded","detail":""}`, 2, 2},
		// Nobody knows what became of it, so that it is for the caller to decide.
		{`503 {"code":"commit_unknown","detail":""}`, 1, 1},
		{`503 {"code":"overloaded","detail":"","token":"0:1"}`, 1, 2},
		{`503 {"code":"shard_unavailable","detail":"","shards":[1]}`, 1, 2},
		{`500 {"code":"internal","detail":""}`, 1, 1},
		{`200 no JSON`, 1, 1},
	} {
		var writes, reads atomic.Int64
		last := `200 {"token":"%s"}`
		client := clientOf(t, answering(t, &writes, one.first, last), ranktree.WithBearer("rkt_abc"))
		written, err := client.Write(t.Context(), "arena", "p42", job, nil)
		equal(t, one.first, writes.Load(), one.write)
		if one.write > 1 {
			equal(t, "bearer", []any{written.Token, err}, "[Bearer rkt_abc <nil>]")
		} else if err == nil {
			t.Error(one.first)
		}
		_, _ = clientOf(t, answering(t, &reads, one.first, last)).Status(t.Context())
		equal(t, one.first, reads.Load(), one.read)
	}
	var asked atomic.Int64
	_, err := clientOf(t, answering(t, &asked, `503 {"code":"shard_unavailable","detail":"no","shards":[1,3]}`)).Status(t.Context())
	var problem *ranktree.ProblemError
	if !errors.As(err, &problem) || !slices.Equal(problem.Shards, []int64{1, 3}) || problem.RetryAfter != 0 {
		t.Error(err)
	}
	equal(t, "tries", asked.Load(), 3)
}

func TestAReadWaitsForAWriteOfAnotherClient(t *testing.T) {
	ctx, client := open(t)
	token := fill(t, client, "waits", map[string]int64{"p1": 1})
	shard, sequence := "", int64(0)
	fmt.Sscanf(strings.Replace(strings.Split(token, ",")[0], ":", " ", 1), "%s %d", &shard, &sequence)
	found := make(chan int64, 1)
	go func() {
		query := &ranktree.BoardQuery{After: fmt.Sprintf("%s:%d", shard, sequence+1), TimeoutMS: ranktree.Ptr[int64](60_000)}
		board, err := client.Board(ctx, "waits", query)
		if err != nil {
			t.Error(err)
			board = &ranktree.Board{}
		}
		found <- board.Totals["all"]
	}()
	number := int64(1)
	servers.Until(t, "the read is answered", func() bool {
		number++
		fill(t, client, "waits", map[string]int64{fmt.Sprint("p", number): number})
		return len(found) > 0
	})
	if total := <-found; total < 2 {
		t.Error(total)
	}
}
