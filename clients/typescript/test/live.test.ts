// A watched board, of a real node that is killed, stopped and not heard.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import {
  AccessError,
  ConnectionFailedError,
  type LiveQuery,
  type LiveState,
  NotFoundError,
  ProblemError,
  Ranktree,
} from "ranktree-client";

import { LossyLink, Node, freePort, until } from "./support.js";

let node: Node;
let client: Ranktree;

beforeEach(async () => {
  node = await Node.start(["--shards", "2"]);
  client = new Ranktree(node.url);
  await client.define("arena", { ties: "member" });
});
afterEach(async () => {
  await Promise.all(watches.splice(0).map((watch) => watch.close()));
  await node.kill();
});

const watches: Watch[] = [];

/** Watches beside the test, and keeps what it is shown. */
class Watch {
  readonly states: LiveState[] = [];
  readonly #controller = new AbortController();
  readonly ended: Promise<unknown>;

  constructor(client: Ranktree, options: LiveQuery = {}, board = "arena") {
    this.ended = this.#run(client.live(board, { max_rate: 20, ...options, signal: this.#controller.signal }));
    watches.push(this);
  }

  async #run(states: AsyncIterable<LiveState>): Promise<unknown> {
    try {
      for await (const state of states) this.states.push(state);
    } catch (error) {
      return error;
    }
    return undefined;
  }

  get last(): LiveState | undefined {
    return this.states[this.states.length - 1];
  }

  shows(what: string, is: (state: LiveState) => boolean): Promise<LiveState> {
    return until(what, () => (this.last && is(this.last) ? this.last : undefined));
  }

  async close(): Promise<void> {
    this.#controller.abort();
    await this.ended;
  }
}

function shown(state: LiveState): [string, number | bigint][] {
  return state.entries.map((entry) => [entry.member, entry.score as number | bigint]);
}

async function score(member: string, value: number | bigint): Promise<void> {
  await client.write("arena", member, { score: value });
}

test("the whole state comes first, and each further one has what changed", async () => {
  await score("alice", 3);
  const token = (await client.write("arena", "bob", { score: 2n ** 60n })).token;
  const watch = new Watch(client, { top: 2, members: ["nobody", "a,b c", "carol"], after: token });
  const first = await watch.shows("the state", () => true);
  assert.deepEqual(shown(first), [
    ["bob", 2n ** 60n],
    ["alice", 3],
  ]);
  assert.deepEqual([first.members, first.not_found], [[], ["nobody", "a,b c", "carol"]]);
  assert.deepEqual([first.board, first.window, first.total], ["arena", "all", 2]);

  await score("carol", 1);
  await score("a,b c", 0);
  const second = await watch.shows("the watched members", (state) => state.members.length === 2);
  assert.deepEqual(
    second.members.map((entry) => [entry.member, entry.position]),
    [
      ["a,b c", 4],
      ["carol", 3],
    ],
  );
  assert.deepEqual([second.not_found, second.total], [["nobody"], 4]);

  await score("carol", 9);
  const third = await watch.shows("carol in the top", (state) => state.entries[1]?.member === "carol");
  assert.deepEqual(shown(third), [
    ["bob", 2n ** 60n],
    ["carol", 9],
  ]);
  await client.remove("arena", "bob");
  await client.remove("arena", "a,b c");
  const fourth = await watch.shows(
    "who has left",
    (state) => state.total === 2 && state.not_found.length === 2,
  );
  assert.deepEqual(shown(fourth), [
    ["carol", 9],
    ["alice", 3],
  ]);
  assert.deepEqual(fourth.not_found, ["nobody", "a,b c"]);
  // States that were shown stay as they were.
  assert.deepEqual(shown(first), [
    ["bob", 2n ** 60n],
    ["alice", 3],
  ]);

  await client.clear("arena");
  await watch.shows("the cleared board", (state) => state.total === 0 && state.entries.length === 0);
});

