// The node, the others that it knows, and the shards with state, lag and rate.

import { get, text } from "./api.js";
import { h, number, show, state } from "./dom.js";
import { card, copyAsCurl, panel, problem } from "./parts.js";

const EVERY_MS = 2000;
const KINDS = {
  live: "good",
  catching_up: "warn",
  halted: "bad",
  silent: "bad",
  no_owner: "bad",
  unknown: "warn",
};
const URL = "/v1/status";

export function nodes(main, { signal }) {
  const trouble = h("div", {});
  const body = h("div", { "aria-busy": "true" });
  show(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Shards and nodes"),
      h("span", { class: "grow" }),
      copyAsCurl(() => ({ url: URL })),
    ),
    trouble,
    body,
  );
  let before = null;
  async function look() {
    if (signal.aborted) return;
    try {
      const status = await get(URL, signal);
      const reasons = status.ready && status.degraded ? await troubles(signal) : [];
      const now = {
        at: performance.now(),
        applied: new Map(status.shards.map((shard) => [shard.shard, applied(shard)])),
      };
      show(trouble);
      show(body, draw(status, reasons, before, now));
      before = now;
    } catch (error) {
      if (error.name === "AbortError") return;
      // How the shards were is worth nothing once the node does not tell it any more.
      show(body);
      before = null;
      show(trouble, problem(error, error.passes ? " It is asked again." : ""));
      if (!error.passes) return body.removeAttribute("aria-busy");
    }
    body.removeAttribute("aria-busy");
    const timer = setTimeout(look, EVERY_MS);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }
  look();
}

/// What is wrong with a node that is ready all the same, where the status has no place for it: the clock, jobs
/// that wait.
async function troubles(signal) {
  const lines = (await text("/readyz", signal)).split("\n").slice(1);
  return lines.filter((line) => line !== "" && !line.endsWith("GET /v1/status says why"));
}

/// Owners that say how they are now, and not how they were before they fell silent.
function heard(shard) {
  return shard.owners.filter((owner) => owner.state !== "silent");
}

/// What its furthest owner has applied, if it is not this node's.
function applied(shard) {
  return shard.applied_sequence ?? Math.max(...heard(shard).map((owner) => owner.applied_sequence ?? -1), -1);
}

function rate(shard, before, now) {
  const [was, is] = [before?.applied.get(shard.shard), now.applied.get(shard.shard)];
  if (was === undefined || was < 0 || is < was) return "–";
  return number(Math.round((is - was) / ((now.at - before.at) / 1000)));
}

function copying({ from, bytes, total }) {
  return `copies from ${from}, ${number(bytes)} of ${number(total)} bytes`;
}

/// The nodes that own a shard. What is said of the shard is true of the best of them only.
function ownersOf(shard) {
  if (shard.owners.length === 0) return shard.owner === "local" ? "this node" : "none";
  return shard.owners.flatMap((owner, index) => [
    index === 0 ? "" : ", ",
    owner.node,
    owner.state !== shard.state && h("span", { class: "down" }, ` (${owner.state.replaceAll("_", " ")})`),
  ]);
}

function draw(status, reasons, before, now) {
  const ready = status.ready ? state("good", "Ready") : state("bad", "Not ready");
  const members = status.shards.reduce((sum, shard) => sum + (shard.members ?? 0), 0);
  // Tokens of some boards are not told.
  const areCounted = status.shards.some((shard) => shard.members !== undefined);
  const words = (shard) =>
    [
      shard.reason,
      shard.damage,
      shard.copying && copying(shard.copying),
      shard.stream?.reason,
      shard.parked > 0 && `${number(shard.parked)} jobs wait for a board that is not defined`,
    ]
      .filter(Boolean)
      .join("; ");
  const lag = (shard) => shard.lag ?? Math.min(...heard(shard).map((owner) => owner.lag ?? Infinity));
  const row = (shard) =>
    h(
      "tr",
      {},
      h("td", { class: "number" }, String(shard.shard)),
      h("td", {}, state(KINDS[shard.state] ?? "warn", shard.state.replaceAll("_", " "))),
      h("td", { class: "number" }, Number.isFinite(lag(shard)) ? number(lag(shard)) : "–"),
      h("td", { class: "number" }, rate(shard, before, now)),
      h("td", { class: "number later" }, number(applied(shard) < 0 ? null : applied(shard))),
      h("td", { class: "number later" }, number(shard.members)),
      h("td", { class: "number" }, number(shard.rejects)),
      h(
        "td",
        { class: "small" },
        ownersOf(shard),
        words(shard) && h("div", { class: "down" }, words(shard)),
      ),
    );
  const number_ = (text, more = "") => h("th", { scope: "col", class: `number ${more}`.trim() }, text);
  const shards = h(
    "div",
    { class: "wide" },
    h(
      "table",
      {},
      h("caption", {}, "The rate is of messages applied a second, since the look before."),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          number_("Shard"),
          h("th", { scope: "col" }, "State"),
          number_("Lag"),
          number_("Rate"),
          number_("Applied", "later"),
          number_("Members", "later"),
          number_("Rejects"),
          h("th", { scope: "col" }, "Owners"),
        ),
      ),
      h("tbody", {}, status.shards.map(row)),
    ),
  );
  const nodeRow = (node) =>
    h(
      "tr",
      {},
      h(
        "td",
        { class: "member" },
        node.node,
        node.node === status.node && h("span", { class: "soft small" }, " (this one)"),
      ),
      h(
        "td",
        {},
        node.alive ? state("good", "alive") : state("bad", `silent for ${number(node.silent_seconds)} s`),
      ),
      h("td", { class: "later" }, node.address ?? "–"),
      h("td", {}, node.version ?? "–"),
      h("td", { class: "small down" }, node.problem ?? ""),
    );
  const nodes = h(
    "div",
    { class: "wide" },
    h(
      "table",
      {},
      h("caption", { class: "unseen" }, "Nodes"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Node", "Heard of", "Address", "Version", ""].map((text) =>
            h("th", { scope: "col", class: text === "Address" ? "later" : null }, text),
          ),
        ),
      ),
      h("tbody", {}, status.nodes.map(nodeRow)),
    ),
  );
  return [
    panel(
      status.node,
      [ready, status.degraded && state("warn", "Needs attention")],
      h(
        "div",
        { class: "cards" },
        card("version", status.version),
        card(status.shards.length === 1 ? "shard" : "shards", number(status.shards.length)),
        areCounted && card("members, of this node's shards", number(members)),
        card(status.nodes.length > 1 ? "nodes" : "node", number(Math.max(1, status.nodes.length))),
      ),
      reasons.map((reason) => h("p", { class: "note warn" }, reason)),
    ),
    panel("Shards", [], shards),
    status.nodes.length > 0 && panel("Nodes", [], nodes),
  ].filter(Boolean);
}
