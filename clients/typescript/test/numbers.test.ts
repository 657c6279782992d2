// Doubles, infinities and great integers, with a real node.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ProblemError, Ranktree } from "ranktree-client";

import { Node } from "./support.js";

let node: Node;
let client: Ranktree;

before(async () => {
  node = await Node.start(["--shards", "2"]);
  client = new Ranktree(node.url);
});
after(() => node.kill());

test("infinities are written, read and watched", async () => {
  const keys = [{ name: "lap", type: "float" as const, min: -Infinity, max: Infinity }];
  const defined = await client.define("laps", { keys });
  assert.equal(defined.keys[0]?.type, "float");
  await client.write("laps", "p1", { score: Infinity });
  await client.writeMany([{ member: "p2", scores: { laps: -Infinity } }]);
  await client.write("laps", "p3", { score: 0.1 });
  assert.equal((await client.member("laps", "p1")).score, Infinity);
  const page = await client.range("laps", { min: -Infinity, max: Infinity });
  assert.deepEqual(
    page.entries.map((entry) => entry.score),
    [Infinity, 0.1, -Infinity],
  );
  assert.equal((await client.rank("laps", -Infinity)).rank, 3);
  assert.equal((await client.ranks("laps", [Infinity])).ranks[0]?.score, Infinity);
  for await (const state of client.live("laps", { members: ["p2"] })) {
    assert.deepEqual([state.entries[0]?.score, state.members[0]?.score], [Infinity, -Infinity]);
    break;
  }
  // What was read can be sent back.
  for (const { member, score } of page.entries) {
    assert.equal((await client.write("laps", member, { score })).entry?.score, score);
  }
  await assert.rejects(client.write("laps", "p1", { score: NaN }), RangeError);
  await assert.rejects(client.rank("laps", NaN), RangeError);
  await assert.rejects(client.live("laps", { top: NaN }).next(), RangeError);
  await assert.rejects(client.write("laps", "p1", { score: 1, meta: { a: Infinity } }), RangeError);
});

test("great doubles go there and back, and integers are not rounded", async () => {
  await client.define("great", { keys: [{ name: "mass", type: "float" }] });
  for (const score of [1e300, -1e300, 2 ** 64, -(2 ** 70)]) {
    const written = await client.write("great", "p1", { score });
    assert.equal(written.entry?.score, score);
    assert.equal((await client.rank("great", score)).tied, 1);
  }
  // Between, a number may be an integer that was rounded; a bigint is as good a double.
  for (const score of [2 ** 53, 2 ** 62, -(2 ** 63)]) {
    await assert.rejects(client.write("great", "p1", { score }), RangeError);
    const written = await client.write("great", "p1", { score: BigInt(score) });
    assert.equal(written.entry?.score, score);
  }
  await client.define("whole");
  await assert.rejects(client.write("whole", "p1", { score: 2 ** 62 }), RangeError);
  await assert.rejects(client.write("whole", "p1", { score: 1, version: 2 ** 63 }), RangeError);
  for (const score of [2 ** 64, 1e300, Infinity]) {
    const refused = (error: unknown) => error instanceof ProblemError && error.code === "bad_score";
    await assert.rejects(client.write("whole", "p1", { score }), refused);
  }
});

test("boards that are named as fields are beside each other", async () => {
  const score = 2n ** 60n;
  const scores = { score, min: score, meta: score, max: 7, with: score };
  await client.writeMany([{ member: "p1", scores }]);
  const page = await client.top("score", { with: Object.keys(scores) });
  const beside = Object.entries(page.entries[0]?.with ?? {}).map(([board, entry]) => [board, entry?.score]);
  assert.deepEqual(Object.fromEntries(beside), scores);
  const group = await client.lookup("score", ["p1"]);
  assert.equal(group.entries[0]?.score, score);
  const combined = await client.combine({ boards: { score: 1, min: 2 }, member: "p1" });
  assert.deepEqual([combined.entries[0]?.score, combined.member?.score], [3n * score, 3n * score]);
});

test("versions, and errors of a top_k board, are integers", async () => {
  const version = 2n ** 64n - 1n;
  await client.write("versions", "p1", { score: 1, version });
  assert.equal((await client.member("versions", "p1", { version: true })).version, version);
  assert.equal((await client.top("versions", { version: true })).entries[0]?.version, version);
  await client.define("counted", { kind: "top_k", capacity: 1 });
  // Of one shard, so that the second takes the first one's place, and its count as its error.
  const members = Array.from({ length: 8 }, (_, number) => `p${number}`);
  for (const member of members) await client.write("counted", member, { score: 2n ** 58n });
  const [first] = (await client.top("counted")).entries;
  assert.equal(typeof first?.error, "bigint");
  assert.ok((first?.error ?? 0) >= 2n ** 58n);
});

test("entries of several windows have a type of their own", async () => {
  await client.define("sliced", { windows: ["all", "day"] });
  await client.write("sliced", "p1", { score: 2n ** 60n });
  const one = await client.member("sliced", "p1", { window: "day" });
  assert.equal(one.rank, 1);
  const several = await client.member("sliced", "p1", { windows: "*" });
  // @ts-expect-error An answer by windows has no rank of its own.
  assert.equal(several.rank, undefined);
  assert.deepEqual(
    Object.values(several.windows).map((entry) => entry?.score),
    [2n ** 60n, 2n ** 60n],
  );
});
