// The HTTP client against a real node.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, test } from "node:test";

import {
  AccessError,
  ConnectionFailedError,
  InvalidError,
  type Job,
  NotFoundError,
  NotYetAppliedError,
  ProblemError,
  Ranktree,
  RejectedError,
  UnavailableError,
} from "ranktree-client";

import { Node, freePort, listen, until } from "./support.js";

let node: Node;
let client: Ranktree;

before(async () => {
  // Without NATS, for tests that use boards of their own.
  node = await Node.start(["--shards", "2"]);
  client = new Ranktree(node.url);
});
after(() => node.kill());

async function fill(board: string, scores: [string, number][]): Promise<string> {
  const jobs: Job[] = scores.map(([member, score]) => ({ board, member, score }));
  return (await client.writeMany(jobs)).token;
}

async function all<T>(found: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of found) list.push(one);
  return list;
}

async function thrown<T>(kind: abstract new (...given: never[]) => T, work: Promise<unknown>): Promise<T> {
  const error: unknown = await work.then(
    () => assert.fail("nothing was thrown"),
    (why: unknown) => why,
  );
  assert.ok(error instanceof kind, String(error));
  return error;
}

/** A `fetch` that answers what it is given. */
function answers(...given: Response[]): { fetch: typeof fetch; seen: Request[] } {
  const seen: Request[] = [];
  const answer = (input: string | URL | Request, init?: RequestInit) => {
    seen.push(new Request(input, init));
    const next = given.shift();
    return next ? Promise.resolve(next) : Promise.reject(new TypeError("no answer is left"));
  };
  return { fetch: answer, seen };
}

test("a write is read back", async () => {
  await client.define("written", { policy: "best", ties: "member" });
  const at = new Date("2026-11-20T09:59:58Z");
  const job = { score: 1200, at, meta: { car: "mx5" } };
  const written = await client.write("written", "p42", job, { wait: "applied" });
  assert.equal(written.changed, true);
  assert.equal(written.previous, null);
  const entry = await client.member("written", "p42", { after: written.token });
  assert.deepEqual([entry.score, entry.rank, entry.total], [1200, 1, 1]);
  assert.deepEqual([entry.updated_at, entry.meta], ["2026-11-20T09:59:58Z", { car: "mx5" }]);
  assert.equal((await client.remove("written", "p42")).changed, true);
  const error = await thrown(NotFoundError, client.member("written", "p42"));
  assert.deepEqual([error.status, error.code, error.name], [404, "unknown_member", "NotFoundError"]);
});

test("a manual season is opened", async () => {
  await client.define("league", { windows: ["all", "season"], season: "manual" });
  const opened = await client.openSeason("league", { at: new Date("2100-01-01T00:00:00Z") });
  assert.deepEqual([opened.season, opened.begin], ["s1", "2100-01-01T00:00:00Z"]);
  assert.equal((await thrown(RejectedError, client.openSeason("league"))).code, "season_conflict");
});

test("a planned season is moved and cancelled", async () => {
  await client.define("planned", { windows: ["all", "season"], season: "manual" });
  const { season } = await client.openSeason("planned", { at: new Date("2100-01-01T00:00:00Z") });
  const moved = await client.moveSeason("planned", season, { at: new Date("2100-02-01T00:00:00Z") });
  assert.deepEqual([moved.season, moved.begin], [season, "2100-02-01T00:00:00Z"]);
  const cancelled = await client.cancelSeason("planned", season);
  assert.equal(cancelled.cancelled, true);
  assert.deepEqual((await client.board("planned")).planned_seasons ?? [], []);
});

test("who is hidden is listed", async () => {
  await fill("moderated", [
    ["p1", 1],
    ["p2", 2],
  ]);
  const jobs: Job[] = ["p1", "p2"].map((member) => ({ board: "moderated", member, op: "hide" }));
  await client.writeMany(jobs);
  const [first] = (await client.hidden({ member: "p1" })).hidden;
  assert.deepEqual([first?.member, first?.board], ["p1", "moderated"]);
  const bans = await all(client.iterHidden({ board: "moderated", limit: 1 }));
  assert.deepEqual(
    bans.map((ban) => ban.member),
    ["p1", "p2"],
  );
});

test("a board that is read-only refuses writes until it is not", async () => {
  await client.define("frozen");
  const reason = "the final is over";
  const set = await client.setReadOnly({ board: "frozen", readonly: true, reason });
  assert.deepEqual([set.readonly, set.reason], [true, reason]);
  const refused = await thrown(AccessError, client.write("frozen", "p1", { score: 1 }));
  assert.equal(refused.code, "read_only");
  await client.setReadOnly({ board: "frozen", readonly: false });
  assert.equal((await client.write("frozen", "p1", { score: 1 })).changed, true);
});

