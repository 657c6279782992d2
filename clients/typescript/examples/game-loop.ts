// A game's loop: matches end, scores are published, and players see where they stand.
//
//     node build/examples/game-loop.js                                    writes over HTTP
//     node build/examples/game-loop.js --nats nats://127.0.0.1:4222       publishes to NATS
//
// `npm run build && npm run build:test` compiles it. It needs a running node: `ranktree serve`, with `--nats`
// for the second.

import { parseArgs } from "node:util";

import { type Job, Ranktree, latest } from "ranktree-client";
import { Publisher } from "ranktree-client/nats";

const BOARD = "arena";
const PLAYERS = Array.from({ length: 40 }, (_, number) => `player-${number + 1}`);

/**
 * Four players fight, and each gets points. With its `version`, a repeated job counts once. That is enough
 * because one process plays all matches in their order: of two that overtake each other the older one is
 * refused, and its points are not added.
 */
function play(match: number): Job[] {
  const at = new Date();
  const first = Math.floor(Math.random() * PLAYERS.length);
  return [0, 7, 14, 21].map((step) => ({
    board: BOARD,
    member: PLAYERS[(first + step) % PLAYERS.length] as string,
    score: Math.floor(Math.random() * 101),
    op: "incr",
    version: match,
    at,
    meta: { match },
  }));
}

/** Shows the best three while matches are played, as they change. */
async function show(client: Ranktree, signal: AbortSignal): Promise<void> {
  try {
    for await (const state of client.live(BOARD, { top: 3, max_rate: 2, signal })) {
      const best = state.entries.map((entry) => `${entry.member} ${entry.score}`).join(", ");
      console.log(`[live] ${best}`);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function loop(
  url: string,
  nats: string | undefined,
  matches: number,
  bearer: string | undefined,
): Promise<void> {
  const client = new Ranktree(url, bearer === undefined ? {} : { bearer });
  // Before the first job, so that no job waits for it.
  await client.define(BOARD, { policy: "incr", ties: "first" });
  const publisher = nats === undefined ? undefined : await Publisher.connect(nats);
  const end = new AbortController();
  const showing = show(client, end.signal);
  // Of each player the token of the last write, so that a player's own reads are never older than that.
  const seen = new Map<string, string>();
  try {
    // A game goes on counting where it was. Versions of an earlier run are lower than these.
    const first = Date.now();
    for (let match = first; match < first + matches; match += 1) {
      const jobs = play(match);
      // If this process dies here, the next one publishes the match again under the same id.
      const token = publisher
        ? await publisher.publishMany(jobs, { messageId: `match-${match}` })
        : (await client.writeMany(jobs, { results: "changed" })).token;
      for (const { member } of jobs) seen.set(member, latest(seen.get(member), token) as string);
      const star = (jobs[0] as Job).member;
      const near = await client.around(BOARD, star, { above: 1, below: 1, after: seen.get(star) ?? token });
      for (const entry of near.entries) {
        console.log(`${entry.rank} ${entry.member} ${entry.score}${entry.member === star ? " <" : ""}`);
      }
    }
    console.log(`The best of ${(await client.board(BOARD)).totals.all}:`);
    for await (const entry of client.iterTop(BOARD, { limit: 100 })) {
      console.log(`${entry.rank} ${entry.member} ${entry.score}`);
      if (entry.position === 10) break;
    }
  } finally {
    await publisher?.close();
    end.abort();
    await showing;
  }
}

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:8080" },
    nats: { type: "string" },
    matches: { type: "string", default: "20" },
    bearer: { type: "string" },
  },
});
await loop(values.url as string, values.nats, Number(values.matches), values.bearer);
