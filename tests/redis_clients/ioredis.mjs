// ioredis, by its own defaults: run.py starts it. Arguments: the port and a token.
import assert from "node:assert/strict";
import { once } from "node:events";
import Redis from "ioredis";

const [port, token] = [Number(process.argv[2]), process.argv[3]];

async function plays(client) {
  await client.del("arena");
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.zadd("arena", 30, "ann", 10.5, "bob", 20, "cid"), 3);
  assert.equal(await client.zadd("arena", "GT", "CH", 9, "bob"), 0);
  assert.deepEqual(await client.zrevrange("arena", 0, -1, "WITHSCORES"), ["ann", "30", "cid", "20", "bob", "10.5"]);
  assert.deepEqual(await client.zrangebyscore("arena", 15, "+inf"), ["cid", "ann"]);
  assert.equal(await client.zrevrank("arena", "cid"), 1);
  assert.equal(await client.zrank("arena", "nobody"), null);
  assert.equal(await client.zscore("arena", "bob"), "10.5");
  assert.equal(await client.zincrby("arena", 2.25, "bob"), "12.75");
  const scanned = [];
  for await (const part of client.zscanStream("arena")) scanned.push(...part);
  assert.equal(scanned.length, 6);
  assert.deepEqual(await client.zpopmin("arena"), ["bob", "12.75"]);
  assert.equal(await client.zrem("arena", "ann", "nobody"), 1);
  assert.equal(await client.zcard("arena"), 1);
}

async function pipelines(client) {
  await client.del("arena");
  const pipe = client.pipeline();
  for (let n = 0; n < 1000; n++) pipe.zadd("arena", n, `p${n}`).zrevrank("arena", `p${n}`);
  const replies = await pipe.exec();
  assert.deepEqual(replies, Array.from({ length: 2000 }, (_, n) => [null, (n + 1) % 2]));
  const transaction = client.multi().zincrby("arena", 1, "p0").zrem("arena", "p1").zcard("arena");
  assert.deepEqual(await transaction.exec(), [[null, "1"], [null, 1], [null, 999]]);
  await assert.rejects(client.multi().zadd("arena", 5, "p0").get("arena").exec(), /EXECABORT/);
  assert.equal(await client.zscore("arena", "p0"), "1");
}

async function comesBack(client) {
  await client.zadd("kept", 1, "ann");
  console.log("restart");
  await once(process.stdin, "data");
  assert.equal(await client.zscore("kept", "ann"), "1");
}

for (const options of [{}, { protocol: 2 }]) {
  const client = new Redis({ port, password: token, ...options });
  await plays(client);
  await pipelines(client);
  await comesBack(client);
  client.disconnect();
}

const together = new Redis(`redis://game:${token}@127.0.0.1:${port}/0`, { enableAutoPipelining: true });
await Promise.all(Array.from({ length: 100 }, (_, n) => together.zadd("many", n, `p${n}`)));
assert.equal(await together.zcard("many"), 100);
await together.quit();

const stranger = new Redis({ port, password: "wrong", retryStrategy: null, maxRetriesPerRequest: 0 });
stranger.on("error", () => {});
await assert.rejects(stranger.zcard("arena"));
await assert.rejects(new Redis({ port, password: token, lazyConnect: true }).get("arena"), /unknown command/);
console.log("ioredis works");
process.exit(0);