test("boards are ranked together", async () => {
  await fill("chess", [
    ["p1", 10],
    ["p2", 20],
    ["p3", 30],
  ]);
  await fill("go", [["p1", 100]]);
  const what = { boards: { chess: 1, go: 2 }, limit: 1 };
  const page = await client.combine({ ...what, member: "p3" });
  assert.deepEqual([page.total, page.entries[0]?.score, page.member?.rank], [3, 210, 2]);
  const found = await all(client.iterCombine(what));
  assert.deepEqual(
    found.map((entry) => [entry.member, entry.score]),
    [
      ["p1", 210],
      ["p3", 30],
      ["p2", 20],
    ],
  );
  const rest = await all(client.iterCombine({ ...what, cursor: page.next_cursor ?? "" }));
  assert.equal(rest.length, 2);
});

test("ids of members survive the path", async () => {
  const members = [
    "a/b",
    "...",
    "日本",
    "with space",
    "%2F",
    "?a=b&c",
    "#",
    "a+b",
    ":lookup",
    "é\\\"'",
    "%2E%2E",
  ];
  for (const [number, member] of members.entries()) {
    await client.write("ids", member, { score: number });
    assert.equal((await client.member("ids", member)).member, member);
    assert.equal((await client.around("ids", member)).entries[0]?.member, member);
    assert.equal((await client.memberBoards(member, { boards: ["ids"] })).entries[0]?.member, member);
  }
  assert.equal((await client.board("ids")).totals.all, members.length);
  for (const member of members) await client.removeEverywhere(member);
  assert.equal((await client.board("ids")).totals.all, 0);
});

test("an id that no URL can hold is refused and reaches no other route", async () => {
  await client.define("dots");
  for (const member of [".", "..", ""]) {
    await assert.rejects(client.remove("dots", member), RangeError);
    await assert.rejects(client.removeEverywhere(member), RangeError);
  }
  await client.writeMany([{ board: "dots", member: "..", score: 7 }]);
  assert.equal((await client.lookup("dots", [".."])).entries[0]?.score, 7);
});

test("integers are exact up to 64 bits", async () => {
  const [most, least] = [2n ** 63n - 1n, -(2n ** 63n)];
  await client.define("exact", { keys: [{ name: "points", min: -(2n ** 62n) }, { name: "time" }] });
  const scores: [number | bigint, number | bigint][] = [
    [most, least],
    [2n ** 53n + 1n, 5],
    [2n ** 53n, 4],
  ];
  for (const [number, score] of scores.entries()) {
    const meta = { score: String(2n ** 60n) };
    const written = await client.write("exact", `p${number}`, { score, meta }, { wait: "applied" });
    assert.deepEqual(written.entry?.score, score);
    // What callers keep there is theirs.
    assert.deepEqual(written.entry?.meta, meta);
  }
  assert.equal((await client.rank("exact", [2n ** 53n + 1n, 5])).rank, 2);
  assert.equal((await client.ranks("exact", [[2n ** 53n, 4]])).ranks[0]?.rank, 3);
  assert.equal((await client.board("exact")).keys[0]?.min, -(2n ** 62n));
  assert.deepEqual((await client.percentiles("exact", [100])).percentiles[0]?.score, [most, least]);
  // Each integer has one form, so that they can be compared.
  await client.write("forms", "p1", { score: BigInt(Number.MAX_SAFE_INTEGER), version: 2n ** 64n - 1n });
  assert.equal((await client.member("forms", "p1")).score, Number.MAX_SAFE_INTEGER);
  const stale = client.write("forms", "p1", { score: 1, version: 2n ** 64n - 2n });
  assert.equal((await thrown(RejectedError, stale)).code, "stale_version");
});

test("numbers that may have been rounded are not sent", async () => {
  const writing = (score: number, more = {}) => client.write("rounded", "p1", { score, ...more });
  await assert.rejects(
    writing(2 ** 53),
    (error) => error instanceof RangeError && error.message.includes("bigint"),
  );
  await assert.rejects(client.rank("rounded", 2 ** 60), RangeError);
  await assert.rejects(writing(NaN), RangeError);
  await assert.rejects(writing(1, { meta: { a: 1n } }), TypeError);
  await assert.rejects(writing(1, { at: new Date("no") }), RangeError);
  // A fraction is for the service to refuse.
  const error = await thrown(InvalidError, client.write("rounded", "p1", { score: 1.5 }));
  assert.equal(error.code, "bad_score");
});