test("what is shown is what a read finds, whatever happens", async () => {
  const watch = new Watch(client, { top: 10, members: ["p3", "p17"] });
  for (let turn = 0; turn < 300; turn += 1) {
    const member = `p${turn % 23}`;
    if (turn % 7 === 3) await client.remove("arena", member);
    else await score(member, (turn * 7919) % 50);
  }
  const page = await client.top("arena", { limit: 10 });
  const lookup = await client.lookup("arena", ["p3", "p17"]);
  const last = await watch.shows("the last write", (state) => state.as_of === page.as_of || isLike(state));
  function isLike(state: LiveState): boolean {
    return JSON.stringify(state.entries) === JSON.stringify(page.entries) && state.total === page.total;
  }
  assert.deepEqual(last.entries, page.entries);
  assert.equal(last.total, page.total);
  const places = (entries: { member: string; position: number }[]) => {
    return entries.map((entry) => `${entry.member} ${entry.position}`).sort();
  };
  assert.deepEqual(places(last.members), places(lookup.entries));
  assert.deepEqual([...last.not_found].sort(), [...lookup.not_found].sort());
});

test("a slow loop is told of the newest state at last", async () => {
  await score("p", 0);
  const seen: unknown[] = [];
  for await (const state of client.live("arena", { max_rate: 20 })) {
    seen.push(state.entries[0]?.score);
    if (seen.length === 1) for (let value = 1; value <= 100; value += 1) await score("p", value);
    if (state.entries[0]?.score === 100) break;
  }
  // How many it misses depends on how much the connection holds.
  assert.deepEqual(seen, [...new Set(seen)].sort((a, b) => Number(a) - Number(b)));
});

test("a lost connection is gone on with from the last event", async () => {
  const link = await LossyLink.open(node.port);
  await score("p", 1);
  const watch = new Watch(new Ranktree(`http://127.0.0.1:${link.port}`));
  await watch.shows("the state", (state) => state.entries[0]?.score === 1);
  link.sent = "";
  link.cut();
  await score("p", 2);
  await watch.shows("what came meanwhile", (state) => state.entries[0]?.score === 2);
  assert.match(link.sent, /last-event-id: [0-9a-f]{16}@\d+:\d+/i);
  assert.ok(watch.states.every((state) => !state.stale));
  link.close();
});

test("a killed node is waited for, and the state is stale meanwhile", async () => {
  await score("p", 1);
  const watch = new Watch(client, { members: ["p"] });
  await watch.shows("the state", () => true);
  await node.kill();
  const stale = await watch.shows("that it is stale", (state) => state.stale === true);
  assert.deepEqual(shown(stale), [["p", 1]]);
  await node.start();
  await watch.shows("that it is not stale any more", (state) => !state.stale);
  await score("p", 2);
  const last = await watch.shows("what came later", (state) => state.entries[0]?.score === 2);
  assert.equal(last.members[0]?.score, 2);
});

test("a node that shuts down ends the stream and not the loop", async () => {
  await score("p", 1);
  const watch = new Watch(client);
  await watch.shows("the state", () => true);
  await node.stop();
  await node.start();
  await score("p", 2);
  await watch.shows("what came later", (state) => state.entries[0]?.score === 2);
});

test("a connection on which nothing comes, not even a comment, is made again", async () => {
  const link = await LossyLink.open(node.port);
  await score("p", 1);
  const watch = new Watch(new Ranktree(`http://127.0.0.1:${link.port}`, { timeoutMs: 300 }));
  await watch.shows("the state", () => true);
  link.isDeaf = true;
  await score("p", 2);
  await until("the event is lost", () => link.lost > 0);
  const before = link.connections;
  await until("another connection", () => link.connections > before);
  link.isDeaf = false;
  await watch.shows("the lost event", (state) => state.entries[0]?.score === 2);
  link.close();
});

