// The publisher against a real nats-server and a real node.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { inspect } from "node:util";

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import {
  ConnectionFailedError,
  InvalidError,
  type Job,
  PublishError,
  PublishManyError,
  Ranktree,
  RanktreeError,
  UnavailableError,
  latest,
  shardOf,
} from "ranktree-client";
import { Publisher } from "ranktree-client/nats";

import { LossyLink, Nats, Node, ROOT, scratch, until } from "./support.js";

const open: { close(): unknown }[] = [];
let nats: Nats;
let node: Node;
let client: Ranktree;

beforeEach(async () => {
  nats = await Nats.start();
  node = await Node.start(["--nats", nats.url, "--shards", "3"]);
  client = new Ranktree(node.url);
  // Jobs for a board that does not exist wait for its definition, and tokens do not wait for that.
  await client.define("arena");
});
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
  await node.kill();
  await nats.kill();
});

/** Closes it after the test, whatever comes of that. */
function closing<T extends { close(): unknown }>(one: T): T {
  open.push(one);
  return one;
}

async function publisherOf(...[url, options]: Parameters<typeof Publisher.connect>): Promise<Publisher> {
  return closing(await Publisher.connect(url, options));
}

function job(member: string, score: number | bigint = 1, op: "incr" | "set" = "incr"): Job {
  return { board: "arena", member, score, op };
}

function membersOf(shard: number, shards: number, count: number): string[] {
  const members = Array.from({ length: 10_000 }, (_, number) => `p${number}`);
  return members.filter((member) => shardOf(member, shards) === shard).slice(0, count);
}

/** The last sequence of each shard's stream. */
async function lastSequences(): Promise<number[]> {
  const connection = await connect({ servers: nats.url });
  const manager = await jetstreamManager(connection);
  const infos = await Promise.all([0, 1, 2].map((shard) => manager.streams.info(`RANKTREE_JOBS_${shard}`)));
  await connection.close();
  return infos.map((info) => info.state.last_seq);
}

async function lastOf(shard: number): Promise<number> {
  return (await lastSequences())[shard] as number;
}

test("a published job is ranked", async () => {
  const publisher = await publisherOf(nats.url);
  assert.equal(publisher.shards, 3);
  const token = await publisher.publish(job("p42", 1200));
  assert.equal(token.split(":")[0], "1");
  const entry = await client.member("arena", "p42", { after: token });
  assert.deepEqual([entry.score, entry.rank], [1200, 1]);
  // An answer over HTTP is 202 there: a token, and nothing else.
  const accepted = await client.write("arena", "p42", { score: 5, op: "incr" });
  assert.deepEqual(Object.keys(accepted), ["token"]);
  const after = latest(token, accepted.token) as string;
  assert.equal((await client.member("arena", "p42", { after })).score, 1205);
});

test("an id counts once", async () => {
  const publisher = await publisherOf(nats.url);
  const tokens = new Set<string>();
  for (let turn = 0; turn < 3; turn += 1) {
    tokens.add(await publisher.publish(job("p42"), { messageId: "match-8841-p42" }));
  }
  const [token] = [...tokens];
  assert.equal(tokens.size, 1);
  assert.equal((await client.member("arena", "p42", { after: token as string })).score, 1);
  const jobs = Array.from({ length: 2_500 }, (_, number) => job(`p${number}`));
  const first = await publisher.publishMany(jobs, { messageId: "match-8842" });
  assert.equal(await publisher.publishMany(jobs, { messageId: "match-8842" }), first);
  assert.equal((await client.board("arena", { after: first })).totals.all, 2_500);
  assert.equal((await client.rank("arena", 1)).better, 1, "p42 has two points, and nobody else");
});

test("jobs of the same moment share messages, and keep their order", async () => {
  const before = await lastSequences();
  const publisher = await publisherOf(nats.url, { maxWaiting: 5_000 });
  const tokens = await Promise.all(
    Array.from({ length: 7_000 }, (_, number) => publisher.publish(job(`p${number % 700}`, number, "set"))),
  );
  const after = latest(...tokens) as string;
  // Each member's jobs stayed in their order: the last one stands.
  const scores = new Map<string, unknown>();
  for await (const entry of client.iterTop("arena", { limit: 1_000, after }))
    scores.set(entry.member, entry.score);
  const expected = Array.from({ length: 700 }, (_, number): [string, unknown] => [
    `p${number}`,
    6_300 + number,
  ]);
  assert.deepEqual([...scores].sort(), expected.sort());
  const messages = (await lastSequences()).reduce(
    (sum, last, shard) => sum + last - (before[shard] as number),
    0,
  );
  assert.ok(messages < 100, `${messages} messages for 7,000 jobs`);
});

