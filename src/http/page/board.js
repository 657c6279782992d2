// One board: its top as it changes, pages, windows and their instances, a member, friends, the distribution.

import { get, path, post } from "./api.js";
import { histogram } from "./chart.js";
import { h, number, percent, say, score, show, state, time, movement } from "./dom.js";
import { watch } from "./live.js";
import { card, copyAsCurl, entriesTable, filling, panel, problem } from "./parts.js";

const PAGE = 25;
const BUCKETS = 40;

export function board(main, { signal, name, query, go }) {
  const window = query.get("window") ?? "";
  const page = Math.max(1, Number.parseInt(query.get("page") ?? "1", 10) || 1);
  const chosen = query.get("member") ?? "";
  const view = { main, signal, name, window, page, chosen, go, names: { board: name } };
  const tabs = h("nav", { class: "tabs", "aria-label": "Windows" });
  const facts = h("span", { class: "soft small" });
  const body = h("div", { class: "two" });
  const about = () => path("/v1/boards/{board}", view.names);
  show(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, name),
      facts,
      h("span", { class: "grow" }),
      copyAsCurl(() => ({ url: about() })),
    ),
    tabs,
    body,
  );
  filling(
    body,
    async () => {
      const definition = await get(about(), signal);
      view.keys = definition.keys.map((key) => key.name).join(" · ");
      view.movement = definition.movement ? definition.windows.find((known) => known !== "all") : undefined;
      view.isAll =
        window === ""
          ? definition.windows.includes("all") || definition.windows[0] === "all"
          : window === "all";
      const order = definition.keys
        .map((key) => `${key.name}, ${key.order === "asc" ? "least" : "greatest"} first`)
        .join("; ");
      facts.textContent = `${order} · ${definition.kind === "top_k" ? "top_k" : definition.policy}`;
      show(tabs, windowTabs(view, definition));
      const chart = chartPanel(view);
      show(
        body,
        h("div", {}, topPanel(view)),
        h("div", {}, memberPanel(view, chart), chart.element, friendsPanel(view)),
      );
    },
    signal,
  );
}

/// The link to this board with something changed.
function link({ name, window, page, chosen }, change) {
  const wanted = { window, page: page === 1 ? "" : String(page), member: chosen, ...change };
  const search = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== "")).toString();
  return `#/boards/${encodeURIComponent(name)}${search === "" ? "" : `?${search}`}`;
}

function windowTabs(view, definition) {
  const first = definition.windows.includes("all") ? "all" : definition.windows[0];
  const asked = view.window === "" ? first : view.window;
  const tabs = definition.windows.map((known) =>
    h(
      "a",
      {
        href: link(view, { window: known === first ? "" : known, page: "" }),
        "aria-current": known === asked ? "page" : null,
      },
      known,
    ),
  );
  const past = definition.windows
    .filter((known) => known !== "all")
    .flatMap((known) => definition.instances?.[known] ?? []);
  if (past.length > 0) {
    const option = (instance) =>
      h(
        "option",
        { value: instance.name, selected: instance.name === asked },
        `${instance.name} (${number(instance.total)}${instance.open ? ", open" : ""})`,
      );
    const select = h(
      "select",
      {
        "aria-label": "An instance of a window",
        onchange: () => view.go(link(view, { window: select.value, page: "" })),
      },
      h("option", { value: "" }, "Instances…"),
      past.map(option),
    );
    tabs.push(select);
  }
  return tabs;
}

