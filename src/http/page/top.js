// The top of a board as it changes, and pages further down.

import { get, path, post } from "./api.js";
import { h, number, say, show, state } from "./dom.js";
import { watch } from "./live.js";
import { copyAsCurl, entriesTable, keeping, missing, panel, problem } from "./parts.js";

const PAGE = 25;
/// How often it is read from where members have moved, and how soon a member is asked about that is new.
const MOVED_MS = 10000;
const MOVED_SOON_MS = 1000;
/// How often a screen reader is told that entries have changed, at most.
const SAY_MS = 10000;

/// Where an entry was when the instance began that its movement is of; `null` if it was not listed then.
function positionThen({ movement, position }) {
  return movement === null ? null : movement + position;
}

/// Where members were when the current instance of a window began. What they have moved since follows from
/// their positions, which are told as they change.
function movements(view, changed) {
  let then = new Map();
  let timer;
  const url = () =>
    path("/v1/boards/{board}/top", view.names, { window: view.window, limit: PAGE, movement: view.moved });
  async function read() {
    clearTimeout(timer);
    if (view.signal.aborted) return;
    try {
      if (!document.hidden) {
        const { entries } = await get(url(), view.signal);
        then = new Map(entries.map((entry) => [entry.member, positionThen(entry)]));
        changed();
      }
    } catch {
      // Without movement the board is still worth seeing.
    }
    clearTimeout(timer);
    if (!view.signal.aborted) timer = setTimeout(read, MOVED_MS);
  }
  let isSoon = false;
  function soon() {
    if (isSoon) return;
    isSoon = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isSoon = false;
      read();
    }, MOVED_SOON_MS);
  }
  view.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return {
    read,
    forget: () => then.clear(),
    of(entry) {
      if (!then.has(entry.member)) {
        soon();
        return entry;
      }
      const was = then.get(entry.member);
      return { ...entry, movement: was === null ? null : was - entry.position };
    },
  };
}