test("boards may be named as the fields of answers", async () => {
  const scores = { meta: 2n ** 60n, score: 2n ** 61n, job: 1 };
  const written = await client.writeMany([{ member: "p1", scores }], { wait: "applied" });
  const boards = written.results?.[0]?.boards as Record<string, { entry: { score: bigint } }>;
  const found = Object.entries(boards).map(([board, change]) => [board, change.entry.score]);
  assert.deepEqual(Object.fromEntries(found), scores);
});

test("pages are iterated without a gap", async () => {
  // Ties everywhere.
  const scores = Array.from({ length: 500 }, (_, number): [string, number] => [
    `p${String(number).padStart(3, "0")}`,
    Math.floor(number / 3),
  ]);
  await fill("pages", scores);
  const positions = Array.from({ length: 500 }, (_, index) => index + 1);
  const best = await all(client.iterTop("pages", { limit: 37 }));
  assert.deepEqual(
    best.map((entry) => entry.position),
    positions,
  );
  const worst = await all(client.iterTop("pages", { limit: 499, from: "bottom" }));
  assert.deepEqual(
    worst.map((entry) => entry.position),
    positions.reverse(),
  );
  const middle = await all(client.iterRange("pages", { min: 10, max: 20, limit: 7 }));
  const expected = Array.from({ length: 33 }, (_, index) => 20 - Math.floor(index / 3));
  assert.deepEqual(
    middle.map((entry) => entry.score),
    expected,
  );
  assert.equal((await client.count("pages", { min: 10, max: 20 })).count, 33);
  const names = (await all(client.iterBoards({ limit: 1 }))).map((board) => board.board);
  assert.ok(names.includes("pages"));
  assert.deepEqual(names, [...names].sort());
  const boards = await all(client.iterMemberBoards("p007"));
  assert.deepEqual(
    boards.map((entry) => entry.board),
    ["pages"],
  );
});

test("every read answers", async () => {
  const token = await fill("reads", [
    ["alice", 30],
    ["bob", 20],
    ["carol", 20],
    ["dave", 10],
  ]);
  const page = await client.top("reads", { limit: 2, after: token });
  assert.deepEqual(
    page.entries.map((entry) => entry.member),
    ["alice", "bob"],
  );
  assert.deepEqual(
    (await client.positions("reads", 3)).entries.map((entry) => entry.rank),
    [2, 4],
  );
  const group = await client.lookup("reads", ["dave", "alice", "nobody"]);
  assert.deepEqual(
    group.entries.map((entry) => [entry.member, entry.group_rank]),
    [
      ["alice", 1],
      ["dave", 2],
    ],
  );
  assert.deepEqual(group.not_found, ["nobody"]);
  assert.deepEqual(
    (await client.ranks("reads", [31, 20, 0])).ranks.map((rank) => rank.rank),
    [1, 2, 5],
  );
  const place = await client.score("reads", { rank: 2 });
  assert.deepEqual([place.score, place.tied], [20, 2]);
  const buckets = (await client.histogram("reads", { edges: [0, 15, 25] })).buckets;
  assert.deepEqual(
    buckets.map((bucket) => bucket.count),
    [1, 2],
  );
  assert.equal((await client.percentiles("reads", [10, 50, 99.9])).percentiles.length, 3);
  await fill("reads-too", [["alice", 1]]);
  const boards = await client.memberBoards("alice", { boards: ["reads", "reads-too"] });
  assert.deepEqual(
    boards.entries.map((entry) => entry.board),
    ["reads", "reads-too"],
  );
  assert.equal((await client.around("reads", "dave", { above: 1, below: 0 })).entries.length, 2);
  assert.equal((await client.trim("reads", { positions_beyond: 3 })).removed, 1);
  assert.equal((await client.clear("reads")).removed, 3);
  assert.equal((await client.drop("reads")).dropped, true);
  assert.equal((await client.status()).ready, true);
});

