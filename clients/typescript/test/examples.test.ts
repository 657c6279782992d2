// The example and the README's code, as they are.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Ranktree } from "ranktree-client";

import { FOLDER, Nats, Node } from "./support.js";

let nats: Nats;
let node: Node;

before(async () => {
  nats = await Nats.start();
  node = await Node.start(["--nats", nats.url, "--shards", "3"]);
});
after(async () => {
  await node.kill();
  await nats.kill();
});

/** Runs a program of Node's to its end, and returns what it said. */
async function run(...flags: string[]): Promise<string> {
  const child = spawn(process.execPath, flags, { cwd: FOLDER, timeout: 120_000 });
  let told = "";
  child.stdout.on("data", (data) => (told += String(data)));
  child.stderr.on("data", (data) => (told += String(data)));
  const code = await new Promise((ended) => child.on("close", ended));
  assert.equal(code, 0, told);
  return told;
}

test("the game plays, and every point counts", async () => {
  for (const way of [[], ["--nats", nats.url]]) {
    // Twice: a game that is started again goes on.
    for (let turn = 0; turn < 2; turn += 1) {
      const game = join(FOLDER, "build/examples/game-loop.js");
      const told = await run(game, "--url", node.url, "--matches", "30", ...way);
      assert.match(told, /The best of/);
      assert.match(told, /^\[live\] /m);
    }
  }
  const client = new Ranktree(node.url);
  const rejects = (await client.status()).shards.map((shard) => shard.rejects);
  assert.deepEqual(rejects, [0, 0, 0]);
  assert.ok(((await client.board("arena")).totals.all ?? 0) > 20);
  await client.drop("arena");
});

test("the code of the README has the types that it uses, and runs", async () => {
  const text = readFileSync(join(FOLDER, "README.md"), "utf8");
  const blocks = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code as string);
  assert.ok(blocks.length > 5, `${blocks.length} blocks`);
  const folder = join(FOLDER, "build/readme");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [number, block] of blocks.entries()) {
    const code = block
      .replaceAll("http://127.0.0.1:8080", node.url)
      .replaceAll("nats://127.0.0.1:4222", nats.url);
    writeFileSync(join(folder, `${number}.ts`), code);
  }
  const options = {
    rootDir: ".",
    outDir: "out",
    declaration: false,
    declarationMap: false,
    noUnusedLocals: false,
  };
  const config = { extends: "../../tsconfig.json", compilerOptions: options, include: ["*.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  await run(join(FOLDER, "node_modules/typescript/bin/tsc"), "-p", folder);
  for (const number of blocks.keys()) await run(join(folder, "out", `${number}.js`));
});