export function topPanel(view) {
  const list = h("div", {});
  const notice = h("div", {});
  const status = h("span", {});
  const total = h("span", { class: "soft small" });
  const pages = h("p", { class: "buttons" });
  const isLive = view.page === 1;
  const from = (view.page - 1) * PAGE + 1;

  function drawPages(count) {
    const last = Math.max(1, Math.ceil(count / PAGE));
    const step = (text, to, isThere) =>
      isThere
        ? h("a", { href: view.link({ page: to === 1 ? "" : String(to) }) }, text)
        : h("span", { class: "soft" }, text);
    show(
      pages,
      step("First", 1, view.page > 1),
      step("Previous", Math.min(view.page - 1, last), view.page > 1),
      h(
        "span",
        { class: "soft small" },
        view.page <= last ? `Page ${number(view.page)} of ${number(last)}` : `The last page is ${number(last)}`,
      ),
      step("Next", view.page + 1, view.page < last),
      step("Last", last, view.page !== last),
    );
  }

  function table(entries, count, fresh) {
    total.textContent = `${number(count)} ${count === 1 ? "entry" : "entries"}`;
    drawPages(count);
    if (entries.length === 0) {
      const yet = view.isOpen() ? "Nobody is on the board yet." : "Nobody was on the board.";
      return h("p", { class: "empty" }, count === 0 ? yet : "The board ends before this page.");
    }
    const pick = (member) => view.go(view.link({ member }));
    return entriesTable(entries, { keys: view.keys, own: view.chosen, fresh, pick, moved: view.moved });
  }

  const url = isLive
    ? path("/v1/boards/{board}/live", view.names, { window: view.window, top: PAGE })
    : path(
        "/v1/boards/{board}/positions/{position}",
        { ...view.names, position: from },
        { window: view.window, limit: PAGE },
      );
  if (isLive) follow();
  else {
    keeping(list, {
      signal: view.signal,
      read: readPage,
      draw: (answer) => [missing(answer), table(answer.entries, answer.total)],
      failed: (error) => {
        if (error.status >= 400 && error.status < 500) clear();
      },
    });
  }

  /// A page further down. Movement is asked of its members: pages by position have none.
  async function readPage() {
    const answer = await get(url, view.signal);
    const members = answer.entries.map((entry) => entry.member);
    if (view.moved === undefined || members.length === 0) return answer;
    const query = { window: view.window, movement: view.moved };
    const lookup = path("/v1/boards/{board}/members:lookup", view.names, query);
    try {
      const { entries } = await post(lookup, { members }, view.signal);
      const then = new Map(entries.map((entry) => [entry.member, positionThen(entry)]));
      const since = ({ member, position }) => {
        const was = then.get(member);
        return was === undefined || was === null ? was : was - position;
      };
      return { ...answer, entries: answer.entries.map((entry) => ({ ...entry, movement: since(entry) })) };
    } catch (error) {
      if (error.name === "AbortError") throw error;
      // Without movement the page is still worth seeing.
      return answer;
    }
  }

  function clear() {
    total.textContent = "";
    show(pages);
  }

  function follow() {
    let known = null;
    let kind = "connecting";
    /// Whether what is shown, if anything, is without the shards that do not answer.
    let isPart = false;
    let said = Number.NEGATIVE_INFINITY;
    const moved = view.moved === undefined ? null : movements(view, () => known && draw(new Set()));
    list.append(h("p", { class: "empty" }, "Reading…"));

    function draw(fresh) {
      const entries = moved === null ? known.entries : known.entries.map((entry) => moved.of(entry));
      show(list, table(entries, known.total, fresh));
    }
    /// How the connection is, and of an instance that has ended, that it has: nothing of it is live.
    function badge() {
      const kinds = {
        connecting: ["warn", "Connecting"],
        waiting: ["bad", "Connection lost; trying again"],
        ended: ["bad", "Ended"],
      };
      if (isPart || (kind === "live" && known?.stale)) return state("warn", "A shard does not answer");
      if (kind !== "live") return state(...kinds[kind]);
      if (!view.isOpen()) return state("final", "Final");
      return view.isCurrent() ? state("good", "Live") : state("warn", "Ended, open for late scores");
    }
    view.whenTold.push(() => show(status, badge()));

    function tell(now) {
      // Another life of the board, or another instance.
      if (now.isWhole && known !== null) moved?.forget();
      known = now;
      kind = "live";
      isPart = false;
      show(status, badge());
      const old = "What is shown of a shard that does not answer is as it was before.";
      show(notice, now.stale ? h("p", { class: "note warn", role: "status" }, old) : null);
      draw(now.fresh);
      view.changed(now.window);
      if (now.fresh.size > 0 && performance.now() > said + SAY_MS) {
        said = performance.now();
        say(`${now.fresh.size} entries have changed.`);
      }
    }
    async function readWithout() {
      try {
        const rest = path("/v1/boards/{board}/top", view.names, { window: view.window, limit: PAGE });
        const answer = await get(rest, view.signal);
        if (kind === "live" || view.signal.aborted) return;
        show(notice, missing(answer));
        show(list, table(answer.entries, answer.total));
        known = null;
      } catch (error) {
        if (error.name !== "AbortError" && kind !== "live") show(notice, problem(error));
      }
    }
    function told(now, why) {
      kind = now;
      if (now !== "connecting") isPart = why?.code === "shard_unavailable";
      show(status, badge());
      if (now === "ended") {
        known = null;
        clear();
        show(list);
        show(notice, problem(why));
        view.gone(why);
      } else if (now === "waiting") {
        const shown = known === null ? " It is asked again." : " What is shown was read before.";
        if (known === null && !isPart) show(list);
        if (isPart) readWithout();
        else show(notice, why ? problem(why, shown) : null);
      }
    }
    moved?.read();
    watch(url, view.signal, tell, told);
  }
  const title = isLive ? "Top" : `From position ${number(from)}`;
  return panel(title, [total, status, copyAsCurl(() => ({ url }))], notice, list, pages);
}