test("problems become errors", async () => {
  await client.define("bounded", { keys: [{ name: "points", min: 0, max: 100 }] });
  const rejected = await thrown(RejectedError, client.write("bounded", "p42", { score: 101 }));
  assert.equal(rejected.code, "out_of_range");
  await client.write("bounded", "p42", { score: 1, version: 7 });
  const stale = await thrown(RejectedError, client.write("bounded", "p42", { score: 1, version: 7 }));
  assert.equal(stale.code, "stale_version");
  const jobs: Job[] = ["p1", ""].map((member) => ({ board: "bounded", member, score: 1 }));
  const invalid = await thrown(InvalidError, client.writeMany(jobs));
  assert.deepEqual(
    invalid.errors.map((error) => [error.index, error.code]),
    [[1, "bad_member"]],
  );
  const differs = await thrown(RejectedError, client.define("bounded", { ties: "last" }));
  assert.equal(differs.code, "board_differs");
  const late = client.member("bounded", "p42", { after: "0:1000000", timeout_ms: 1 });
  assert.equal((await thrown(NotYetAppliedError, late)).code, "not_yet_applied");
  const reasons = (await all(client.iterRejects({ limit: 1 }))).map((reject) => reject.reason);
  assert.ok(reasons.includes("stale_version") && reasons.includes("out_of_range"));
});

test("no node is told from no answer", async () => {
  const absent = new Ranktree(`http://127.0.0.1:${await freePort()}`, { retries: 1 });
  const nobody = await thrown(ConnectionFailedError, absent.write("arena", "p42", { score: 1 }));
  assert.equal(nobody.mayBeApplied, false);
  const silent = createServer();
  const url = `http://127.0.0.1:${await listen(silent)}`;
  const deaf = new Ranktree(url, { timeoutMs: 200, retries: 0 });
  const unknown = await thrown(ConnectionFailedError, deaf.write("arena", "p42", { score: 1 }));
  assert.equal(unknown.mayBeApplied, true);
  assert.match(unknown.message, /no answer within 200 ms/);
  const read = await thrown(ConnectionFailedError, deaf.member("arena", "p42"));
  assert.equal(read.mayBeApplied, false);
  silent.close();
});

test("a signal ends a call with its own reason", async () => {
  const silent = createServer();
  const deaf = new Ranktree(`http://127.0.0.1:${await listen(silent)}`);
  const controller = new AbortController();
  const reading = deaf.top("arena", { signal: controller.signal });
  controller.abort(new Error("the player has left"));
  await assert.rejects(reading, /the player has left/);
  await assert.rejects(deaf.top("arena", { signal: controller.signal }), /the player has left/);
  silent.close();
});

test("an overloaded node is asked again", async () => {
  const told = { code: "overloaded", detail: "too many requests" };
  const refused = () => Response.json(told, { status: 503, headers: { "Retry-After": "0" } });
  const { fetch, seen } = answers(refused(), Response.json({ token: "0:1" }));
  const asking = new Ranktree("http://node", { fetch });
  assert.equal((await asking.write("arena", "p42", { score: 1 })).token, "0:1");
  assert.equal(seen.length, 2);
  // Nobody knows what became of it, so that it is for the caller to decide.
  const unknown = answers(Response.json({ ...told, code: "commit_unknown" }, { status: 503 }));
  const writing = new Ranktree("http://node", unknown).write("arena", "p42", { score: 1 });
  assert.equal((await thrown(UnavailableError, writing)).code, "commit_unknown");
  assert.equal(unknown.seen.length, 1);
  const never = answers(refused(), refused(), refused());
  await thrown(UnavailableError, new Ranktree("http://node", never).top("arena"));
  assert.equal(never.seen.length, 3);
});

test("a bearer token is sent, and what others answer is told", async () => {
  const { fetch, seen } = answers(Response.json({ token: "0:1" }), new Response("<html>", { status: 502 }));
  const asking = new Ranktree("http://node", { bearer: "rkt_abc", fetch });
  await asking.write("arena", "p42", { score: 1 });
  assert.equal(seen[0]?.headers.get("Authorization"), "Bearer rkt_abc");
  const error = await thrown(ProblemError, asking.top("arena"));
  assert.deepEqual([error.status, error.code], [502, "unknown"]);
  const denied = answers(Response.json({ code: "unauthorized", detail: "no" }, { status: 401 }));
  await thrown(AccessError, new Ranktree("http://node", denied).top("arena"));
});

test("a read waits for a write of another client", async () => {
  const first = await fill("waits", [["p1", 1]]);
  const [shard, sequence] = (first.split(",")[0] as string).split(":");
  const token = `${shard}:${Number(sequence) + 1}`;
  let found = 0;
  const reading = new Ranktree(node.url)
    .board("waits", { after: token, timeout_ms: 60_000 })
    .then((board) => {
      found = board.totals.all ?? 0;
    });
  let number = 1;
  await until("the read is answered", async () => {
    number += 1;
    await fill("waits", [[`p${number}`, number]]);
    return found > 1;
  });
  await reading;
});
