// The client in a real browser, where there is one: `make browser` installs it. Where CI is set, one that is
// missing fails the test, unless TESTS_WITHOUT names it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { type IncomingMessage, type ServerResponse, createServer, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";

import { Ranktree } from "ranktree-client";

import { FOLDER, Node, listen, scratch, until } from "./support.js";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const PATHS = (process.env.PATH ?? "")
  .split(":")
  .flatMap((folder) => NAMES.map((name) => join(folder, name)));
const browser = PATHS.find((path) => existsSync(path));
const mayLack = !process.env.CI || (process.env.TESTS_WITHOUT ?? "").split(" ").includes("chromium");
const skip = browser === undefined && mayLack ? "there is no browser" : false;

/** What the page does; it posts what it found to `/found`. */
const PAGE = `<!doctype html><script type="module">
  import { NotFoundError, Ranktree } from "/dist/index.js";
  const client = new Ranktree(location.origin);
  const found = {};
  try {
    const page = await client.top("arena", { limit: 2 });
    found.top = page.entries.map((entry) => [entry.member, String(entry.score), typeof entry.score]);
    found.missing = await client.member("arena", "nobody").catch((error) => error instanceof NotFoundError);
    found.live = [];
    for await (const state of client.live("arena", { max_rate: 20 })) {
      found.live.push(state.total);
      if (state.total === 3) break;
      await fetch("/shown", { method: "POST" });
    }
  } catch (error) {
    found.error = String(error);
  }
  await fetch("/found", { method: "POST", body: JSON.stringify(found) });
</script>`;

test("a page reads and watches a board", { skip }, async () => {
  assert.ok(browser, "there is no browser; `make browser` installs it");
  const node = await Node.start(["--shards", "2"]);
  const client = new Ranktree(node.url);
  await client.write("arena", "bob", { score: 2n ** 60n });
  await client.write("arena", "日本", { score: 7 });
  let found: unknown;
  let isShown = false;
  // The page and the API have one origin, as the README has it.
  const server = createServer((asked: IncomingMessage, answer: ServerResponse) => {
    const url = asked.url ?? "/";
    if (url.startsWith("/v1/")) {
      const onward = request(node.url + url, { headers: { accept: asked.headers.accept } }, (told) => {
        answer.writeHead(told.statusCode ?? 502, told.headers);
        told.pipe(answer);
      });
      answer.on("close", () => onward.destroy());
      onward.on("error", () => answer.destroy());
      onward.end();
    } else if (asked.method === "POST") {
      let text = "";
      asked.on("data", (data) => (text += String(data)));
      asked.on("end", () => {
        if (url === "/shown") isShown = true;
        else found = JSON.parse(text);
        answer.end();
      });
    } else if (url === "/") {
      answer.setHeader("Content-Type", "text/html").end(PAGE);
    } else if (/^\/dist\/\w+\.js$/.test(url)) {
      answer.setHeader("Content-Type", "text/javascript").end(readFileSync(join(FOLDER, url)));
    } else {
      answer.writeHead(404).end();
    }
  });
  const port = await listen(server);
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"];
  const more = [`--user-data-dir=${scratch()}`, `http://127.0.0.1:${port}/`];
  const running = spawn(browser as string, [...flags, "--remote-debugging-port=0", ...more], {
    stdio: "ignore",
    detached: true,
  });
  try {
    await until("the page shows the board", () => isShown || found);
    await client.write("arena", "carol", { score: 1 });
    await until("the page has found everything", () => found);
    assert.deepEqual(found, {
      top: [
        ["bob", String(2n ** 60n), "bigint"],
        ["日本", "7", "number"],
      ],
      missing: true,
      live: [2, 3],
    });
  } finally {
    // With the processes that it started.
    process.kill(-(running.pid as number), "SIGKILL");
    server.close();
    server.closeAllConnections();
    await node.kill();
  }
});
