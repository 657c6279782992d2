// The node, the others that it knows, and the shards with state, lag and rate.

import { get } from "./api.js";
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
    body,
  );
  let before = null;
  async function look() {
    if (signal.aborted) return;
    try {
      const status = await get(URL, signal);
      const now = {
        at: performance.now(),
        applied: new Map(status.shards.map((shard) => [shard.shard, applied(shard)])),
      };
      show(body, draw(status, before, now));
      before = now;
    } catch (error) {
      if (error.name === "AbortError") return;
      show(body, problem(error));
    }
    body.removeAttribute("aria-busy");
    const timer = setTimeout(look, EVERY_MS);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }
  look();
}

/// What its furthest owner has applied, if it is not this node's.
function applied(shard) {
  return (
    shard.applied_sequence ?? Math.max(...shard.owners.map((owner) => owner.applied_sequence ?? -1), -1)
  );
}

function rate(shard, before, now) {
  const [was, is] = [before?.applied.get(shard.shard), now.applied.get(shard.shard)];
  if (was === undefined || was < 0 || is < was) return "–";
  return number(Math.round((is - was) / ((now.at - before.at) / 1000)));
}

function draw(status, before, now) {
  const ready = status.ready ? state("good", "Ready") : state("bad", "Not ready");
  const members = status.shards.reduce((sum, shard) => sum + (shard.members ?? 0), 0);
  // Tokens of some boards are not told.
  const areCounted = status.shards.some((shard) => shard.members !== undefined);
  const words = (shard) =>
    [shard.reason, shard.damage, shard.copying && `copies from ${shard.copying.from}`, shard.stream?.reason]
      .filter(Boolean)
      .join("; ");
  const lag = (shard) => shard.lag ?? Math.min(...shard.owners.map((owner) => owner.lag ?? Infinity));
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
        shard.owners.length === 0
          ? shard.owner === "local"
            ? "this node"
            : "none"
          : shard.owners.map((owner) => owner.node).join(", "),
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
    ),
    panel("Shards", [], shards),
    status.nodes.length > 0 && panel("Nodes", [], nodes),
  ].filter(Boolean);
}
