import assert from "node:assert/strict";
import { test } from "node:test";

import { latest, memberHash, shardOf } from "ranktree-client";

// The contract's members and their hashes.
const VECTORS: [string, number][] = [
  ["p42", 2517926281],
  ["alice", 2267157479],
  ["日本", 2670128721],
  ["", 2166136261],
];

test("the hash is that of the contract", () => {
  for (const [member, expected] of VECTORS) {
    assert.equal(memberHash(member), expected);
    const shards = [1, 3, 64].map((count) => shardOf(member, count));
    assert.deepEqual(shards, [0, expected % 3, expected % 64]);
  }
});

test("the number of shards has bounds", () => {
  for (const shards of [0, 65, 1.5, NaN]) assert.throws(() => shardOf("p42", shards), /1 to 64 shards/);
});

test("latest names the greatest sequence of each shard", () => {
  assert.equal(latest("0:7", undefined, "1:3,0:12", null, "2:0"), "0:12,1:3,2:0");
  assert.equal(latest("10:1,2:18446744073709551615", "2:9007199254740993"), "2:18446744073709551615,10:1");
  assert.equal(latest(undefined), undefined);
  for (const wrong of ["0", "a:1", "0:-1", "0:1,"]) assert.throws(() => latest(wrong), /not a token/);
});