function topPanel(view) {
  const list = h("div", {});
  const status = h("span", {});
  const total = h("span", { class: "soft small" });
  const isLive = view.page === 1;
  const from = (view.page - 1) * PAGE + 1;
  const moves = view.isAll ? view.movement : undefined;
  const url = isLive
    ? path("/v1/boards/{board}/live", view.names, { window: view.window, top: PAGE })
    : path(
        "/v1/boards/{board}/positions/{position}",
        { ...view.names, position: from },
        { window: view.window, limit: PAGE },
      );
  const pages = h("p", { class: "buttons" });
  let moved = new Map();

  function draw(entries, count, fresh) {
    total.textContent = `${number(count)} ${count === 1 ? "entry" : "entries"}`;
    const last = Math.max(1, Math.ceil(count / PAGE));
    const step = (text, to, isThere) =>
      isThere
        ? h("a", { href: link(view, { page: to === 1 ? "" : String(to) }) }, text)
        : h("span", { class: "soft" }, text);
    show(
      pages,
      step("First", 1, view.page > 1),
      step("Previous", view.page - 1, view.page > 1),
      h("span", { class: "soft small" }, `Page ${number(view.page)} of ${number(last)}`),
      step("Next", view.page + 1, view.page < last),
      step("Last", last, view.page < last),
    );
    if (entries.length === 0)
      return show(
        list,
        h(
          "p",
          { class: "empty" },
          count === 0 ? "Nobody is on the board yet." : "The board ends before this page.",
        ),
      );
    const shown = entries.map((entry) =>
      moved.has(entry.member) ? { ...entry, movement: moved.get(entry.member) } : entry,
    );
    const pick = (member) => view.go(link(view, { member }));
    show(list, entriesTable(shown, { keys: view.keys, own: view.chosen, fresh, pick }));
  }

  const reread = async () => {
    if (moves === undefined) return;
    const answer = await get(
      path("/v1/boards/{board}/top", view.names, { limit: PAGE, movement: moves }),
      view.signal,
    );
    moved = new Map(answer.entries.map((entry) => [entry.member, entry.movement]));
  };

  if (isLive) {
    const kinds = {
      connecting: ["warn", "Connecting"],
      live: ["good", "Live"],
      waiting: ["bad", "Connection lost; trying again"],
      ended: ["bad", "Ended"],
    };
    list.append(h("p", { class: "empty" }, "Reading…"));
    const tell = (known) => {
      show(
        status,
        known.stale ? state("warn", "Live, but a shard does not answer") : state("good", "Live"),
      );
      draw(known.entries, known.total, known.fresh);
      if (known.fresh.size > 0) say(`${known.fresh.size} entries have changed.`);
    };
    const told = (kind, error) => {
      show(status, state(...kinds[kind]));
      if (error) show(list, problem(error));
    };
    const begin = async () => {
      // Without movement the board is still worth seeing.
      await reread().catch(() => {});
      await watch(url, view.signal, tell, told);
    };
    begin();
    const rereadNow = () => reread().catch(() => {});
    const timer = setInterval(rereadNow, 15000);
    view.signal.addEventListener("abort", () => clearInterval(timer));
  } else {
    filling(
      list,
      async () => {
        const answer = await get(url, view.signal);
        draw(answer.entries, answer.total);
      },
      view.signal,
    );
  }
  const title = isLive ? "Top" : `From position ${number(from)}`;
  return panel(title, [total, status, copyAsCurl(() => ({ url }))], list, pages);
}

