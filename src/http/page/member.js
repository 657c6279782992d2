// One member of a board, and the members of a group.

import { get, isFolder, Problem, path, post, written } from "./api.js";
import { h, id, keysOf, movement, number, percent, say, show, time } from "./dom.js";
import { card, copyAsCurl, entriesTable, keeping, keyName, missing, panel } from "./parts.js";

const NEIGHBOURS = 4;

/// `chart` is told where the member is.
export function memberPanel(view, chart) {
  const field = h("input", {
    type: "search",
    id: "find-member",
    value: view.chosen,
    placeholder: "A member's id, exactly",
    autocomplete: "off",
    spellcheck: "false",
    dir: "auto",
  });
  const found = h("div", {});
  const query = { window: view.window, movement: view.moved };
  const names = { ...view.names, member: view.chosen };
  const url = () => path("/v1/boards/{board}/members/{member}", names, query);
  const around = () =>
    path("/v1/boards/{board}/members/{member}/around", names, {
      ...query,
      above: NEIGHBOURS,
      below: NEIGHBOURS,
      fill: true,
    });
  const submit = (event) => {
    event.preventDefault();
    view.go(view.link({ member: field.value }));
  };
  const form = h(
    "form",
    { class: "search", role: "search", onsubmit: submit },
    h("label", { for: "find-member", class: "unseen" }, "A member's id"),
    field,
    h("button", { type: "submit" }, "Find"),
  );
  const pick = (member) => view.go(view.link({ member }));
  const close = () => h("a", { class: "small", href: view.link({ member: "" }) }, "Close");
  let mayBeHidden = true;

  async function read() {
    if (isFolder(view.chosen)) return readByLookup(view, query);
    try {
      const entry = await get(url(), view.signal);
      const { entries } = await get(around(), view.signal);
      return { entry, entries };
    } catch (error) {
      if (error.code !== "unknown_member" || !mayBeHidden) throw error;
      const entry = await readHidden();
      if (entry === null) throw error;
      return { entry, entries: [] };
    }
  }
  /// A hidden entry is shown to those who may hide one. Nobody else is told that there is one.
  async function readHidden() {
    try {
      const hidden = { window: view.window, hidden: true };
      const entry = await get(path("/v1/boards/{board}/members/{member}", names, hidden), view.signal);
      return entry.hidden === true ? entry : null;
    } catch (error) {
      mayBeHidden = error.passes === true;
      return null;
    }
  }
  function draw({ entry, entries }) {
    const keys = keysOf(entry.score);
    chart.mark(entry.hidden ? {} : { own: keys[0], name: view.chosen });
    say(`${view.chosen} has rank ${entry.rank} of ${entry.total}.`);
    const { error, meta } = entry;
    return [
      missing(entry),
      entry.hidden &&
        h("p", { class: "note warn" }, "This entry is hidden. It would have the rank that is shown here."),
      h("p", { class: "chosen" }, id(view.chosen)),
      h(
        "div",
        { class: "cards" },
        card("rank", number(entry.rank)),
        card("position", number(entry.position)),
        keys.map((key, index) => card(keyName(view.keys[index] ?? { name: "" }), number(key))),
        error === undefined ? null : card("too high by at most", number(error)),
        entry.percentile === undefined ? null : card("percentile", percent(entry.percentile)),
        entry.movement === undefined ? null : card(`moved, ${view.moved}`, movement(entry.movement)),
      ),
      h(
        "p",
        { class: "soft small" },
        `${number(entry.better)} better, ${number(entry.tied)} with this score, ${number(entry.worse)} worse.`,
        " Updated ",
        time(entry.updated_at),
        ".",
      ),
      meta === null && h("p", { class: "soft small" }, "The metadata cannot be read."),
      Object.keys(meta ?? {}).length > 0 && h("pre", { tabindex: "0", class: "wrapped" }, written(meta)),
      entries.length > 0 &&
        entriesTable(entries, {
          caption: "Neighbours",
          isNarrow: true,
          keys: view.keys,
          own: view.chosen,
          pick,
          moved: entries[0].movement === undefined ? undefined : view.moved,
        }),
    ];
  }

  if (view.chosen !== "") {
    const reading = keeping(found, {
      read,
      draw,
      signal: view.signal,
      failed: (error) => {
        if (error.status >= 400 && error.status < 500) chart.mark({});
      },
    });
    view.whenChanged.push(reading.soon);
  }
  const tools = h(
    "p",
    { class: "buttons" },
    copyAsCurl(() => ({ url: around() })),
    close(),
  );
  const tool = view.chosen === "" ? null : copyAsCurl(() => ({ url: url() }));
  return panel("A member", [tool], form, found, view.chosen !== "" && tools);
}