test("a dropped board ends the loop with its problem", async () => {
  await score("p", 1);
  const watch = new Watch(client);
  await watch.shows("the state", () => true);
  await client.drop("arena");
  const error = await watch.ended;
  assert.ok(error instanceof NotFoundError, String(error));
  assert.equal(error.code, "unknown_board");
  const again = await new Watch(client).ended;
  assert.ok(again instanceof NotFoundError);
  const wrong = await new Watch(client, { top: 1_000 }).ended;
  assert.ok(wrong instanceof ProblemError && wrong.status < 500, String(wrong));
});

test("without a node the loop fails as a read does", async () => {
  const absent = new Ranktree(`http://127.0.0.1:${await freePort()}`);
  assert.ok((await new Watch(absent).ended) instanceof ConnectionFailedError);
  // A token that never comes is told as with a read.
  const late = await new Watch(client, { after: "0:1000000", timeout_ms: 10 }).ended;
  assert.ok(late instanceof ProblemError && late.code === "not_yet_applied", String(late));
});

test("leaving the loop or a signal closes the connection", async () => {
  const link = await LossyLink.open(node.port);
  const watchers = async () => {
    const text = await (await fetch(`${node.url}/metrics`)).text();
    return Number(/^ranktree_live_watchers (\d+)$/m.exec(text)?.[1]);
  };
  const watching = new Ranktree(`http://127.0.0.1:${link.port}`);
  for await (const state of watching.live("arena")) {
    assert.equal(state.total, 0);
    assert.equal(await watchers(), 1);
    break;
  }
  await until("the node knows that the loop was left", async () => (await watchers()) === 0);
  const watch = new Watch(watching);
  await watch.shows("the state", () => true);
  await watch.close();
  await until("the node knows of the signal", async () => (await watchers()) === 0);
  assert.equal(((await watch.ended) as Error).name, "AbortError");
  link.close();
});

test("a token that does not allow it is told", async () => {
  const denied = () =>
    Promise.resolve(Response.json({ code: "invalid_token", detail: "no" }, { status: 401 }));
  assert.ok((await new Watch(new Ranktree("http://node", { fetch: denied })).ended) instanceof AccessError);
});

test("events are read from pieces of any size", async () => {
  const entry = (member: string, position: number) => ({ member, position, score: 1, rank: 1 });
  const state = {
    board: "arena",
    window: "all",
    total: 1,
    entries: [entry("日本\u2028", 1)],
    members: [],
    not_found: [],
    as_of: "0:1",
  };
  const events = [
    ": a comment\n\n",
    `event: state\r\nid: 1\r\nretry: 5\r\ndata: ${JSON.stringify(state)}\r\n\r\n`,
    "event: other\ndata: {}\n\nretry: soon\n\n",
    `id:2\nevent:changes\ndata:${JSON.stringify({
      ...state,
      total: 2,
      entries: [entry("a", 1), entry("日本\u2028", 2)],
      left: [],
      as_of: "0:2",
    })}\n\n`,
    "event: changes\nid: 3\ndata: {",
  ];
  const bytes = new TextEncoder().encode(events.join(""));
  for (const size of [1, 2, 7, bytes.length]) {
    const asked: (string | null)[] = [];
    const answer = (_: unknown, init?: RequestInit) => {
      asked.push(new Headers(init?.headers).get("Last-Event-ID"));
      const told = JSON.stringify({ status: 404, code: "unknown_board", detail: "it was dropped" });
      let rest = asked.length === 1 ? bytes : new TextEncoder().encode(`event: end\ndata: ${told}\n\n`);
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (rest.length === 0) return controller.close();
          controller.enqueue(rest.slice(0, size));
          rest = rest.slice(size);
        },
      });
      return Promise.resolve(new Response(body));
    };
    const watch = new Watch(new Ranktree("http://node", { fetch: answer }));
    const error = await watch.ended;
    assert.ok(error instanceof NotFoundError, String(error));
    // The event that was cut off is asked for again.
    assert.deepEqual(asked, [null, "2"]);
    assert.deepEqual(
      watch.last?.entries.map((one) => one.member),
      ["a", "日本\u2028"],
    );
    assert.equal(watch.states.length, size === bytes.length ? 1 : 2);
  }
});
