// What is in the package: types that are current, and nothing of Node for browsers.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";

import { FOLDER, ROOT, scratch } from "./support.js";

function generate(folder: string): { status: number | null; told: string } {
  const done = spawnSync(process.execPath, [join(folder, "generate.mjs"), "--check"], { encoding: "utf8" });
  return { status: done.status, told: done.stdout + done.stderr };
}

test("the generated types are current", () => {
  const { status, told } = generate(FOLDER);
  assert.equal(status, 0, told);
});

test("types that are not current are noticed", () => {
  const root = scratch();
  const folder = join(root, "clients/typescript");
  mkdirSync(join(root, "docs"));
  mkdirSync(join(folder, "src"), { recursive: true });
  for (const name of ["generate.mjs", "package.json", "src/api.ts"])
    cpSync(join(FOLDER, name), join(folder, name));
  symlinkSync(join(FOLDER, "node_modules"), join(folder, "node_modules"));
  const document = readFileSync(join(ROOT, "docs/openapi.json"), "utf8");
  writeFileSync(join(root, "docs/openapi.json"), document);
  assert.equal(generate(folder).status, 0);
  writeFileSync(join(root, "docs/openapi.json"), document.replaceAll('"group_rank"', '"friend_rank"'));
  const { status, told } = generate(folder);
  assert.equal(status, 1);
  assert.match(told, /src\/api\.ts is not current/);
});

/** The modules that a module loads, and those that they load. */
function loads(file: string, found = new Set<string>()): Set<string> {
  for (const [, name] of readFileSync(file, "utf8").matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
    const path = name?.startsWith(".") ? resolve(dirname(file), name) : (name as string);
    if (found.has(path)) continue;
    found.add(path);
    if (name?.startsWith(".")) loads(path, found);
  }
  return found;
}

test("a browser's bundle has nothing of Node and NATS in it", () => {
  const inBrowser = [...loads(join(FOLDER, "dist/index.js"))];
  assert.ok(inBrowser.some((path) => path.endsWith("dist/client.js")));
  assert.deepEqual(
    inBrowser.filter((path) => !path.startsWith(FOLDER)),
    [],
  );
  assert.deepEqual(
    inBrowser.filter((path) => /Buffer\b|\bprocess\./.test(readFileSync(path, "utf8"))),
    [],
  );
  const inNode = [...loads(join(FOLDER, "dist/nats.js"))];
  assert.ok(inNode.includes("@nats-io/transport-node"));
});

test("the README, the package and the types that it is compiled with name the same Node", () => {
  const described = JSON.parse(readFileSync(join(FOLDER, "package.json"), "utf8")) as {
    engines: { node: string };
    devDependencies: Record<string, string>;
  };
  const oldest = /^>=(\d+)$/.exec(described.engines.node)?.[1];
  const readme = readFileSync(join(FOLDER, "README.md"), "utf8");
  assert.equal(/for Node (\d+) and\s+newer/.exec(readme)?.[1], oldest);
  // Newer types would let through what the oldest one lacks.
  assert.equal(described.devDependencies["@types/node"]?.split(".")[0], oldest);
});

test("the lock file names no registry, and the package depends on nothing by itself", () => {
  const lock = readFileSync(join(FOLDER, "package-lock.json"), "utf8");
  assert.doesNotMatch(lock, /"resolved"/);
  const described = JSON.parse(readFileSync(join(FOLDER, "package.json"), "utf8")) as Record<string, object>;
  assert.equal(described.dependencies, undefined);
  assert.deepEqual(Object.keys(described.peerDependencies as object), [
    "@nats-io/jetstream",
    "@nats-io/transport-node",
  ]);
});