test("a job with an id has a message of its own", async () => {
  const before = await lastOf(1);
  const [member] = membersOf(1, 3, 1) as [string];
  const publisher = await publisherOf(nats.url);
  const ids = Array.from({ length: 50 }, (_, number) => `match-${number}`);
  const tokens = await Promise.all(ids.map((messageId) => publisher.publish(job(member), { messageId })));
  assert.deepEqual(
    tokens,
    ids.map((_, number) => `1:${before + 1 + number}`),
  );
  // As the documents say: one id for many jobs keeps them together.
  await publisher.publishMany(
    ids.map(() => job(member)),
    { messageId: "match-50" },
  );
  assert.equal(await lastOf(1), before + 51);
});

test("lists without an id share messages", async () => {
  const before = await lastOf(1);
  const [member] = membersOf(1, 3, 1) as [string];
  const publisher = await publisherOf(nats.url);
  const lists = Array.from({ length: 500 }, () => publisher.publishMany([job(member), job(member)]));
  assert.deepEqual(new Set(await Promise.all(lists)), new Set([`1:${before + 1}`]));
});

test("arrays are cut at a thousand jobs and 127 KiB", async () => {
  const [member] = membersOf(0, 3, 1) as [string];
  const publisher = await publisherOf(nats.url);
  const jobs: Job[] = Array.from(
    { length: 300 },
    () => ({ ...job(member), meta: { text: "日".repeat(300) } }) as Job,
  );
  jobs.push(...Array.from({ length: 2_001 }, () => job(member)));
  const before = await lastOf(0);
  const token = await publisher.publishMany(jobs);
  assert.equal((await client.member("arena", member, { after: token })).score, 2_301);
  assert.equal(await lastOf(0), before + 5);
  const large = { ...job("p1"), meta: { text: "x".repeat(200_000) } } as Job;
  await assert.rejects(publisher.publish(large), /at most/);
  for (const wrong of ["", "x".repeat(257), "日".repeat(86), "\ud800"]) {
    await assert.rejects(publisher.publish(job(wrong)), /1 to 256 bytes/);
  }
  await assert.rejects(publisher.publish(job("p1"), { messageId: "日" }), /printable ASCII/);
  await assert.rejects(publisher.publishMany([]), /no jobs/);
});

test("a lost acknowledgement and a killed node count once", async () => {
  // The node is killed between a publish, whose acknowledgement is lost, and its retry.
  const link = closing(await LossyLink.open(nats.port));
  const before = await lastSequences();
  const publisher = await publisherOf(`nats://127.0.0.1:${link.port}`, { ackTimeoutMs: 1_000 });
  link.isDeaf = true;
  let isDone = false;
  const publishing = publisher
    .publish(job("p42"), { messageId: "match-8841-p42" })
    .finally(() => (isDone = true));
  await until("the stream has the message", async () => (await lastOf(1)) > (before[1] as number));
  await until("its acknowledgement is lost", () => link.lost > 0);
  await node.kill();
  assert.ok(!isDone);
  const lost = link.lost;
  // The publisher sends it again, and the server acknowledges again: that is lost as well.
  await until("the first retry is lost", () => link.lost > lost);
  link.isDeaf = false;
  const token = await publishing;
  await node.start();
  const found = await client.member("arena", "p42", { after: token, timeout_ms: 60_000 });
  assert.equal(found.score, 1);
  // Another process, which knows no more than the id, tries again.
  const again = await publisherOf(nats.url);
  assert.equal(await again.publish(job("p42"), { messageId: "match-8841-p42" }), token);
  assert.equal((await client.member("arena", "p42", { after: token })).score, 1);
  assert.equal(Number(token.split(":")[1]), (before[1] as number) + 1);
  assert.equal(await lastOf(1), (before[1] as number) + 1);
});

