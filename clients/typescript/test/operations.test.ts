// The client against the API's document: each operation has a method, and each answer is read by its schema.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { ConnectionFailedError, Ranktree } from "ranktree-client";

import { ROOT } from "./support.js";

interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
}

interface Operation {
  operationId: string;
  security?: { bearer?: string[] }[];
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

const document = JSON.parse(readFileSync(join(ROOT, "docs/openapi.json"), "utf8")) as {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};

// What is for probes and people, and what `ranktree snapshot` is for.
const LEFT_OUT = /^\/(openapi\.json|docs|metrics|healthz|readyz|v1\/snapshots.*)$/;
const operations = Object.entries(document.paths)
  .filter(([path]) => !LEFT_OUT.test(path))
  .flatMap(([path, methods]) => {
    return Object.entries(methods).map(([method, operation]) => ({ path, method, operation }));
  });

/** What calls each operation. Of several calls each has another schema of the answer. */
const CALLS: Record<string, ((client: Ranktree) => Promise<unknown>)[]> = {
  around: [(client) => client.around("b", "m")],
  board: [(client) => client.board("b")],
  boards: [(client) => client.boards()],
  cancel_season: [(client) => client.cancelSeason("b", "s2")],
  clear_board: [(client) => client.clear("b")],
  combine: [(client) => client.combine({ boards: { b: 1 } })],
  count: [(client) => client.count("b")],
  delete_board: [(client) => client.drop("b")],
  delete_everywhere: [(client) => client.removeEverywhere("m")],
  delete_member: [(client) => client.remove("b", "m")],
  hidden: [(client) => client.hidden()],
  histogram: [(client) => client.histogram("b")],
  jobs: [(client) => client.writeMany([{ board: "b", member: "m", score: 1 }])],
  live: [(client) => client.live("b").next()],
  lookup: [(client) => client.lookup("b", ["m"])],
  member: [(client) => client.member("b", "m"), (client) => client.member("b", "m", { windows: "*" })],
  member_boards: [(client) => client.memberBoards("m")],
  move_season: [(client) => client.moveSeason("b", "s2", { at: new Date(0) })],
  open_season: [(client) => client.openSeason("b")],
  percentiles: [(client) => client.percentiles("b", [50])],
  positions: [(client) => client.positions("b", 1)],
  put_board: [(client) => client.define("b")],
  put_member: [(client) => client.write("b", "m", { score: 1 })],
  range: [(client) => client.range("b")],
  rank: [(client) => client.rank("b", 1)],
  ranks_of: [(client) => client.ranks("b", [1])],
  rejects: [(client) => client.rejects()],
  score: [(client) => client.score("b", { rank: 1 })],
  set_read_only: [(client) => client.setReadOnly({ readonly: false })],
  status: [(client) => client.status()],
  top: [(client) => client.top("b")],
  trim_board: [(client) => client.trim("b", { positions_beyond: 1 })],
};

const BIG = "9007199254740993";
const INTEGERS = new Set(["Integer", "Score", "Version"]);
/** Names that fields of answers have: callers may have named their boards and windows so. */
const NAMES = ["score", "min", "meta", "version", "fields", "constructor"];

/** An answer as it is sent, and what it is read as. */
interface Sample {
  sent: unknown;
  read: unknown;
}

const plain = (value: unknown): Sample => ({ sent: value, read: value });

function together(named: [string, Sample][]): Sample {
  return {
    sent: Object.fromEntries(named.map(([name, { sent }]) => [name, sent])),
    read: Object.fromEntries(named.map(([name, { read }]) => [name, read])),
  };
}

/** One of each kind that a schema allows. Integers are great, and so is what is written in texts. */
function samples(schema: Schema): Sample[] {
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop() as string;
    return INTEGERS.has(name)
      ? [{ sent: BIG, read: BigInt(BIG) }]
      : samples(document.components.schemas[name] as Schema);
  }
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (choices) return choices.flatMap(samples);
  if (schema.const !== undefined) return [plain(schema.const)];
  if (schema.enum) return [plain(schema.enum[0])];
  if (schema.properties) {
    const fields = Object.entries(schema.properties).map(([name, inner]): [string, Sample] => {
      // The only number of 64 bits that is none of a score's: a difference of positions.
      const isWide = schema.properties?.[name]?.format === "int64" && name !== "movement";
      return [name, isWide ? { sent: BIG, read: BigInt(BIG) } : (samples(inner)[0] as Sample)];
    });
    return [together(fields)];
  }
  if (schema.items) {
    const parts = samples(schema.items);
    return [{ sent: parts.map(({ sent }) => sent), read: parts.map(({ read }) => read) }];
  }
  const inner = schema.additionalProperties;
  if (typeof inner === "object") {
    const [each] = samples(inner) as [Sample];
    return [together(NAMES.map((name) => [name, each]))];
  }
  const type = [schema.type].flat()[0];
  if (type === "null") return [plain(null)];
  if (type === "string") return [plain(BIG)];
  if (type === "boolean") return [plain(true)];
  if (type === "integer" || type === "number") return [plain(1)];
  // JSON of callers' own.
  return [plain({ score: BIG, version: BIG, results: [{ entry: { score: BIG } }] })];
}