function memberPanel(view, chart) {
  const field = h("input", {
    type: "search",
    id: "find-member",
    value: view.chosen,
    placeholder: "A member's id, exactly",
    autocomplete: "off",
    spellcheck: "false",
  });
  const found = h("div", {});
  const query = { window: view.window };
  if (view.isAll && view.movement) query.movement = view.movement;
  const url = () =>
    path("/v1/boards/{board}/members/{member}", { ...view.names, member: view.chosen }, query);
  const around = () =>
    path(
      "/v1/boards/{board}/members/{member}/around",
      { ...view.names, member: view.chosen },
      { ...query, above: 4, below: 4, fill: true },
    );
  const submit = (event) => {
    event.preventDefault();
    view.go(link(view, { member: field.value }));
  };
  const form = h(
    "form",
    { class: "search", role: "search", onsubmit: submit },
    h("label", { for: "find-member", class: "unseen" }, "A member's id"),
    field,
    h("button", { type: "submit" }, "Find"),
  );
  if (view.chosen !== "") {
    filling(
      found,
      async () => {
        const [entry, neighbours] = await Promise.all([
          get(url(), view.signal),
          get(around(), view.signal),
        ]);
        const key = Array.isArray(entry.score) ? entry.score[0] : entry.score;
        chart.mark({ own: key, name: view.chosen });
        show(
          found,
          h(
            "div",
            { class: "cards" },
            card("rank", number(entry.rank)),
            card("position", number(entry.position)),
            card(view.keys, score(entry.score)),
            card("percentile", percent(entry.percentile)),
            entry.movement !== undefined && card(`moved, ${view.movement}`, movement(entry.movement)),
          ),
          h(
            "p",
            { class: "soft small" },
            `${number(entry.better)} better, ${number(entry.tied)} with this score, ${number(entry.worse)} worse. Updated `,
            time(entry.updated_at),
            ".",
          ),
          Object.keys(entry.meta ?? {}).length > 0 &&
            h("pre", { tabindex: "0" }, JSON.stringify(entry.meta, null, 2)),
          entriesTable(neighbours.entries, {
            caption: "Neighbours",
            isNarrow: true,
            keys: view.keys,
            own: view.chosen,
            pick: (member) => view.go(link(view, { member })),
          }),
          h(
            "p",
            { class: "buttons" },
            copyAsCurl(() => ({ url: around() })),
            h("a", { class: "small", href: link(view, { member: "" }) }, "Close"),
          ),
        );
        say(`${view.chosen} has rank ${entry.rank} of ${entry.total}.`);
      },
      view.signal,
    );
  }
  const tool = view.chosen === "" ? null : copyAsCurl(() => ({ url: url() }));
  return panel("A member", [tool], form, found);
}

function chartPanel(view) {
  const picture = h("div", {});
  const total = h("span", { class: "soft small" });
  const url = path("/v1/boards/{board}/histogram", view.names, { window: view.window, buckets: BUCKETS });
  let buckets = null;
  let own = {};
  const draw = () => {
    if (buckets !== null)
      show(
        picture,
        buckets.length === 0
          ? h("p", { class: "empty" }, "There are no scores yet.")
          : histogram(buckets, own),
      );
  };
  filling(
    picture,
    async () => {
      const answer = await get(url, view.signal);
      buckets = answer.buckets;
      total.textContent = `${number(answer.total)}, exact`;
      draw();
    },
    view.signal,
  );
  const mark = (place) => {
    own = place;
    draw();
  };
  return { element: panel("Distribution", [total, copyAsCurl(() => ({ url }))], picture), mark };
}

function friendsPanel(view) {
  const field = h("textarea", {
    id: "friends",
    spellcheck: "false",
    placeholder: "Ids, one on each line, up to 1,000",
  });
  const found = h("div", {});
  const url = path("/v1/boards/{board}/members:lookup", view.names, { window: view.window });
  const body = () => ({
    members: field.value
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
  });
  const submit = (event) => {
    event.preventDefault();
    if (body().members.length === 0)
      return show(found, h("p", { class: "empty" }, "Paste some ids first."));
    filling(
      found,
      async () => {
        const answer = await post(url, body(), view.signal);
        const missing =
          answer.not_found.length === 0
            ? null
            : h("p", { class: "soft small" }, `Not on the board: ${answer.not_found.join(", ")}`);
        show(
          found,
          answer.entries.length === 0
            ? h("p", { class: "empty" }, "None of them is on the board.")
            : entriesTable(answer.entries, {
                caption: "Friends",
                isNarrow: true,
                keys: view.keys,
                own: view.chosen,
                group: true,
              }),
          missing,
        );
        say(`${answer.entries.length} of them are on the board.`);
      },
      view.signal,
    );
  };
  return panel(
    "Friends",
    [copyAsCurl(() => ({ method: "POST", url, body: body() }))],
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
