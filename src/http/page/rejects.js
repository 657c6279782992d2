// Jobs that were refused: how many for which reason, and what they were.

import { get, path } from "./api.js";
import { h, number, show, time } from "./dom.js";
import { copyAsCurl, filling, panel } from "./parts.js";

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
  "wrong_shard",
  "too_large",
];

export function rejects(main, { signal, query, go }) {
  const reason = query.get("reason") ?? "";
  const list = h("div", {});
  const counts = h("div", { class: "tabs" });
  let cursor = "";
  let all = [];
  const url = () => path("/v1/rejects", {}, { reason, limit: PAGE, cursor });
  const more = h(
    "button",
    { type: "button", hidden: true, onclick: () => filling(list, load, signal) },
    "Older ones",
  );

  async function load() {
    const answer = await get(url(), signal);
    all = [...all, ...answer.rejects];
    cursor = answer.next_cursor ?? "";
    more.hidden = cursor === "";
    draw();
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
            { href: `#/rejects?reason=${name}`, "aria-current": name === reason ? "page" : null },
            `${name} ${number(count)}`,
          ),
        ),
    );
    if (all.length === 0)
      return show(
        list,
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
          {},
          reject.detail,
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
              { tabindex: "0" },
              typeof reject.job === "string" ? reject.job : JSON.stringify(reject.job, null, 2),
            ),
          ),
        ),
      );
    show(
      list,
      h(
        "div",
        { class: "wide" },
        h(
          "table",
          {},
          h(
            "caption",
            {},
            cursor === "" ? `${number(all.length)} in all` : `The newest ${number(all.length)}`,
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
      onchange: () => go(select.value === "" ? "#/rejects" : `#/rejects?reason=${select.value}`),
    },
    h("option", { value: "" }, "any reason"),
    REASONS.map((name) => h("option", { value: name, selected: name === reason }, name)),
  );
  show(
    main,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Rejects"),
      h("span", { class: "grow" }),
      copyAsCurl(() => ({ url: path("/v1/rejects", {}, { reason, limit: PAGE }) })),
    ),
    panel(
      "Jobs that were refused",
      h("span", { class: "pair" }, h("label", { for: "reason" }, "Refused for"), select),
      counts,
      list,
      h("p", {}, more),
    ),
  );
  filling(list, load, signal);
}