test("each operation of the document has a method, and each method an operation", async () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  assert.deepEqual(Object.keys(CALLS).sort(), ids.sort());
  const used = new Set<string | symbol>();
  for (const { path, method, operation } of operations) {
    for (const call of CALLS[operation.operationId] ?? []) {
      const asked: string[] = [];
      const noted: typeof fetch = (input, init) => {
        asked.push(`${init?.method ?? "GET"} ${new URL(String(input)).pathname}`);
        return Promise.resolve(Response.json({ code: "forbidden" }, { status: 403 }));
      };
      const client = new Ranktree("http://node", { fetch: noted });
      const watched = new Proxy(client, {
        get(target, name) {
          used.add(name);
          return (target[name as keyof Ranktree] as (...given: unknown[]) => unknown).bind(target);
        },
      });
      await assert.rejects(call(watched), { code: "forbidden" });
      const route = new RegExp(`^${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
      assert.equal(asked.length, 1);
      assert.match(asked[0] as string, route, operation.operationId);
    }
  }
  const methods = Object.getOwnPropertyNames(Ranktree.prototype).filter((name) => name !== "constructor");
  const single = methods.filter((name) => !name.startsWith("iter"));
  assert.deepEqual([...used].sort(), single.sort());
});

test("what has pages has an iterator over all of them", () => {
  const paged = operations.filter(({ operation }) => {
    const answer = operation.responses["200"]?.content?.["application/json"]?.schema ?? {};
    return samples(answer).some(({ sent }) => Object.hasOwn(sent as object, "next_cursor"));
  });
  const named = paged.map(({ operation }) => {
    return `iter_${operation.operationId}`.replace(/_(\w)/g, (_, first: string) => first.toUpperCase());
  });
  // A page at a position, from which `top` and its cursor go on.
  const expected = named.filter((name) => name !== "iterPositions").sort();
  const methods = Object.getOwnPropertyNames(Ranktree.prototype);
  assert.deepEqual(methods.filter((name) => name.startsWith("iter")).sort(), expected);
});

test("integers are read wherever the schema has them, and nowhere else", async () => {
  let count = 0;
  for (const { operation } of operations) {
    const schema = operation.responses["200"]?.content?.["application/json"]?.schema;
    if (!schema) continue;
    const calls = CALLS[operation.operationId] ?? [];
    for (const [number, { sent, read }] of samples(schema).entries()) {
      const client = new Ranktree("http://node", { fetch: () => Promise.resolve(Response.json(sent)) });
      const call = calls[Math.min(number, calls.length - 1)] as (client: Ranktree) => Promise<unknown>;
      assert.deepEqual(await call(client), read, operation.operationId);
      count += 1;
    }
  }
  assert.ok(count > 30, `${count} answers`);
});

test("the states of a watched board, and the results in a problem, are read by their schemas", async () => {
  const [state] = samples({ $ref: "#/components/schemas/LiveState" }) as [Sample];
  const text = `event: state\nid: 1\ndata: ${JSON.stringify(state.sent)}\n\n`;
  const client = new Ranktree("http://node", { fetch: () => Promise.resolve(new Response(text)) });
  const first = await client.live("b", { members: [BIG] }).next();
  assert.deepEqual(first.value, { ...(state.read as object), not_found: [] });
  const [problem] = samples({ $ref: "#/components/schemas/Problem" }) as [Sample];
  const failing = new Ranktree("http://node", {
    fetch: () => Promise.resolve(Response.json(problem.sent, { status: 500 })),
  });
  await assert.rejects(failing.top("b"), { problem: problem.read });
});

test("a read without an answer is known as one", async () => {
  const lost = new TypeError("fetch failed", { cause: { code: "ECONNRESET", message: "lost" } });
  const client = new Ranktree("http://node", { fetch: () => Promise.reject(lost), retries: 0 });
  for (const { method, operation } of operations) {
    const isRead = method === "get" || operation.security?.some(({ bearer }) => bearer?.includes("read"));
    for (const call of CALLS[operation.operationId] ?? []) {
      await assert.rejects(call(client), (error) => {
        assert.ok(error instanceof ConnectionFailedError, String(error));
        assert.equal(error.mayBeApplied, !isRead, operation.operationId);
        return true;
      });
    }
  }
});