test("giving up says what is known", async () => {
  const link = closing(await LossyLink.open(nats.port));
  const options = { ackTimeoutMs: 200, giveUpAfterMs: 1_000 };
  const publisher = await publisherOf(`nats://127.0.0.1:${link.port}`, options);
  link.isDeaf = true;
  await assert.rejects(publisher.publish(job("p42"), { messageId: "match-1" }), (error) => {
    assert.ok(error instanceof PublishError);
    assert.match(error.message, /not acknowledged within 1 s/);
    return error.mayBeStored && error.messageId === "match-1";
  });
  await assert.rejects(
    publisher.publishMany([job("p42"), job("alice")], { messageId: "match-2" }),
    (error) => {
      return error instanceof PublishManyError && error.token === undefined && error.errors.length === 2;
    },
  );
  // What is behind a message that failed is not sent, so that no job overtakes another.
  const many = Array.from({ length: 1_500 }, () => job("p42"));
  await assert.rejects(publisher.publishMany(many, { messageId: "match-3" }), (error) => {
    assert.ok(error instanceof PublishManyError);
    assert.deepEqual(
      error.errors.map((one) => one.mayBeStored),
      [true, false],
    );
    assert.deepEqual(
      error.errors.map((one) => one.messageId),
      ["match-3.1.0", "match-3.1.1"],
    );
    return error.messageId === "match-3";
  });
  link.isDeaf = false;
  const nobody = await publisherOf(nats.url, { shards: 3, prefix: "nobody", giveUpAfterMs: 500 });
  await assert.rejects(nobody.publish(job("p42")), (error) => {
    assert.ok(error instanceof PublishError);
    assert.match(error.message, /there is no stream NOBODY_JOBS_1/);
    return !error.mayBeStored;
  });
  await assert.rejects(Publisher.connect(nats.url, { shards: 3, giveUpAfterMs: 111_000 }), /at most 110000/);
  await assert.rejects(Publisher.connect(nats.url, { prefix: "nobody" }), /NOBODY_JOBS_0/);
  await assert.rejects(Publisher.connect(nats.url, { shards: 65 }), /1 to 64 shards/);
});

test("a message that others share has no id to publish again under", async () => {
  // The server would take one job, published alone under the id of the array, for all of them.
  const link = closing(await LossyLink.open(nats.port));
  const options = { ackTimeoutMs: 200, giveUpAfterMs: 500 };
  const publisher = await publisherOf(`nats://127.0.0.1:${link.port}`, options);
  link.isDeaf = true;
  const members = membersOf(1, 3, 3);
  for (const outcome of await Promise.allSettled(members.map((member) => publisher.publish(job(member))))) {
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof PublishError);
    assert.deepEqual([outcome.reason.messageId, outcome.reason.mayBeStored], [undefined, true]);
  }
  const many = Array.from({ length: 1_500 }, () => job("p42"));
  await assert.rejects(publisher.publishMany(many), (error) => {
    assert.ok(error instanceof PublishManyError && error.messageId === undefined && error.mayBeStored);
    assert.deepEqual(
      error.errors.map((one) => [one.messageId, one.mayBeStored]),
      [
        [undefined, true],
        [undefined, false],
      ],
    );
    return true;
  });
  link.isDeaf = false;
});

test("a restarted server gets what waited", async () => {
  const publisher = await publisherOf(nats.url, { reconnectTimeWait: 50 });
  await nats.kill();
  const waiting = Promise.all(
    Array.from({ length: 100 }, (_, number) => publisher.publish(job(`p${number}`))),
  );
  await nats.start();
  const after = latest(...(await waiting)) as string;
  const page = await client.top("arena", { limit: 1_000, after, timeout_ms: 60_000 });
  assert.deepEqual(
    page.entries.map((entry) => entry.score),
    Array.from({ length: 100 }, () => 1),
  );
});

test("close waits for what is on its way, and ends the publisher", async () => {
  const publisher = await Publisher.connect(nats.url, { maxWaiting: 3 });
  const publishing = Promise.all(
    Array.from({ length: 500 }, (_, number) => publisher.publish(job(`p${number}`))),
  );
  const many = publisher.publishMany(Array.from({ length: 3_500 }, () => job("p42")));
  await publisher.close();
  const after = latest(...(await publishing), await many) as string;
  assert.equal((await client.board("arena", { after })).totals.all, 500);
  assert.equal((await client.member("arena", "p42", { after })).score, 3_501);
  await assert.rejects(publisher.publish(job("p42")), RanktreeError);
  await assert.rejects(publisher.write([job("p42")]), RanktreeError);
});

