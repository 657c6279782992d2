// One board: its windows and their instances, its top, a member, friends, the distribution.

import { get, path } from "./api.js";
import { chartPanel } from "./chart.js";
import { h, number, show, time } from "./dom.js";
import { friendsPanel, memberPanel } from "./member.js";
import { copyAsCurl, keeping, problem } from "./parts.js";
import { topPanel } from "./top.js";

export function board(main, { signal, name, query, go }) {
  const names = { board: name };
  const wanted = {
    window: query.get("window") ?? "",
    page: /^[1-9]\d{0,12}$/.test(query.get("page") ?? "") ? Number(query.get("page")) : 1,
    member: query.get("member") ?? "",
    moved: query.get("moved") ?? "",
  };
  const link = (change) => linkTo(name, wanted, change);
  const facts = h("span", { class: "soft small" });
  const head = h("div", {});
  const body = h("div", { class: "two" });
  const url = path("/v1/boards/{board}", names);
  show(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, name),
      facts,
      h("span", { class: "grow" }),
      copyAsCurl(() => ({ url })),
    ),
    head,
    body,
  );
  let view = null;
  let built = "";
  let parts = new AbortController();
  signal.addEventListener("abort", () => parts.abort(), { once: true });

  function end() {
    parts.abort();
    built = "";
    view = null;
    show(body);
  }

  /// Makes the parts, once for each definition: what somebody has typed stays.
  function build(definition, moved, instance) {
    const key = JSON.stringify([definition.keys, definition.windows, moved]);
    if (view !== null) view.instance = instance;
    if (key === built) return view.whenTold.forEach((told) => told());
    parts.abort();
    parts = new AbortController();
    view = {
      signal: parts.signal,
      names,
      link,
      go,
      instance,
      window: wanted.window,
      page: wanted.page,
      chosen: wanted.member,
      keys: definition.keys,
      moved,
      isOpen: () => view?.instance.open !== false,
      isCurrent: () => view?.instance.isCurrent !== false,
      whenTold: [],
      whenChanged: [],
      /// Entries have changed: what else is shown of them is old. A window may have another instance.
      changed(now) {
        for (const soon of this.whenChanged) soon();
        if (now !== this.instance.name) about.soon();
      },
      /// There is nothing to watch any more. The board may be there again when it is looked for.
      gone(why) {
        if (why?.status !== 404) return;
        built = "";
        about.forget();
        about.soon();
      },
    };
    const chart = chartPanel(view);
    show(
      body,
      h("div", {}, topPanel(view)),
      h("div", {}, memberPanel(view, chart), chart.element, friendsPanel(view)),
    );
    built = key;
  }

  const about = keeping(head, {
    signal,
    async read() {
      const definition = await get(url, signal);
      return { definition, instance: await readInstance(definition) };
    },
    told({ definition, instance }) {
      const order = definition.keys
        .map((key) => `${key.name}, ${key.order === "asc" ? "least" : "greatest"} first`)
        .join("; ");
      const kind = definition.kind === "top_k" ? "top_k · " : "";
      show(facts, h("bdi", {}, order), ` · ${kind}${definition.policy}`);
      if (instance.refused) end();
      else build(definition, movedSince(definition, instance).moved, instance);
    },
    draw({ definition, instance }) {
      const first = defaultWindow(definition);
      const tabs = windowTabs(definition, instance, first);
      const planned = plannedLine(definition);
      if (instance.refused) {
        // Before its first season a board may have nothing else to show.
        const [other] = [first, ...definition.windows].filter((window) => currentOf(definition, window));
        const to = { window: other === first ? "" : other, page: "" };
        const back = other === undefined ? null : h("a", { href: link(to) }, `Show ${other}`);
        return [tabs, problem(instance.refused, " ", back), planned];
      }
      return [tabs, instanceLine(instance), planned, movedChoice(movedSince(definition, instance))];
    },
    failed(error) {
      if (!(error.status >= 400 && error.status < 500)) return;
      end();
      show(facts);
    },
  });

  /// The instance that the address asks for: which it is now, and whether scores still enter it.
  async function readInstance(definition) {
    const asked = wanted.window === "" ? defaultWindow(definition) : wanted.window;
    if (definition.windows.includes(asked)) {
      const current = currentOf(definition, asked);
      if (current) return { ...current, window: asked, isCurrent: true };
    }
    const listed = definition.windows
      .flatMap((window) => (definition.instances?.[window] ?? []).map((one) => ({ ...one, window })))
      .find((instance) => instance.name === asked);
    if (listed && !isPlanned(definition, listed.window, listed))
      return { ...listed, isCurrent: currentOf(definition, listed.window)?.name === asked };
    try {
      const { instances } = await get(path("/v1/boards/{board}", names, { window: asked }), signal);
      for (const [window, [one]] of Object.entries(instances))
        if (one?.name === asked) return { ...one, window, isCurrent: false };
      return { refused: { message: `The board has no instance ${asked}`, code: "unknown_window" } };
    } catch (error) {
      if (!(error.status >= 400 && error.status < 500) || error.code === "unknown_board") throw error;
      return { refused: { message: error.message, code: error.code } };
    }
  }

  function windowTabs(definition, instance, first) {
    const asked = wanted.window === "" ? first : wanted.window;
    const tabs = definition.windows.map((known) =>
      h(
        "a",
        {
          href: link({ window: known === first ? "" : known, page: "" }),
          "aria-current": known === asked ? "page" : null,
        },
        known,
      ),
    );
    const groups = definition.windows
      .filter((known) => known !== "all")
      .map((known) => [known, [...(definition.instances?.[known] ?? [])]]);
    const option = (one, window) => {
      const state = one.open ? ", open" : isPlanned(definition, window, one) ? ", not begun" : "";
      const text = `${one.name} (${number(one.total)}${state})`;
      return h("option", { value: one.name, selected: one.name === asked }, text);
    };
    // Of very many, the list has the newest, and the one that is shown.
    for (const [known, list] of groups)
      if (known === instance.window && !list.some((one) => one.name === instance.name)) list.push(instance);
    if (groups.some(([, list]) => list.length > 0)) {
      const select = h(
        "select",
        {
          id: "instances",
          "aria-label": "An instance of a window",
          class: definition.windows.includes(asked) || instance.refused ? null : "chosen",
          onchange: () => go(link({ window: select.value, page: "" })),
        },
        h("option", { value: "" }, "Instances…"),
        groups
          .filter(([, list]) => list.length > 0)
          .map(([known, list]) => {
            const older = definition.next_cursors?.[known] && "Older ones: by their name in the address";
            return h(
              "optgroup",
              { label: known },
              list.map((one) => option(one, known)),
              older && h("option", { disabled: true }, older),
            );
          }),
      );
      tabs.push(select);
    }
    return h("nav", { class: "tabs", "aria-label": "Windows" }, tabs);
  }

  /// Windows since which entries have moved: those of the board that have begun. The first is taken if the
  /// address names none of them.
  function movedSince(definition, instance) {
    const keeps = definition.movement && instance.name === "all";
    const moving = definition.windows.filter((window) => window !== "all" && currentOf(definition, window));
    if (!keeps) return { moving: [] };
    return { moving, moved: moving.includes(wanted.moved) ? wanted.moved : moving[0] };
  }

  function movedChoice({ moving, moved }) {
    if (moving.length < 2) return null;
    const select = h(
      "select",
      { id: "moved", onchange: () => go(link({ moved: select.value === moving[0] ? "" : select.value })) },
      moving.map((window) => h("option", { value: window, selected: window === moved }, window)),
    );
    return h("p", { class: "pair moved" }, h("label", { for: "moved" }, "Moved since the current"), select);
  }
}