/// The same of a member that a browser cannot name in a path: "." and ".." are folders to it.
async function readByLookup(view, query) {
  const lookup = path("/v1/boards/{board}/members:lookup", view.names, query);
  const { entries, missing } = await post(lookup, { members: [view.chosen] }, view.signal);
  if (entries.length === 0) {
    const detail = "the member has no entry on this board, or a hidden one";
    throw new Problem(404, { code: "unknown_member", detail });
  }
  const [entry] = entries;
  const score = keysOf(entry.score).join(",");
  const standing = path("/v1/boards/{board}/rank", view.names, { window: view.window, score });
  const { better, tied, worse, total } = await get(standing, view.signal);
  const position = Math.max(1, entry.position - NEIGHBOURS);
  const page = path(
    "/v1/boards/{board}/positions/{position}",
    { ...view.names, position },
    { window: view.window, limit: 2 * NEIGHBOURS + 1 },
  );
  const around = await get(page, view.signal);
  return { entry: { ...entry, better, tied, worse, total, missing }, entries: around.entries };
}

export function friendsPanel(view) {
  const field = h("textarea", {
    id: "friends",
    spellcheck: "false",
    placeholder: "Ids, one on each line, up to 1,000",
    dir: "auto",
  });
  const found = h("div", {});
  const url = path("/v1/boards/{board}/members:lookup", view.names, { window: view.window });
  const lines = () => field.value.split("\n").filter((line) => line.trim() !== "");

  /// Spaces around an id are of the id if there is such a member, and of what was pasted if not.
  async function look(asked, signal) {
    const answer = await post(url, { members: asked }, signal);
    const spaced = new Set(answer.not_found.filter((member) => member !== member.trim()));
    if (spaced.size === 0) return answer;
    const members = asked.map((line) => (spaced.has(line) ? line.trim() : line));
    return post(url, { members }, signal);
  }
  let asking = new AbortController();
  let soon = () => {};
  view.whenChanged.push(() => soon());
  view.signal.addEventListener("abort", () => asking.abort(), { once: true });
  const submit = (event) => {
    event.preventDefault();
    asking.abort();
    const asked = lines();
    if (asked.length === 0) return show(found, h("p", { class: "empty" }, "Paste some ids first."));
    asking = new AbortController();
    const { signal } = asking;
    soon = keeping(found, { read: () => look(asked, signal), draw, signal }).soon;
  };
  function draw(answer) {
    const gone = answer.not_found.flatMap((member) => [", ", id(member)]).slice(1);
    say(`${answer.entries.length} of them are on the board.`);
    return [
      missing(answer),
      answer.entries.length === 0
        ? h("p", { class: "empty" }, "None of them is on the board.")
        : entriesTable(answer.entries, {
            caption: "Friends",
            isNarrow: true,
            keys: view.keys,
            own: view.chosen,
            group: true,
          }),
      gone.length > 0 && h("p", { class: "soft small" }, "Not on the board: ", gone),
    ];
  }
  return panel(
    "Friends",
    [copyAsCurl(() => ({ method: "POST", url, body: { members: lines() } }))],
    h(
      "form",
      { onsubmit: submit },
      h("label", { for: "friends" }, "Ranks among the members of a group"),
      field,
      h("p", { class: "buttons" }, h("button", { type: "submit" }, "Compare")),
    ),
    found,
  );
}
