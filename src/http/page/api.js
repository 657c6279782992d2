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

/// Whether a text can be sent as a token. Other letters come from a program that makes quotes of its own.
export function isToken(value) {
  return /^[\x21-\x7e]+$/.test(value);
}

/// A problem as the node told it.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the node answered ${status}`);
    this.status = status;
    this.code = body.code ?? "unknown";
  }

  /// Whether to ask again may bring another answer, without anybody changing the question.
  get passes() {
    return this.status === 0 || this.status === 404 || this.status === 429 || this.status >= 500;
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
  return encodeURIComponent(text.toWellFormed?.() ?? text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/// Whether a browser would take a name in a path for a folder, percent-encoded or not, and ask for another
/// path.
export function isFolder(name) {
  return name === "." || name === "..";
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

/// Marks a number in what was read that JavaScript would round: digits of a job or of metadata that a game
/// has sent. Different in each page, so that no text of a game looks like it.
const ROUNDED = `${Math.random()}:`;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function isRounded(token) {
  const near = Number(token);
  if (/^-?\d+$/.test(token)) return !Number.isSafeInteger(near);
  // Seventeen digits tell every number that there is.
  return !Number.isFinite(near) || token.replace(/[eE].*|\D/g, "").length > 17;
}

/// JSON whose numbers are all kept as they are written. The API itself writes none that is rounded.
export function parse(text) {
  const keep = (token) => (token[0] === '"' || !isRounded(token) ? token : `"${ROUNDED}${token}"`);
  return JSON.parse(text.replace(TOKENS, keep));
}

/// For people to read, the numbers as they were sent.
export function written(value) {
  return JSON.stringify(value, null, 2).replaceAll(new RegExp(`"${ROUNDED}([^"]*)"`, "g"), "$1");
}

async function answerOf(method, url, options) {
  const response = await send(method, url, options);
  try {
    return parse(await response.text());
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { code: "unreadable", detail: "The answer broke off, or is not the node's." });
  }
}

/// An answer. Where shards do not answer it is without them, and `missing` of the answer names them: to a
/// person the rest is worth more than nothing.
async function ask(method, url, options) {
  try {
    return await answerOf(method, url, options);
  } catch (error) {
    if (error.code !== "shard_unavailable") throw error;
    return answerOf(method, `${url}${url.includes("?") ? "&" : "?"}partial=true`, options);
  }
}

export function get(url, signal) {
  return ask("GET", url, { signal });
}

export function post(url, body, signal) {
  return ask("POST", url, { body, signal });
}

/// The text of an answer, whatever its status.
export async function text(url, signal) {
  const response = await fetch(url, { signal, headers: headers(), cache: "no-store", credentials: "omit" });
  return response.ok ? response.text() : "";
}

/// Sends what changes something: all of it or nothing.
export function change(method, url, body, signal) {
  return answerOf(method, url, { body, signal });
}

/// A command for a shell that does the same. The token is a variable there, so that it is in no history.
export function curl(method, url, body) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl", "-sS"];
  if (url.split("?")[0].endsWith("/live")) parts.push("-N");
  if (url.split(/[/?]/).some(isFolder)) parts.push("--path-as-is");
  if (method !== "GET") parts.push("-X", method);
  if (token !== null) parts.push("-H", '"Authorization: Bearer $RANKTREE_TOKEN"');
  if (body !== undefined)
    parts.push("-H", quote("Content-Type: application/json"), "-d", quote(JSON.stringify(body)));
  parts.push(quote(location.origin + url));
  return parts.join(" ");
}
