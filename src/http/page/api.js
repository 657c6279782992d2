// Requests to this node. The token is kept here, in memory, and nowhere else.

let token = null;
let askForToken = () => {};

export function setToken(value) {
  token = value || null;
}

export function hasToken() {
  return token !== null;
}

/// `ask` is called when a request was refused for want of a token that allows it.
export function onRefusal(ask) {
  askForToken = ask;
}

/// A problem as the node told it.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the node answered ${status}`);
    this.status = status;
    this.code = body.code ?? "unknown";
  }
}

/// A path of the API: names in braces are replaced, percent-encoded, and what is left becomes the query.
export function path(template, names = {}, query = {}) {
  const filled = template.replace(/\{(\w+)\}/g, (_, name) => encode(String(names[name])));
  const pairs = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const search = pairs.map(
    ([name, value]) =>
      `${name}=${Array.isArray(value) ? value.map(encode).join(",") : encode(String(value))}`,
  );
  return search.length === 0 ? filled : `${filled}?${search.join("&")}`;
}

function encode(text) {
  // "." and ".." would be taken for folders.
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/^\.{1,2}$/, (dots) => dots.replaceAll(".", "%2E"));
}

function headers(more = {}) {
  return token === null ? more : { ...more, Authorization: `Bearer ${token}` };
}

/// A problem in the node's own words. Asks for a token if that is what is missing.
export function refusal(body, status = body.status) {
  if (["unauthorized", "invalid_token"].includes(body.code)) askForToken(body.code);
  return new Problem(status, body);
}

async function refused(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // Something between this page and the node has answered.
  }
  return refusal(body, response.status);
}

export async function send(method, url, { body, signal, more } = {}) {
  const content = body === undefined ? {} : { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(url, {
      method,
      signal,
      headers: headers({ ...content, ...more }),
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { code: "unreachable", detail: "The node does not answer. Is it running?" });
  }
  if (!response.ok) throw await refused(response);
  return response;
}

export async function get(url, signal) {
  return (await send("GET", url, { signal })).json();
}

export async function post(url, body, signal) {
  return (await send("POST", url, { body, signal })).json();
}

/// A command for a shell that does the same. The token is a variable there, so that it is in no history.
export function curl(method, url, body) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl", "-sS"];
  if (url.includes("/live")) parts.push("-N");
  if (method !== "GET") parts.push("-X", method);
  if (token !== null) parts.push("-H", '"Authorization: Bearer $RANKTREE_TOKEN"');
  if (body !== undefined)
    parts.push("-H", quote("Content-Type: application/json"), "-d", quote(JSON.stringify(body)));
  parts.push(quote(new URL(url, location.href).href));
  return parts.join(" ");
}
