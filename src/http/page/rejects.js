// Jobs that were refused: how many for which reason, and what they were.

import { get, path, written } from "./api.js";
import { h, number, show, time } from "./dom.js";
import { copyAsCurl, keeping, missing, panel, problem } from "./parts.js";

const PAGE = 100;
const REASONS = [
  "malformed",
  "unknown_board",
  "bad_member",
  "bad_score",
  "out_of_range",
  "overflow",
  "stale_version",
  "closed_window",
  "future_time",
  "read_only",
  "wrong_shard",
  "too_large",
];

export function rejects(main, { signal, query, go }) {
  const reason = query.get("reason") ?? "";
  const list = h("div", {});
  const counts = h("div", { class: "tabs" });
  const found = h("div", {});
  const failed = h("div", {});
  let cursor = "";
  let all = [];
  let isOnePage = true;
  const url = (after) => path("/v1/rejects", {}, { reason, limit: PAGE, cursor: after });
  const more = h("button", { type: "button", hidden: true, onclick: readMore }, "Older ones");

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
      all = [...all, ...answer.rejects];
      take(answer);
      show(failed, missing(answer));
    } catch (error) {
      if (error.name !== "AbortError") show(failed, problem(error));
    }
    more.disabled = false;
  }

  function draw() {
    const by = new Map();
    for (const reject of all) by.set(reject.reason, (by.get(reject.reason) ?? 0) + 1);
    show(
      counts,
      [...by]
        .sort((a, b) => b[1] - a[1])
        .map(([name, count]) =>
          h(
            "a",
            {
              href: `#/rejects?reason=${encodeURIComponent(name)}`,
              "aria-current": name === reason ? "page" : null,
            },
            `${name} ${number(count)}`,
          ),
        ),
    );
    if (all.length === 0)
      return show(
        found,
        h(
          "p",
          { class: "empty" },
          reason === ""
            ? "No job was refused, or none that your token may see."
            : `No job was refused as ${reason}.`,
        ),
      );
    const row = (reject) =>
      h(
        "tr",
        {},
        h("td", { class: "small" }, time(reject.rejected_at)),
        h("td", {}, h("code", {}, reject.reason)),
        h(
          "td",
          { class: "detail" },
          h("bdi", {}, reject.detail),
          h(
            "details",
            {},
            h(
              "summary",
              {},
              `Shard ${reject.shard}, sequence ${number(reject.sequence)}, job ${number(reject.index)}`,
            ),
            h(
              "pre",
              { tabindex: "0", class: "wrapped" },
              typeof reject.job === "string" ? reject.job : written(reject.job),
            ),
          ),
        ),
      );
    show(
      found,
      h(
        "div",
        { class: "wide" },
        h(
          "table",
          {},
          h(
            "caption",
            {},
            `${cursor === "" ? `${number(all.length)} in all` : `The newest ${number(all.length)}`}${
              isOnePage ? "" : ", as they were read"
            }`,
          ),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["When", "Reason", "What was wrong"].map((text) => h("th", { scope: "col" }, text)),
            ),
          ),
          h("tbody", {}, all.map(row)),
        ),
      ),
    );
  }

  const select = h(
    "select",
    {
      id: "reason",
      onchange: () =>
        go(select.value === "" ? "#/rejects" : `#/rejects?reason=${encodeURIComponent(select.value)}`),
    },
    h("option", { value: "" }, "any reason"),
    [...new Set([...REASONS, reason].filter((name) => name !== ""))].map((name) =>
      h("option", { value: name, selected: name === reason }, name),
    ),
  );
  show(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Rejects"),
      h("span", { class: "grow" }),
      copyAsCurl(() => ({ url: url("") })),
    ),
    panel(
      "Jobs that were refused",
      h("span", { class: "pair" }, h("label", { for: "reason" }, "Refused for"), select),
      counts,
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
        all = answer.rejects;
        take(answer);
      }
      return [missing(answer), found];
    },
    isKept: () => isOnePage,
  });
}
