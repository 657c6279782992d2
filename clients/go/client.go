package ranktree

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"
)

// Client writes and reads over HTTP, through any node. Many goroutines may use one at a time.
type Client struct {
	url     string
	called  string
	bearer  string
	timeout time.Duration
	retries int
	http    *http.Client
	// How long a watched board may be silent before its connection counts as lost.
	silence time.Duration
}

// Option is an option of [New].
type Option func(*Client)

// WithBearer is the token that the node asks for, if it does.
func WithBearer(token string) Option { return func(c *Client) { c.bearer = token } }

// WithTimeout is how long a request may take, 10 seconds unless it is given. A read with After gets the
// time that it may wait in addition.
func WithTimeout(timeout time.Duration) Option { return func(c *Client) { c.timeout = timeout } }

// WithRetries is how often a read is sent again if no answer came or the node was overloaded: twice,
// unless it is given. A write is sent again only if it certainly was not taken.
func WithRetries(retries int) Option { return func(c *Client) { c.retries = retries } }

// WithHTTP is a client of your own, for proxies or certificates.
func WithHTTP(client *http.Client) Option { return func(c *Client) { c.http = client } }

// New makes a client of the node at an address such as http://127.0.0.1:8080.
func New(url string, options ...Option) (*Client, error) {
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, fmt.Errorf("the address of a node begins with http:// or https://; got %q", url)
	}
	c := &Client{
		url:     strings.TrimRight(url, "/"),
		timeout: 10 * time.Second,
		retries: 2,
		silence: silence,
	}
	// Without what is secret in it.
	c.called = c.url[strings.LastIndex(c.url, "@")+1:]
	for _, option := range options {
		option(c)
	}
	if c.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		// A client talks to one host.
		transport.MaxIdleConnsPerHost = transport.MaxIdleConns
		stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.http = &http.Client{Transport: transport, CheckRedirect: stay}
	}
	return c, nil
}

// Close closes the connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Boards.

// Define creates a board, or changes what can be changed of it. Its definition may be nil.
func (c *Client) Define(ctx context.Context, board string, definition *DefinitionInput) (*DefinedBoard, error) {
	if definition == nil {
		definition = &DefinitionInput{}
	}
	return ask[DefinedBoard](ctx, c, http.MethodPut, path("boards", board), definition)
}

// Boards is a page of the boards, by name.
func (c *Client) Boards(ctx context.Context, query *BoardsQuery) (*BoardList, error) {
	return ask[BoardList](ctx, c, http.MethodGet, path("boards"), nil, query)
}

// Board is a board's definition, and how many entries it has.
func (c *Client) Board(ctx context.Context, board string, query *BoardQuery) (*Board, error) {
	return ask[Board](ctx, c, http.MethodGet, path("boards", board), nil, query)
}

// OpenSeason opens the next manual season of a board, at a time, or as soon as possible if that is zero.
// It is sent once, unless it certainly was not taken.
func (c *Client) OpenSeason(ctx context.Context, board string, at time.Time) (*OpenedSeason, error) {
	return ask[OpenedSeason](ctx, c, http.MethodPost, path("boards", board)+"/seasons", SeasonInput{At: at})
}

// Drop drops a board with all its entries.
func (c *Client) Drop(ctx context.Context, board string) (*DroppedBoard, error) {
	return ask[DroppedBoard](ctx, c, http.MethodDelete, path("boards", board), nil)
}

// Clear removes all entries; the definition stays.
func (c *Client) Clear(ctx context.Context, board string) (*RemovedEntries, error) {
	return ask[RemovedEntries](ctx, c, http.MethodPost, path("boards", board)+":clear", nil)
}

// Trim removes the entries behind a position, or those with a worse score: give one of the two.
func (c *Client) Trim(ctx context.Context, board string, what TrimInput, query *TrimBoardQuery) (*RemovedEntries, error) {
	return ask[RemovedEntries](ctx, c, http.MethodPost, path("boards", board)+":trim", what, query)
}

// Writes.

// Applied is the Wait of a write that is answered when it is applied.
const Applied = "applied"

// Write writes one job. With NATS, and without Wait of [Applied], the answer has a Token and nothing else.
func (c *Client) Write(ctx context.Context, board, member string, job EntryInput, query *PutMemberQuery) (*EntryWritten, error) {
	return ask[EntryWritten](ctx, c, http.MethodPut, path("boards", board, "members", member), job, query)
}

