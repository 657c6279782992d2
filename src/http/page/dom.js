// Elements and texts. Text is always set as text: nothing that a board holds becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/// Replaces what an element holds. What is drawn anew keeps the focus, how far tables are scrolled, and which
/// details are open: a board changes several times a second while somebody reads it.
export function show(element, ...children) {
  const held = element.contains(document.activeElement) && keyOf(document.activeElement);
  const scrolled = [...element.querySelectorAll(".wide")].map((wide) => wide.scrollLeft);
  const open = new Set([...element.querySelectorAll("details[open] > summary")].map(keyOf));
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child instanceof Node || typeof child === "string"),
  );
  for (const [index, wide] of element.querySelectorAll(".wide").entries())
    if (scrolled[index] > 0) wide.scrollLeft = scrolled[index];
  if (open.size > 0)
    for (const summary of element.querySelectorAll("details > summary"))
      if (open.has(keyOf(summary))) summary.parentElement.open = true;
  if (held && !element.contains(document.activeElement)) {
    const usable = element.querySelectorAll("a, button, input, select, textarea, summary, pre");
    [...usable].find((other) => keyOf(other) === held)?.focus({ preventScroll: true });
  }
}

function keyOf(element) {
  return `${element.tagName} ${element.id} ${element.getAttribute("href") ?? element.textContent}`;
}

/// Read by a screen reader, seen by nobody.
export function say(text) {
  document.getElementById("said").textContent = text;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1, notation: "compact" });

/// Integers beyond 2^53 come as decimal strings, and stay exact. Fractions have all of their digits.
export function number(value) {
  if (value === undefined || value === null) return "–";
  if (typeof value === "string") return /^-?\d+$/.test(value) ? grouped.format(BigInt(value)) : value;
  return Number.isSafeInteger(value) ? grouped.format(value) : String(value);
}

export function shortNumber(value) {
  const near = Number(value);
  if (!Number.isFinite(near)) return String(value);
  return Math.abs(near) < 1e15 ? short.format(near) : near.toExponential(2);
}

/// The keys of a score, each a column or a card of its own.
export function keysOf(score) {
  return Array.isArray(score) ? score : [score];
}

/// An id, or a name that somebody has chosen: by itself, so that letters that are written from right to left
/// do not reorder what stands beside it, and so that what cannot be seen of it is seen.
export function id(text) {
  const seen = text.replace(/[\p{Z}\p{Cf}]/gu, "");
  const points = () =>
    Array.from(text, (c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ");
  if (seen === "") return h("bdi", { class: "name blank", title: "Nothing of this id is seen." }, points());
  const hides = /^\p{Z}|\p{Z}$|[^\P{Z} ]|\p{Cf}| {2}/u.test(text);
  return h("bdi", { class: hides ? "name hides" : "name", title: hides ? points() : null }, text);
}

export function percent(value) {
  const text = value.toFixed(2);
  // What is not the whole must not look like it.
  return `${value < 100 && text === "100.00" ? "99.99" : text} %`;
}

export function time(text) {
  if (!text) return "–";
  const at = new Date(text);
  return h(
    "time",
    { datetime: text, title: text },
    at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }),
  );
}

export function movement(by) {
  if (by === undefined) return "";
  if (by === null) return h("span", { class: "soft" }, "new");
  if (by === 0) return h("span", { class: "soft" }, "=");
  const text = by > 0 ? `▲ ${number(by)}` : `▼ ${number(-by)}`;
  const said = `${by > 0 ? "up" : "down"} ${Math.abs(by)}`;
  return h(
    "span",
    { class: by > 0 ? "up" : "down" },
    h("span", { "aria-hidden": "true" }, text),
    h("span", { class: "unseen" }, said),
  );
}

export function state(kind, text) {
  return h("span", { class: `state ${kind}` }, text);
}
