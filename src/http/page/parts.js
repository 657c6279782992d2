// What several views are made of.

import { curl } from "./api.js";
import { h, id, keysOf, movement, number, say, show, time } from "./dom.js";

/// What is shown is read again so often, and no sooner than that after it was read.
const AGAIN_MS = 10000;
const SOON_MS = 3000;
/// How long after a question that failed it is asked again: longer each time.
const RETRY_MS = 2000;
const RETRY_MAX_MS = 30000;

/// A button that puts the command for a shell into the clipboard.
export function copyAsCurl(request) {
  const button = h("button", { type: "button", class: "quiet", onclick: copy }, "Copy as curl");
  async function copy() {
    const { method = "GET", url, body } = request();
    const text = curl(method, url, body);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      say("The command was copied.");
    } catch {
      // Without HTTPS, browsers keep the clipboard from pages of other machines.
      const shown = h("pre", { tabindex: "0", class: "command" }, text);
      const place = button.closest(".panel, .title");
      if (place?.nextElementSibling?.matches("pre.command")) place.nextElementSibling.remove();
      place?.after(shown);
      shown.focus();
      getSelection().selectAllChildren(shown);
      button.textContent = "Select and copy";
      say("The command is shown, to be copied.");
    }
    setTimeout(() => {
      button.textContent = "Copy as curl";
    }, 2500);
  }
  return button;
}

export function panel(title, tools, ...content) {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), tools), content);
}

export function card(name, value) {
  return h("div", { class: "card" }, h("b", {}, value), h("span", {}, name));
}

/// What went wrong, in the words of the node.
export function problem(error, ...more) {
  const code = error.code ? h("span", { class: "soft small" }, ` (${error.code})`) : null;
  return h("p", { class: "note bad", role: "alert" }, error.message, code, more);
}

/// Says which shards have no part in an answer; nothing if all have.
export function missing(answer) {
  const shards = answer.missing ?? [];
  if (shards.length === 0) return null;
  const named = shards.length === 1 ? `Shard ${shards[0]} does` : `Shards ${shards.join(", ")} do`;
  const text = `${named} not answer: entries there are not shown and not counted, and ranks are too good.`;
  return h("p", { class: "note warn", role: "status" }, text);
}

/// Reads something into `element`, and again every ten seconds while somebody looks, until `signal` ends it.
/// What cannot be read is told above what was read before, and asked for again if that may help.
///
/// `read` brings an answer, which `told` gets each time; `draw` gets it if it is another one than before, and
/// returns what is shown. `isKept` says whether the answer is read again; it always is after a failure.
/// `failed` is told of failures. Returns what has it read soon, and what has it drawn anew then.
export function keeping(element, { read, told, draw, signal, isKept = () => true, failed }) {
  const trouble = h("div", {});
  const content = h("div", { "aria-busy": "true" });
  let timer;
  let last = "";
  let wait = RETRY_MS;
  let isReading = false;
  let at = Number.NEGATIVE_INFINITY;
  show(element, trouble, content);
  const later = (ms) => {
    clearTimeout(timer);
    timer = setTimeout(run, ms);
  };
  async function run() {
    if (signal.aborted || isReading) return;
    // Nobody looks. It is read once somebody does.
    if (document.hidden && last !== "") return;
    clearTimeout(timer);
    isReading = true;
    try {
      const answer = await read();
      if (signal.aborted) return;
      const now = JSON.stringify(answer, (name, value) => (name === "as_of" ? undefined : value));
      told?.(answer);
      show(trouble);
      // A list that is being chosen from would close.
      const used = document.activeElement;
      const isChosenFrom = used?.matches("select") && content.contains(used);
      if (now !== last && !isChosenFrom) {
        show(content, draw(answer));
        last = now;
      }
      wait = RETRY_MS;
      if (isKept()) later(AGAIN_MS);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      const isAskedAgain = error.passes === true;
      // What is refused now was shown when it was not.
      if (error.status >= 400 && error.status < 500) {
        show(content);
        last = "";
      }
      const stays = last === "" ? "" : " What is shown was read before.";
      const again = error.status === 404 || !isAskedAgain ? "" : " It is asked again.";
      show(trouble, problem(error, `${stays}${again}`));
      failed?.(error);
      if (isAskedAgain) later(error.status === 404 ? AGAIN_MS : wait);
      wait = Math.min(wait * 2, RETRY_MAX_MS);
    } finally {
      at = performance.now();
      isReading = false;
      content.removeAttribute("aria-busy");
    }
  }
  const look = () => {
    if (!document.hidden && performance.now() - at > AGAIN_MS && isKept()) run();
  };
  document.addEventListener("visibilitychange", look, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  run();
  return {
    soon: () => {
      if (!isReading && !signal.aborted) later(Math.max(0, at + SOON_MS - performance.now()));
    },
    /// Draws the next answer, also if it is the same.
    forget: () => {
      last = "";
    },
  };
}

/// Entries of a board. `keys` are those of its definition; `moved` names the window since which they moved.
export function entriesTable(entries, { caption, keys, own, fresh, pick, group, isNarrow, moved }) {
  const moves = moved !== undefined;
  const errs = entries.some((entry) => entry.error !== undefined);
  const column = (text, more) => h("th", { scope: "col", class: "number", ...more }, text);
  const head = [
    column("Position"),
    column("Rank"),
    group && column("In the group"),
    h("th", { scope: "col" }, "Member"),
    keys.map((key) =>
      column(keyName(key), {
        class: "number key",
        title: `${key.name}, ${key.order === "asc" ? "least" : "greatest"} first`,
      }),
    ),
    errs && column("Too high by", { title: "The most by which the score is too high" }),
    moves && column(`Moved, ${moved}`, { title: `Positions climbed since the current ${moved} began` }),
    !isNarrow && h("th", { scope: "col", class: "later" }, "Updated"),
  ];
  const row = (entry) => {
    const name = pick
      ? h("button", { type: "button", onclick: () => pick(entry.member) }, id(entry.member))
      : id(entry.member);
    const classes = [entry.member === own ? "own" : "", fresh?.has(entry.member) ? "new" : ""]
      .join(" ")
      .trim();
    return h(
      "tr",
      { class: classes || null, "aria-current": entry.member === own ? "true" : null },
      h("td", { class: "number" }, number(entry.position)),
      h("td", { class: "number" }, number(entry.rank)),
      group && h("td", { class: "number" }, number(entry.group_rank)),
      h("td", { class: entry.member.length > 40 ? "member long" : "member" }, name),
      keysOf(entry.score).map((key) => h("td", { class: "number" }, number(key))),
      errs && h("td", { class: "number" }, number(entry.error)),
      moves && h("td", { class: "number" }, movement(entry.movement)),
      !isNarrow && h("td", { class: "later soft small" }, time(entry.updated_at)),
    );
  };
  return h(
    "div",
    { class: "wide" },
    h(
      "table",
      {},
      h("caption", { class: caption ? null : "unseen" }, caption ?? "Entries, best first"),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, entries.map(row)),
    ),
  );
}

/// A key's name, and which way it is ordered if that is not the usual one.
export function keyName(key) {
  return h("bdi", {}, key.order === "asc" ? `${key.name} ↑` : key.name);
}