// WriteMany writes 1 to 1,000 jobs of any members. If one is invalid none is applied, and the Errors of
// the [ProblemError] say which. With NATS, and without Wait of [Applied], the answer has a Token only.
func (c *Client) WriteMany(ctx context.Context, jobs []Job, query *JobsQuery) (*JobsWritten, error) {
	return ask[JobsWritten](ctx, c, http.MethodPost, path("jobs"), jobs, query)
}

// Remove takes a member off a board.
func (c *Client) Remove(ctx context.Context, board, member string, query *DeleteMemberQuery) (*EntryWritten, error) {
	return ask[EntryWritten](ctx, c, http.MethodDelete, path("boards", board, "members", member), nil, query)
}

// RemoveEverywhere takes a member off every board.
func (c *Client) RemoveEverywhere(ctx context.Context, member string, query *DeleteEverywhereQuery) (*MemberRemoved, error) {
	return ask[MemberRemoved](ctx, c, http.MethodDelete, path("members", member), nil, query)
}

// Reads.

// Member is a member's score, rank, position and percentile; [ErrNotFound] if it is not on the board.
func (c *Client) Member(ctx context.Context, board, member string, query *MemberQuery) (*Entry, error) {
	return ask[Entry](ctx, c, http.MethodGet, path("boards", board, "members", member), nil, query)
}

// Around is a member and its neighbours.
func (c *Client) Around(ctx context.Context, board, member string, query *AroundQuery) (*Neighbours, error) {
	return ask[Neighbours](ctx, c, http.MethodGet, path("boards", board, "members", member, "around"), nil, query)
}

// Top is a page of the best, or of the worst if From is bottom.
func (c *Client) Top(ctx context.Context, board string, query *TopQuery) (*Page, error) {
	return ask[Page](ctx, c, http.MethodGet, path("boards", board, "top"), nil, query)
}

// Positions is a page from any position on, counted from 1.
func (c *Client) Positions(ctx context.Context, board string, position int64, query *PositionsQuery) (*Page, error) {
	return ask[Page](ctx, c, http.MethodGet, path("boards", board, "positions", fmt.Sprint(position)), nil, query)
}

// Range is a page of the entries whose first key lies between Min and Max.
func (c *Client) Range(ctx context.Context, board string, query *RangeQuery) (*Page, error) {
	return ask[Page](ctx, c, http.MethodGet, path("boards", board, "range"), nil, query)
}

// Lookup is up to 1,000 members among themselves: friends' boards.
func (c *Client) Lookup(ctx context.Context, board string, members []string, query *LookupQuery) (*Group, error) {
	return ask[Group](ctx, c, http.MethodPost, path("boards", board, "members")+":lookup", LookupInput{members}, query)
}

// Rank is the rank of a score, whether or not anybody has it.
func (c *Client) Rank(ctx context.Context, board string, score Score, query *RankQuery) (*Rank, error) {
	return ask[Rank](ctx, c, http.MethodGet, path("boards", board, "rank"), nil, scoreQuery{score}, query)
}

// Ranks are the ranks of up to 1,000 scores.
func (c *Client) Ranks(ctx context.Context, board string, scores []Score, query *RanksOfQuery) (*Ranks, error) {
	return ask[Ranks](ctx, c, http.MethodPost, path("boards", board, "ranks")+":of", ScoresInput{scores}, query)
}

// Score is the score at a Rank, a Position or a Percentile: give one of the three.
func (c *Client) Score(ctx context.Context, board string, query *ScoreQuery) (*Place, error) {
	return ask[Place](ctx, c, http.MethodGet, path("boards", board, "score"), nil, query)
}

// Count is how many entries lie between Min and Max.
func (c *Client) Count(ctx context.Context, board string, query *CountQuery) (*Count, error) {
	return ask[Count](ctx, c, http.MethodGet, path("boards", board, "count"), nil, query)
}

// Histogram is how scores are spread, over equal Buckets or between Edges.
func (c *Client) Histogram(ctx context.Context, board string, query *HistogramQuery) (*Histogram, error) {
	return ask[Histogram](ctx, c, http.MethodGet, path("boards", board, "histogram"), nil, query)
}

