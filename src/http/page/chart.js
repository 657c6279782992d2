// The distribution of scores: exact counts, with the place of one member.

import { h, number, shortNumber, svg } from "./dom.js";

const WIDTH = 560;
const HEIGHT = 190;
const LEFT = 8;
const BOTTOM = 26;
const TOP = 22;

/// `own`: the first key of a member's score, if there is one to mark; `name` is the member.
export function histogram(buckets, { own, name } = {}) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  const width = (WIDTH - 2 * LEFT) / Math.max(1, buckets.length);
  const height = (count) => (count / most) * (HEIGHT - TOP - BOTTOM);
  // Bounds may be beyond 2^53, as decimal strings.
  const isIn = (bucket) =>
    own !== undefined && BigInt(own) >= BigInt(bucket.min) && BigInt(own) <= BigInt(bucket.max);
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
    const wide = Number(BigInt(bucket.max) - BigInt(bucket.min)) + 1;
    const within = (Number(BigInt(own) - BigInt(bucket.min)) + 0.5) / wide;
    const x = LEFT + (place + within) * width;
    const anchor = x < WIDTH * 0.2 ? "start" : x > WIDTH * 0.8 ? "end" : "middle";
    marks.push(
      svg("line", { class: "place", x1: x, x2: x, y1: TOP - 6, y2: HEIGHT - BOTTOM }),
      svg(
        "text",
        { class: "place-name", x, y: 12, "text-anchor": anchor },
        name.length > 28 ? `${name.slice(0, 27)}…` : name,
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
