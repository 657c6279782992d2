// Which view is shown, and the token.

import { hasToken, onRefusal, setToken } from "./api.js";
import { board } from "./board.js";
import { boards } from "./boards.js";
import { show } from "./dom.js";
import { nodes } from "./nodes.js";
import { rejects } from "./rejects.js";

const main = document.getElementById("main");
const dialog = document.getElementById("token-dialog");
const field = document.getElementById("token-input");
const button = document.getElementById("token-button");
const why = document.getElementById("token-why");
const asked = why.textContent;
const views = { boards, board, nodes, rejects };

let current = null;

function read() {
  const [place, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [first = "", name] = place.split("/");
  const query = new URLSearchParams(search);
  const board = first === "boards" && name ? decoded(name) : "";
  if (board) return { view: "board", name: board, query };
  return { view: Object.hasOwn(views, first) && first !== "board" ? first : "boards", query };
}

/// Nothing, if an address that somebody typed is not percent-encoded as it must be.
function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return "";
  }
}

/// Shows what the address says. What the view before has begun ends.
function draw() {
  current?.abort();
  current = new AbortController();
  const { view, name, query } = read();
  const part = view === "board" ? "boards" : view;
  for (const link of document.querySelectorAll(".bar nav a[data-view]")) {
    if (link.dataset.view === part) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name ?? { boards: "Boards", nodes: "Shards and nodes", rejects: "Rejects" }[view]} · ranktree`;
  show(main);
  views[view](main, {
    signal: current.signal,
    name,
    query,
    go: (to) => {
      location.hash = to;
    },
  });
}

function ask(code) {
  why.textContent = code === "invalid_token" ? `The node does not know this token. ${asked}` : asked;
  if (!dialog.open) {
    field.value = "";
    dialog.showModal();
  }
}

dialog.addEventListener("close", () => {
  const choice = dialog.returnValue;
  if (choice === "use" && field.value !== "") setToken(field.value.trim());
  if (choice === "forget") setToken(null);
  field.value = "";
  dialog.returnValue = "";
  button.textContent = hasToken() ? "Token in use" : "Token";
  if (choice === "use" || choice === "forget") draw();
});
button.addEventListener("click", () => ask(""));
onRefusal(ask);
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
