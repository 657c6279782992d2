// Addresses, tokens, and requests that never left: what is told of them, and what is not.

import assert from "node:assert/strict";
import { type Server, createServer } from "node:net";
import { inspect } from "node:util";
import { after, before, test } from "node:test";

import { ConnectionFailedError, NotFoundError, Ranktree, UnknownRouteError } from "ranktree-client";

import { Node, freePort, listen } from "./support.js";

let node: Node;
before(async () => {
  node = await Node.start();
});
after(() => node.kill());

/** All that a program could show of an error. */
function shown(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof TypeError, String(error));
    return inspect(error, { depth: 9, showHidden: true }).split("\n    at ")[0] + inspect({ ...error });
  }
  assert.fail("nothing was thrown");
}

test("an address that cannot be used is refused without its secrets", () => {
  const addresses = [
    "http://user:hunter2@127.0.0.1:8080",
    "https://hunter2@127.0.0.1",
    "user:hunter2@127.0.0.1:8080",
    "http://user:hunter2@127.0.0.1:80800",
    "http://a b:hunter2@127.0.0.1",
    "http://127.0.0.1:8080/?token=hunter2",
    "http://127.0.0.1:8080/#hunter2",
    "ftp://user:hunter2@127.0.0.1",
  ];
  for (const address of addresses) {
    assert.doesNotMatch(shown(() => new Ranktree(address)), /hunter2/, address);
  }
});

test("a token is sent without the white space around it, and refused with any within", async () => {
  const seen: (string | null)[] = [];
  const noted: typeof fetch = (input, init) => {
    seen.push(new Request(input, init).headers.get("Authorization"));
    return Promise.resolve(Response.json({}));
  };
  await new Ranktree("http://node", { bearer: " rkt_abc\r\n", fetch: noted }).status();
  await new Ranktree("http://node", { bearer: "\n", fetch: noted }).status();
  assert.deepEqual(seen, ["Bearer rkt_abc", null]);
  for (const bearer of ["hunter2\nhunter2", "hunter2 2", "hunter2\u0000", "hunter2é"]) {
    assert.doesNotMatch(shown(() => new Ranktree("http://node", { bearer })), /hunter2/);
  }
});

test("an address with a path of its own is told from a member that is not ranked", async () => {
  const astray = new Ranktree(`${node.url}/foo`);
  await assert.rejects(astray.member("arena", "p1"), (error) => {
    assert.ok(error instanceof UnknownRouteError && !(error instanceof NotFoundError), String(error));
    assert.equal(error.code, "unknown_route");
    assert.match(error.message, /address/);
    return true;
  });
  // Something else answers.
  const other = new Ranktree("http://node", {
    fetch: () => Promise.resolve(new Response("<html>", { status: 404 })),
  });
  await assert.rejects(other.member("arena", "p1"), UnknownRouteError);
  await assert.rejects(new Ranktree(`${node.url}//`).member("arena", "p1"), NotFoundError);
});

async function isMaybe(url: string): Promise<boolean> {
  const writing = new Ranktree(url, { retries: 0, timeoutMs: 10_000 }).write("arena", "p1", { score: 1 });
  const error: unknown = await writing.catch((why: unknown) => why);
  assert.ok(error instanceof ConnectionFailedError, String(error));
  return error.mayBeApplied;
}

test("a write that never left is known not to be applied", async () => {
  const servers: Server[] = [];
  const serve = async (server: Server) => {
    servers.push(server);
    return `127.0.0.1:${await listen(server)}`;
  };
  const closing = await serve(createServer((socket) => socket.on("error", () => undefined).end()));
  const hearing = await serve(
    createServer((socket) => socket.on("error", () => undefined).on("data", () => socket.destroy())),
  );
  const unsent = [
    // TLS to a port that has none,
    `https://${node.url.slice("http://".length)}`,
    // and to one that hangs up.
    `https://${closing}`,
    `https://${hearing}`,
    `http://127.0.0.1:${await freePort()}`,
    `http://localhost:${await freePort()}`,
    "http://nobody.invalid",
    // A port that fetch asks for nothing.
    "http://127.0.0.1:6000",
  ];
  for (const url of unsent) assert.equal(await isMaybe(url), false, url);
  // The request was heard here, and nobody knows what became of it.
  assert.equal(await isMaybe(`http://${hearing}`), true);
  servers.forEach((server) => server.close());
});

test("empty and broken names are refused before anything is sent", async () => {
  const client = new Ranktree("http://node", { fetch: () => assert.fail("a request was sent") });
  for (const name of ["", "\ud800"]) {
    await assert.rejects(client.member("arena", name), RangeError);
    await assert.rejects(client.write("arena", name, { score: 1 }), RangeError);
    await assert.rejects(client.lookup("arena", ["p1", name]), RangeError);
    await assert.rejects(client.live("arena", { members: [name] }).next(), RangeError);
    await assert.rejects(client.memberBoards("p1", { boards: [name] }), RangeError);
    await assert.rejects(client.top(name), RangeError);
  }
  await assert.rejects(client.member("arena", undefined as unknown as string), TypeError);
});

test("retries of a read span more than a second", async () => {
  let asked = 0;
  const lost = () => {
    asked += 1;
    return Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }));
  };
  const begin = performance.now();
  await assert.rejects(new Ranktree("http://node", { fetch: lost }).status(), ConnectionFailedError);
  const took = performance.now() - begin;
  assert.equal(asked, 3);
  // 100 to 200 ms, and 800 to 1,600.
  assert.ok(took > 850, `${took} ms`);
});