// Percentiles are the scores at some percentiles.
func (c *Client) Percentiles(ctx context.Context, board string, p []float64, query *PercentilesQuery) (*Percentiles, error) {
	return ask[Percentiles](ctx, c, http.MethodGet, path("boards", board, "percentiles"), nil, percentilesQuery{p}, query)
}

// MemberBoards is a member's entries on some boards, or a page of all.
func (c *Client) MemberBoards(ctx context.Context, member string, query *MemberBoardsQuery) (*MemberBoards, error) {
	return ask[MemberBoards](ctx, c, http.MethodGet, path("members", member), nil, query)
}

// Rejects is a page of the jobs that were refused, newest first.
func (c *Client) Rejects(ctx context.Context, query *RejectsQuery) (*RejectList, error) {
	return ask[RejectList](ctx, c, http.MethodGet, path("rejects"), nil, query)
}

// Status is the state of the node, and of every shard.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return ask[Status](ctx, c, http.MethodGet, path("status"), nil)
}

type scoreQuery struct {
	Score Score `query:"score"`
}

type percentilesQuery struct {
	P []float64 `query:"p"`
}

// All pages. Each page is at least as new as the one before, also if another node answers.

// AllTop goes over all entries from an end of a board on. Limit is the size of a page. After an error
// nothing more comes.
func (c *Client) AllTop(ctx context.Context, board string, query *TopQuery) iter.Seq2[ListedEntry, error] {
	return pages(query, func(asked *TopQuery) ([]ListedEntry, string, error) {
		page, err := c.Top(ctx, board, asked)
		if err != nil {
			return nil, "", err
		}
		asked.Cursor, err = page.NextCursor, follow(&asked.After, page.AsOf, asked.Partial)
		return page.Entries, page.NextCursor, err
	})
}

// AllRange goes over all entries between Min and Max. Limit is the size of a page.
func (c *Client) AllRange(ctx context.Context, board string, query *RangeQuery) iter.Seq2[ListedEntry, error] {
	return pages(query, func(asked *RangeQuery) ([]ListedEntry, string, error) {
		page, err := c.Range(ctx, board, asked)
		if err != nil {
			return nil, "", err
		}
		asked.Cursor, err = page.NextCursor, follow(&asked.After, page.AsOf, asked.Partial)
		return page.Entries, page.NextCursor, err
	})
}

// AllBoards goes over all boards, by name. Limit is the size of a page.
func (c *Client) AllBoards(ctx context.Context, query *BoardsQuery) iter.Seq2[ListedBoard, error] {
	return pages(query, func(asked *BoardsQuery) ([]ListedBoard, string, error) {
		page, err := c.Boards(ctx, asked)
		if err != nil {
			return nil, "", err
		}
		asked.Cursor, err = page.NextCursor, follow(&asked.After, page.AsOf, asked.Partial)
		return page.Boards, page.NextCursor, err
	})
}

// AllMemberBoards goes over a member's entries on all boards.
func (c *Client) AllMemberBoards(ctx context.Context, member string, query *MemberBoardsQuery) iter.Seq2[Entry, error] {
	return pages(query, func(asked *MemberBoardsQuery) ([]Entry, string, error) {
		page, err := c.MemberBoards(ctx, member, asked)
		if err != nil {
			return nil, "", err
		}
		asked.Cursor, err = page.NextCursor, follow(&asked.After, page.AsOf, asked.Partial)
		return page.Entries, page.NextCursor, err
	})
}

// AllRejects goes over all jobs that were refused, newest first. Limit is the size of a page.
func (c *Client) AllRejects(ctx context.Context, query *RejectsQuery) iter.Seq2[Reject, error] {
	return pages(query, func(asked *RejectsQuery) ([]Reject, string, error) {
		page, err := c.Rejects(ctx, asked)
		if err != nil {
			return nil, "", err
		}
		asked.Cursor = page.NextCursor
		return page.Rejects, page.NextCursor, nil
	})
}

func follow(after *string, asOf string, partial bool) error {
	if partial {
		return nil
	}
	latest, err := Latest(*after, asOf)
	*after = latest
	return err
}

// pages asks for one after the other. Each time it is gone over begins anew.
func pages[Q, T any](query *Q, next func(*Q) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		asked := new(Q)
		if query != nil {
			*asked = *query
		}
		for {
			found, cursor, err := next(asked)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, one := range found {
				if !yield(one, nil) {
					return
				}
			}
			if cursor == "" {
				return
			}
		}
	}
}
