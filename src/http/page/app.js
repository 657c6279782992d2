// Which view is shown, and the token.

import { hasToken, isToken, onRefusal, setToken } from "./api.js";
import { board } from "./board.js";
import { boards } from "./boards.js";
import { h, show } from "./dom.js";
import { nodes } from "./nodes.js";
import { rejects } from "./rejects.js";

const main = document.getElementById("main");
const dialog = document.getElementById("token-dialog");
const field = document.getElementById("token-input");
const button = document.getElementById("token-button");
const why = document.getElementById("token-why");
const asked = why.textContent;

/// What a part of an address has to be: true, or in words what it should be.
const RULES = { page: (text) => /^[1-9]\d{0,12}$/.test(text) || "a whole number from 1 on" };
const views = {
  boards: { show: boards, title: "Boards", takes: [] },
  board: { show: board, takes: ["window", "page", "member", "moved"] },
  nodes: { show: nodes, title: "Shards and nodes", takes: [] },
  rejects: { show: rejects, title: "Rejects", takes: ["reason"] },
};

let current = null;
/// Whether somebody has closed the dialog without a token. They are not asked again until they do something.
let isDeclined = false;

/// What the address says: a view, or none, and what of it is not understood.
function read() {
  const hash = location.hash.replace(/^#\/?/, "");
  const cut = hash.indexOf("?");
  const [place, search] = cut < 0 ? [hash, ""] : [hash.slice(0, cut), hash.slice(cut + 1)];
  if (!isEncoded(place) || !isEncoded(search.replaceAll("+", " "))) return { view: null };
  const [first, ...rest] = place.split("/");
  // A board's name may have slashes.
  const name = decodeURIComponent(rest.join("/"));
  const query = new URLSearchParams(search);
  let view = null;
  if (place === "") view = "boards";
  else if (first === "boards") view = name === "" ? "boards" : "board";
  else if (["nodes", "rejects"].includes(first) && name === "") view = first;
  if (view === null) return { view };
  return { view, name: view === "board" ? name : undefined, query, wrong: misunderstood(view, query) };
}

function isEncoded(text) {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/// What of a query the view has no use for, in words.
function misunderstood(view, query) {
  const wrong = [];
  for (const key of new Set(query.keys())) {
    const values = query.getAll(key);
    const rule = RULES[key]?.(values[0]);
    if (!views[view].takes.includes(key)) wrong.push(`this view has nothing called “${key}”`);
    else if (values.length > 1) wrong.push(`“${key}” is there more than once, and the first is taken`);
    else if (typeof rule === "string") wrong.push(`“${key}” is ${rule}, and not “${values[0]}”`);
  }
  return wrong;
}

/// Shows what the address says. What the view before has begun ends.
function draw() {
  current?.abort();
  current = new AbortController();
  isDeclined = false;
  const { view, name, query, wrong } = read();
  const part = view === "board" ? "boards" : view;
  for (const link of document.querySelectorAll(".bar nav a[data-view]")) {
    if (link.dataset.view === part) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name ?? views[view]?.title ?? "Not found"} · ranktree`;
  if (view === null) return show(main, nothing());
  const place = h("div", {});
  const said = h("p", { class: "note warn", role: "alert" }, `In the address, ${wrong.join("; ")}.`);
  show(main, wrong.length > 0 ? said : [], place);
  views[view].show(place, {
    signal: current.signal,
    name,
    query,
    go: (to) => {
      if (location.hash === to) draw();
      else location.hash = to;
    },
  });
}

/// What is shown for an address that is none of the page's.
function nothing() {
  const to = (view) => h("a", { href: `#/${view}` }, views[view].title);
  return [
    h("div", { class: "title" }, h("h1", {}, "Not found")),
    h(
      "p",
      { class: "note bad", role: "alert" },
      "This page has no view at ",
      h("code", {}, location.hash),
      ". A board is at ",
      h("code", {}, "#/boards/NAME"),
      ", its name percent-encoded.",
    ),
    h("p", { class: "buttons" }, to("boards"), to("nodes"), to("rejects")),
  ];
}

const REASONS = {
  invalid_token: `The node does not know this token. ${asked}`,
  no_token: `A token has Latin letters, digits and signs only, without spaces. ${asked}`,
};

function ask(code) {
  why.textContent = REASONS[code] ?? asked;
  if (!dialog.open) {
    field.value = "";
    dialog.showModal();
  }
}

dialog.addEventListener("close", () => {
  const choice = dialog.returnValue;
  const value = field.value.trim();
  field.value = "";
  dialog.returnValue = "";
  if (choice === "use" && value !== "" && !isToken(value)) return ask("no_token");
  if (choice === "use" && value !== "") setToken(value);
  if (choice === "forget") setToken(null);
  button.textContent = hasToken() ? "Token in use" : "Token";
  if (choice === "use" || choice === "forget") draw();
  else isDeclined = true;
});
button.addEventListener("click", () => ask(""));
onRefusal((code) => {
  if (!isDeclined) ask(code);
});
// A link to it would be an address of another view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
// The link of the view that is shown reads it anew.
for (const link of document.querySelectorAll(".bar nav a[data-view]")) {
  link.addEventListener("click", () => {
    if (link.hash === location.hash) draw();
  });
}
addEventListener("hashchange", () => {
  draw();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
draw();
