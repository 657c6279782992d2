// The distribution of scores: exact counts, with the place of one member.

import { get, path } from "./api.js";
import { h, number, shortNumber, show, svg } from "./dom.js";
import { copyAsCurl, keeping, panel } from "./parts.js";

const BUCKETS = 40;
const WIDTH = 560;
const HEIGHT = 190;
const LEFT = 8;
const BOTTOM = 26;
const TOP = 22;

/// What scores are compared by: integers exactly, also beyond 2^53, which come as decimal strings. Other
/// numbers, and "inf", as near as JavaScript has them.
function comparable(value) {
  if (/^-?\d+$/.test(String(value))) return BigInt(value);
  return Number(String(value).replace("inf", "Infinity"));
}

/// Where a score lies between two bounds, from 0 to 1.
function within(own, min, max) {
  const parts = [own, min, max].map(comparable);
  const areExact = parts.every((part) => typeof part === "bigint");
  const [at, from, to] = areExact ? parts : parts.map(Number);
  const share = areExact
    ? (Number(at - from) + 0.5) / (Number(to - from) + 1)
    : (at - from) / (to - from);
  return Number.isFinite(share) ? share : 0.5;
}

/// The panel, and what marks the place of a member in it.
export function chartPanel(view) {
  const picture = h("div", {});
  const content = h("div", {});
  const total = h("span", { class: "soft small" });
  const url = path("/v1/boards/{board}/histogram", view.names, { window: view.window, buckets: BUCKETS });
  let buckets = null;
  let own = {};
  const draw = () => {
    if (buckets === null) return;
    const none = view.isOpen() ? "There are no scores yet." : "There are no scores.";
    show(picture, buckets.length === 0 ? h("p", { class: "empty" }, none) : histogram(buckets, own));
  };
  const reading = keeping(content, {
    signal: view.signal,
    read: () => get(url, view.signal),
    draw(answer) {
      buckets = answer.buckets;
      const of = answer.missing?.length > 0 ? " of the shards that answer" : "";
      total.textContent = `${number(answer.total)}, exact${of}`;
      draw();
      return picture;
    },
    failed(error) {
      if (error.status >= 400 && error.status < 500) total.textContent = "";
    },
  });
  view.whenChanged.push(reading.soon);
  const [first] = view.keys;
  const of = view.keys.length > 1 ? ["Distribution of ", h("bdi", {}, first.name)] : "Distribution";
  const best = first.order === "asc" ? h("p", { class: "soft small" }, "The best are on the left.") : null;
  const mark = (place) => {
    if (own.own === place.own && own.name === place.name) return;
    own = place;
    draw();
  };
  return { element: panel(of, [total, copyAsCurl(() => ({ url }))], content, best ?? []), mark };
}

/// `own`: the first key of a member's score, if there is one to mark; `name` is the member.
function histogram(buckets, { own, name } = {}) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  const width = (WIDTH - 2 * LEFT) / Math.max(1, buckets.length);
  const height = (count) => (count / most) * (HEIGHT - TOP - BOTTOM);
  const at = own === undefined ? undefined : comparable(own);
  const isIn = (bucket) =>
    at !== undefined && at >= comparable(bucket.min) && at <= comparable(bucket.max);
  const place = buckets.findIndex(isIn);
  const columns = buckets.map((bucket, index) => {
    const tall = bucket.count === 0 ? 0 : Math.max(1.5, height(bucket.count));
    return svg(
      "rect",
      {
        class: index === place ? "column own" : "column",
        x: LEFT + index * width + 0.75,
        width: Math.max(1, width - 1.5),
        y: HEIGHT - BOTTOM - tall,
        height: tall,
        rx: 1.5,
      },
      svg("title", {}, `${number(bucket.min)} to ${number(bucket.max)}: ${number(bucket.count)}`),
    );
  });
  const marks = [];
  if (place >= 0) {
    const bucket = buckets[place];
    const x = LEFT + (place + within(own, bucket.min, bucket.max)) * width;
    const letters = Array.from(name);
    const anchor = x < WIDTH * 0.2 ? "start" : x > WIDTH * 0.8 ? "end" : "middle";
    marks.push(
      svg("line", { class: "place", x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM }),
      svg(
        "text",
        { class: "place-name", x, y: 12, "text-anchor": anchor },
        letters.length > 28 ? `${letters.slice(0, 27).join("")}…` : name,
      ),
    );
  }
  const ends =
    buckets.length === 0
      ? []
      : [
          svg("text", { x: LEFT, y: HEIGHT - 8 }, shortNumber(buckets[0].min)),
          svg(
            "text",
            { x: WIDTH - LEFT, y: HEIGHT - 8, "text-anchor": "end" },
            shortNumber(buckets.at(-1).max),
          ),
        ];
  const said =
    place >= 0
      ? `${name} is in the range from ${number(buckets[place].min)} to ${number(buckets[place].max)}.`
      : "";
  const picture = svg(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `Distribution of scores in ${buckets.length} ranges. ${said} The table below has the numbers.`,
    },
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
    columns,
    marks,
    ends,
  );
  const rows = buckets.map((bucket, index) =>
    h(
      "tr",
      { class: index === place ? "own" : null },
      h("td", { class: "number" }, number(bucket.min)),
      h("td", { class: "number" }, number(bucket.max)),
      h("td", { class: "number" }, number(bucket.count)),
    ),
  );
  const table = h(
    "details",
    {},
    h("summary", {}, "As a table"),
    h(
      "div",
      { class: "wide" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["From", "To", "Entries"].map((text) => h("th", { scope: "col", class: "number" }, text)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
  );
  return [picture, table];
}