/// The link to a board with something changed.
function linkTo(name, wanted, change) {
  const { page } = wanted;
  const all = { ...wanted, page: page === 1 ? "" : String(page), ...change };
  const search = new URLSearchParams(Object.entries(all).filter(([, value]) => value !== "")).toString();
  return `#/boards/${encodeURIComponent(name)}${search === "" ? "" : `?${search}`}`;
}

function defaultWindow({ windows }) {
  return windows.includes("all") ? "all" : windows[0];
}

/// They are listed from the newest on. One that has not begun, or that has ended, is not current.
function currentOf(definition, window) {
  return (definition.instances?.[window] ?? []).find((instance) => instance.open);
}

/// Whether an instance is listed before the current one, so that it is still to begin.
function isPlanned(definition, window, { name, open }) {
  const list = definition.instances?.[window] ?? [];
  const current = list.findIndex((one) => one.open);
  const place = list.findIndex((one) => one.name === name);
  return !open && place >= 0 && (current < 0 || place < current);
}

/// The seasons that an operator has planned, and when they begin.
function plannedLine({ planned_seasons: planned }) {
  if (!planned?.length) return null;
  const each = planned.flatMap(({ name, begin }) => [", ", h("b", {}, name), " from ", time(begin)]).slice(1);
  return h("p", { class: "soft small", id: "planned" }, "Planned: ", each, ".");
}

/// Which instance is shown, from when to when it is, and whether its standings are final.
function instanceLine({ window, name, begin, end, open, isCurrent }) {
  if (window === "all") return null;
  const state = isCurrent
    ? `the current ${window}`
    : open
      ? "ended, and open for scores that come late"
      : "closed: its standings are final";
  return h(
    "p",
    { class: "soft small", id: "instance" },
    h("b", {}, name),
    `, ${state}. From `,
    time(begin),
    end ? [" to ", time(end), "."] : " until the next one begins.",
  );
}
