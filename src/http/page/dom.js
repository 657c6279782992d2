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

export function show(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child instanceof Node || typeof child === "string"),
  );
}

/// Read by a screen reader, seen by nobody.
export function say(text) {
  document.getElementById("said").textContent = text;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1, notation: "compact" });

/// Integers beyond 2^53 come as decimal strings, and stay exact.
export function number(value) {
  if (value === undefined || value === null) return "–";
  if (typeof value === "string") return /^-?\d+$/.test(value) ? grouped.format(BigInt(value)) : value;
  return grouped.format(value);
}

export function shortNumber(value) {
  return short.format(Number(value));
}

export function score(value) {
  return Array.isArray(value) ? value.map(number).join(" · ") : number(value);
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
  if (by === undefined) return null;
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
