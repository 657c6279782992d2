// A game's loop: matches end, scores are published, and players see where they stand.
//
//	go run ./examples/game                                     writes over HTTP
//	go run ./examples/game -nats nats://127.0.0.1:4222         publishes to NATS
//
// It needs a running node: ranktree serve, with --nats for the second.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"time"

	"ranktree"
	"ranktree/nats"
)

const board = "arena"

// play has four players fight, and each gets points. With its version, a repeated job counts once. That is
// enough because one process plays all matches in their order: of two that overtake each other the older one
// is refused, and its points are not added.
func play(match uint64, players []string) []ranktree.Job {
	at := time.Now()
	var jobs []ranktree.Job
	for _, number := range rand.Perm(len(players))[:4] {
		jobs = append(jobs, ranktree.Job{
			Board:   board,
			Member:  players[number],
			Score:   ranktree.Score{rand.Int64N(101)},
			Op:      "incr",
			Version: &match,
			At:      at,
			Meta:    map[string]any{"match": match},
		})
	}
	return jobs
}

func main() {
	url := flag.String("url", "http://127.0.0.1:8080", "a node")
	server := flag.String("nats", "", "publish to this NATS server instead of writing over HTTP")
	matches := flag.Uint64("matches", 20, "")
	bearer := flag.String("bearer", "", "the token that the node asks for")
	flag.Parse()
	if err := loop(context.Background(), *url, *server, *matches, *bearer); err != nil {
		log.Fatal(err)
	}
}

func loop(ctx context.Context, url, server string, matches uint64, bearer string) error {
	client, err := ranktree.New(url, ranktree.WithBearer(bearer))
	if err != nil {
		return err
	}
	defer client.Close()
	// Before the first job, so that no job waits for it.
	definition := &ranktree.DefinitionInput{Policy: "incr", Ties: "first"}
	if _, err := client.Define(ctx, board, definition); err != nil {
		return err
	}
	var publisher *nats.Publisher
	if server != "" {
		if publisher, err = nats.Connect(ctx, server); err != nil {
			return err
		}
		defer publisher.Close(ctx)
	}
	var players []string
	for number := range 40 {
		players = append(players, fmt.Sprintf("player-%d", number+1))
	}
	// Of each player the token of the last write, so that a player's own reads are never older than that.
	seen := map[string]string{}
	// A game goes on counting where it was. Versions of an earlier run are lower than these.
	first := uint64(time.Now().UnixMilli())
	for match := first; match < first+matches; match++ {
		jobs := play(match, players)
		var token string
		if publisher != nil {
			// If this process dies here, the next one publishes the match again under the same id.
			id := nats.MessageID(fmt.Sprintf("match-%d", match))
			if token, err = publisher.PublishMany(ctx, jobs, id); err != nil {
				return err
			}
		} else {
			written, err := client.WriteMany(ctx, jobs, &ranktree.JobsQuery{Results: "changed"})
			if err != nil {
				return err
			}
			token = written.Token
		}
		for _, job := range jobs {
			if seen[job.Member], err = ranktree.Latest(seen[job.Member], token); err != nil {
				return err
			}
		}
		star := jobs[0].Member
		query := &ranktree.AroundQuery{
			Above: ranktree.Ptr[int64](1),
			Below: ranktree.Ptr[int64](1),
			After: cmp.Or(seen[star], token),
		}
		near, err := client.Around(ctx, board, star, query)
		if err != nil {
			return err
		}
		for _, entry := range near.Entries {
			mark := " "
			if entry.Member == star {
				mark = "<"
			}
			fmt.Printf("%5d  %-12s %8d %s\n", entry.Rank, entry.Member, entry.Score[0], mark)
		}
		fmt.Println()
	}
	whole, err := client.Board(ctx, board, nil)
	if err != nil {
		return err
	}
	fmt.Printf("The best of %d:\n", whole.Totals["all"])
	for entry, err := range client.AllTop(ctx, board, &ranktree.TopQuery{Limit: 100}) {
		if err != nil {
			return err
		}
		fmt.Printf("%5d  %-12s %8d\n", entry.Rank, entry.Member, entry.Score[0])
		if entry.Position == 10 {
			break
		}
	}
	return nil
}
