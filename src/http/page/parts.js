// What several views are made of.

import { curl } from "./api.js";
import { h, movement, number, say, score, show, time } from "./dom.js";

/// A button that puts the command for a shell into the clipboard.
export function copyAsCurl(request) {
  const button = h("button", { type: "button", class: "quiet", onclick: copy }, "Copy as curl");
  async function copy() {
    const { method = "GET", url, body } = request();
    const text = curl(method, url, body);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without HTTPS, browsers keep the clipboard from pages of other machines.
      const shown = h("pre", { tabindex: "0" }, text);
      button.closest(".panel, .title")?.after(shown);
      shown.focus();
      getSelection().selectAllChildren(shown);
      button.textContent = "Select and copy";
    }
    say("The command was copied.");
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
export function problem(error) {
  const code = error.code ? h("span", { class: "soft small" }, ` (${error.code})`) : null;
  return h("p", { class: "note bad", role: "alert" }, error.message, code);
}

/// Runs what fills `element`, and shows what goes wrong there.
export async function filling(element, work, signal) {
  element.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError" && !signal?.aborted) show(element, problem(error));
  } finally {
    element.removeAttribute("aria-busy");
  }
}

/// Entries of a board.
export function entriesTable(entries, { caption, keys, own, fresh, pick, group, isNarrow }) {
  const moves = entries.some((entry) => entry.movement !== undefined);
  const head = [
    "Position",
    "Rank",
    group && "In the group",
    "Member",
    keys ?? "Score",
    moves && "Moved",
  ].filter(Boolean);
  const numbers = new Set(["Position", "Rank", "In the group", keys ?? "Score", "Moved"]);
  const cell = (text) => h("th", { scope: "col", class: numbers.has(text) ? "number" : null }, text);
  const row = (entry) => {
    const name = pick
      ? h("button", { type: "button", onclick: () => pick(entry.member) }, entry.member)
      : entry.member;
    const classes = [entry.member === own ? "own" : "", fresh?.has(entry.member) ? "new" : ""]
      .join(" ")
      .trim();
    return h(
      "tr",
      { class: classes || null, "aria-current": entry.member === own ? "true" : null },
      h("td", { class: "number" }, number(entry.position)),
      h("td", { class: "number" }, number(entry.rank)),
      group && h("td", { class: "number" }, number(entry.group_rank)),
      h("td", { class: "member" }, name),
      h("td", { class: "number" }, score(entry.score)),
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
      h(
        "thead",
        {},
        h("tr", {}, head.map(cell), !isNarrow && h("th", { scope: "col", class: "later" }, "Updated")),
      ),
      h("tbody", {}, entries.map(row)),
    ),
  );
}
