// All boards with their totals, and how to make the first one.

import { change, get, path } from "./api.js";
import { h, number, say, show } from "./dom.js";
import { copyAsCurl, keeping, keyName, missing, panel, problem } from "./parts.js";

const PAGE = 200;
const SAMPLE = "sample";
const FIRST = { windows: ["all", "day", "week"], policy: "best", movement: true };

export function boards(main, { signal }) {
  const search = h("input", {
    type: "search",
    id: "find-board",
    placeholder: "Part of a name",
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = h("div", {});
  const found = h("div", {});
  const count = h("span", { class: "soft small" });
  const more = h("button", { type: "button", hidden: true, onclick: readMore }, "More boards");
  const failed = h("div", {});
  let all = [];
  let cursor = "";
  let isOnePage = true;
  const url = (after) => path("/v1/boards", {}, { limit: PAGE, cursor: after });

  function take(answer) {
    cursor = answer.next_cursor ?? "";
    more.hidden = cursor === "";
    draw();
  }

  /// From here on the list stays as it was read.
  async function readMore() {
    more.disabled = true;
    isOnePage = false;
    try {
      const answer = await get(url(cursor), signal);
      all = [...all, ...answer.boards];
      take(answer);
      show(failed, missing(answer));
    } catch (error) {
      if (error.name !== "AbortError") show(failed, problem(error));
    }
    more.disabled = false;
  }

  function draw() {
    if (all.length === 0) {
      count.textContent = "";
      return show(found, nothing());
    }
    const part = search.value.trim();
    const wanted = all.filter((board) => board.board.toLowerCase().includes(part.toLowerCase()));
    const read = cursor === "" ? "" : " read so far";
    count.textContent = `${number(wanted.length)} of ${number(all.length)}${read}`;
    if (wanted.length === 0) {
      const look = h("a", { href: `#/boards/${encodeURIComponent(part)}` }, "Look for a board of this name.");
      const text = `No board has “${part}” in its name${cursor === "" ? "." : ", of those read so far. "}`;
      return show(found, h("p", { class: "empty" }, text, cursor !== "" && look));
    }
    show(
      found,
      h(
        "div",
        { class: "wide" },
        h(
          "table",
          {},
          h("caption", { class: "unseen" }, "Boards by name"),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              h("th", { scope: "col" }, "Board"),
              h("th", { scope: "col", class: "number" }, "Entries"),
              h("th", { scope: "col" }, "Windows"),
              h("th", { scope: "col", class: "later" }, "Score"),
              h("th", { scope: "col", class: "later" }, "Policy"),
            ),
          ),
          h("tbody", {}, wanted.map(row)),
        ),
      ),
    );
  }

  function row(board) {
    const first = board.windows.includes("all") ? "all" : board.windows[0];
    const keys = board.keys.flatMap((key) => [", ", keyName(key)]).slice(1);
    return h(
      "tr",
      {},
      h(
        "td",
        { class: "member" },
        h("a", { href: `#/boards/${encodeURIComponent(board.board)}` }, board.board),
      ),
      h("td", { class: "number" }, number(board.totals?.[first])),
      h("td", { class: "small" }, board.windows.join(", ")),
      h("td", { class: "later small keys" }, keys),
      h("td", { class: "later small" }, board.kind === "top_k" ? `${board.policy} (top_k)` : board.policy),
    );
  }

  function nothing() {
    const failed = h("div", {});
    const button = h("button", { type: "button", class: "main", onclick: sample }, "Load the sample");
    async function sample() {
      button.disabled = true;
      try {
        await change("PUT", path("/v1/boards/{board}", { board: SAMPLE }), FIRST, signal);
        await change("POST", "/v1/jobs?results=changed", jobs(), signal);
        say("The sample was loaded.");
        location.hash = `#/boards/${SAMPLE}`;
      } catch (error) {
        button.disabled = false;
        if (error.name !== "AbortError") show(failed, problem(error));
      }
    }
    const make = {
      method: "PUT",
      url: path("/v1/boards/{board}/members/{member}", { board: "arena", member: "alice" }),
      body: { score: 1200 },
    };
    return [
      h("p", {}, "There are no boards yet, or none that your token may see. The first score makes one:"),
      h(
        "pre",
        { tabindex: "0" },
        `curl -X PUT ${new URL(make.url, location.href).href} -d '{"score":1200}'`,
      ),
      h(
        "p",
        { class: "buttons" },
        copyAsCurl(() => make),
        button,
      ),
      h(
        "p",
        { class: "soft small" },
        `The sample is a board called ${SAMPLE} with 500 made-up members. Delete it with `,
        h("code", {}, `DELETE /v1/boards/${SAMPLE}`),
        ".",
      ),
      failed,
    ];
  }

  search.addEventListener("input", draw);
  show(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Boards"),
      h("span", { class: "grow" }),
      copyAsCurl(() => ({ url: url("") })),
    ),
    panel(
      "All boards",
      [count],
      h("div", { class: "search" }, h("label", { for: "find-board" }, "Find"), search),
      list,
      failed,
      h("p", {}, more),
    ),
  );
  keeping(list, {
    signal,
    read: () => get(url(""), signal),
    draw(answer) {
      // A page that somebody has gone on from stays.
      if (isOnePage) {
        all = answer.boards;
        take(answer);
      }
      return [missing(answer), found];
    },
    isKept: () => isOnePage,
    failed(error) {
      if (error.status >= 400 && error.status < 500) count.textContent = "";
    },
  });
}

/// Made-up members with scores that lie about a middle, the same each time.
function jobs() {
  const first = [
    "ash",
    "birch",
    "cedar",
    "elm",
    "fir",
    "hazel",
    "ivy",
    "juniper",
    "larch",
    "maple",
    "oak",
    "pine",
    "rowan",
    "spruce",
    "willow",
  ];
  let seed = 42;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
  return Array.from({ length: 500 }, (_, index) => {
    const spread = random() + random() + random() + random() - 2;
    return {
      board: SAMPLE,
      member: `${first[index % first.length]}-${index + 1}`,
      score: Math.round(1500 + 450 * spread),
    };
  });
}
