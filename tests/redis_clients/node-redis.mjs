// node-redis, by its own defaults and with RESP3: run.py starts it. Arguments: the port and a token.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createClient } from "redis";

const [port, token] = [Number(process.argv[2]), process.argv[3]];

async function plays(client) {
  await client.del("arena");
  assert.equal(await client.ping(), "PONG");
  const game = [{ score: 30, value: "ann" }, { score: 10.5, value: "bob" }, { score: 20, value: "cid" }];
  assert.equal(await client.zAdd("arena", game), 3);
  assert.equal(await client.zAdd("arena", { score: 9, value: "bob" }, { comparison: "GT", CH: true }), 0);
  const best = await client.zRangeWithScores("arena", 0, -1, { REV: true });
  assert.deepEqual(best.map((entry) => [entry.value, entry.score]), [["ann", 30], ["cid", 20], ["bob", 10.5]]);
  assert.deepEqual(await client.zRangeByScore("arena", 15, "+inf"), ["cid", "ann"]);
  assert.equal(await client.zRevRank("arena", "cid"), 1);
  assert.equal(await client.zRank("arena", "nobody"), null);
  assert.equal(await client.zScore("arena", "bob"), 10.5);
  assert.deepEqual(await client.zmScore("arena", ["bob", "nobody"]), [10.5, null]);
  assert.equal(await client.zIncrBy("arena", 2.25, "bob"), 12.75);
  const popped = await client.zPopMin("arena");
  assert.deepEqual([popped.value, popped.score], ["bob", 12.75]);
  assert.equal(await client.zRem("arena", ["ann", "nobody"]), 1);
  assert.equal(await client.zCard("arena"), 1);
}

async function pipelines(client) {
  await client.del("arena");
  // What is asked for at the same time is a pipeline.
  const asked = Array.from({ length: 1000 }, (_, n) => client.zAdd("arena", { score: n, value: `p${n}` }));
  assert.deepEqual(await Promise.all(asked), Array(1000).fill(1));
  const done = await client.multi().zIncrBy("arena", 1, "p0").zRem("arena", "p1").zCard("arena").exec();
  assert.deepEqual(done, [1, 1, 999]);
}

async function comesBack(client) {
  await client.zAdd("kept", { score: 1, value: "ann" });
  console.log("restart");
  await once(process.stdin, "data");
  assert.equal(await client.zScore("kept", "ann"), 1);
}

for (const options of [{}, { RESP: 2 }, { RESP: 3 }]) {
  const client = createClient({ url: `redis://game:${token}@127.0.0.1:${port}`, ...options });
  client.on("error", () => {});
  await client.connect();
  await plays(client);
  await pipelines(client);
  await comesBack(client);
  await client.close();
}
// By its defaults it would try again and again.
const socket = { reconnectStrategy: false };
const stranger = createClient({ url: `redis://:wrong@127.0.0.1:${port}`, socket });
stranger.on("error", () => {});
await assert.rejects(stranger.connect(), /WRONGPASS/);
console.log("node-redis works");
process.exit(0);