test("nodes write jobs and answer", async () => {
  const [first, second] = membersOf(2, 3, 2) as [string, string];
  const publisher = await publisherOf(nats.url);
  const written = await publisher.write([job(first, 2n ** 60n, "set"), job(second, 5)]);
  assert.equal(written.results?.[0]?.entry?.score, 2n ** 60n);
  const short = await publisher.write([job(first)], { changedOnly: true });
  assert.deepEqual(short.results, [{ changed: true }]);
  await assert.rejects(publisher.write([{ board: "no board", member: first, score: 1 }]), (error) => {
    return error instanceof InvalidError && error.errors[0]?.index === 0;
  });
  await assert.rejects(publisher.write([job("p42"), job("alice")]), /belong to one shard/);
  await node.kill();
  await until("the server knows that the node is gone", async () => {
    const error: unknown = await publisher
      .write([job(first)], { timeoutMs: 1_000 })
      .catch((why: unknown) => why);
    assert.ok(error instanceof UnavailableError || error instanceof ConnectionFailedError, String(error));
    return error instanceof UnavailableError;
  });
});

test("what is wrong with a job or an address is said, without secrets", async () => {
  const publisher = await publisherOf(nats.url);
  const nameless = { board: "arena", score: 1 } as unknown as Job;
  await assert.rejects(publisher.publish(nameless), /^TypeError: a job has a member.*undefined/);
  await assert.rejects(publisher.publishMany([job("p1"), nameless]), /a job has a member/);
  await assert.rejects(publisher.write([nameless]), /a job has a member/);
  await assert.rejects(publisher.publish(undefined as unknown as Job), /a job has a member/);
  for (const server of ["nats://user:hunter2@127.0.0.1:4222", "user:hunter2@127.0.0.1:99999"]) {
    await assert.rejects(Publisher.connect([nats.url, server]), (error) => {
      assert.ok(error instanceof TypeError);
      assert.doesNotMatch(inspect(error), /hunter2@/);
      assert.match(error.message, /user and pass/);
      return true;
    });
  }
});

test("a write over a closed connection is known not to be applied", async () => {
  const connection = await connect({ servers: nats.url });
  const publisher = closing(new Publisher(connection, { shards: 3 }));
  await connection.close();
  await assert.rejects(publisher.write([job("p42")]), (error) => {
    assert.ok(error instanceof ConnectionFailedError, String(error));
    assert.equal(error.mayBeApplied, false);
    return true;
  });
});

test("a game with the least permissions publishes", async () => {
  const passwords = Object.fromEntries(
    ["NODE", "GAME", "REJECTS"].map((user) => [`RANKTREE_${user}_PASSWORD`, `nats_${user}`]),
  );
  const config = join(scratch(), "nats.conf");
  writeFileSync(config, readFileSync(join(ROOT, "deploy/nats/ranktree.conf")));
  const guarded = await Nats.start(["-c", config], passwords);
  const flags = ["--nats", guarded.url, "--nats-user", "node", "--shards", "3"];
  const owner = await Node.start(flags, { RANKTREE_NATS_PASSWORD: "nats_NODE" });
  closing({ close: () => Promise.all([owner.kill(), guarded.kill()]) });
  const reader = new Ranktree(owner.url);
  await reader.define("arena");
  const who = { user: "game", pass: "nats_GAME", inboxPrefix: "_INBOX.game" };
  const publisher = await publisherOf(guarded.url, { shards: 3, ...who });
  const token = await publisher.publish(job("p42"), { messageId: "match-1" });
  assert.equal(await publisher.publish(job("p42"), { messageId: "match-1" }), token);
  assert.equal((await reader.member("arena", "p42", { after: token })).score, 1);
  assert.deepEqual((await publisher.write([job("p42")], { changedOnly: true })).results, [{ changed: true }]);
  await assert.rejects(Publisher.connect(guarded.url, who), /give shards/);
  // Without an inbox of its own it sends, and may not read what comes of that.
  const { inboxPrefix: _, ...deaf } = who;
  const times = { ackTimeoutMs: 300, giveUpAfterMs: 500 };
  const blind = await publisherOf(guarded.url, { shards: 3, ...deaf, ...times });
  await assert.rejects(blind.publish(job("p43")), (error) => {
    assert.ok(error instanceof PublishError && error.mayBeStored, String(error));
    return true;
  });
});
