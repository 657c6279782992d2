// A board as it changes: reads server-sent events by fetch, because EventSource cannot send a token.

import { Problem, refusal, send } from "./api.js";

const RETRY_MS = 2000;
const RETRY_MAX_MS = 30000;
/// The node sends a comment every ten seconds. After so long without one the connection is lost.
const SILENCE_MS = 30000;

/// Splits what arrives into events.
export class Events {
  #text = "";

  take(chunk) {
    this.#text += chunk;
    const parts = this.#text.split("\n\n");
    this.#text = parts.pop();
    return parts
      .map((part) => {
        const event = { event: "", id: "", data: "" };
        for (const line of part.split("\n")) {
          const colon = line.indexOf(":");
          if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
        }
        return event;
      })
      .filter((event) => event.event !== "");
  }
}

/// What is known of the board, put together from events.
export class Known {
  entries = [];
  members = new Map();
  fresh = new Set();

  /// What is of a kind that this page does not know says nothing to it.
  take(kind, data) {
    if (kind !== "state" && kind !== "changes") return false;
    const replaced = new Set([...data.entries.map((entry) => entry.member), ...(data.left ?? [])]);
    this.fresh = kind === "changes" ? new Set(data.entries.map((entry) => entry.member)) : new Set();
    const stay = kind === "changes" ? this.entries.filter((entry) => !replaced.has(entry.member)) : [];
    this.entries = [...stay, ...data.entries].sort((a, b) => a.position - b.position);
    this.isWhole = kind === "state";
    if (this.isWhole) this.members.clear();
    for (const entry of data.members) this.members.set(entry.member, entry);
    for (const member of data.not_found) this.members.delete(member);
    this.total = data.total;
    this.window = data.window;
    this.stale = data.stale === true;
    this.asOf = data.as_of;
    return true;
  }
}

const pause = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        done();
      },
      { once: true },
    );
  });

/// Watches until `signal` ends it. `tell` gets what is known, `status` how the connection is, and why there
/// is none.
export async function watch(url, signal, tell, status) {
  const known = new Known();
  let last = "";
  let wait = RETRY_MS;
  while (!signal.aborted) {
    let why = null;
    const connection = new AbortController();
    const end = () => connection.abort();
    signal.addEventListener("abort", end, { once: true });
    let silence = setTimeout(end, SILENCE_MS);
    try {
      status("connecting");
      const response = await send("GET", url, {
        signal: connection.signal,
        more:
          last === ""
            ? { Accept: "text/event-stream" }
            : { Accept: "text/event-stream", "Last-Event-ID": last },
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const events = new Events();
      status("live");
      wait = RETRY_MS;
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        clearTimeout(silence);
        silence = setTimeout(end, SILENCE_MS);
        for (const { event, id, data } of events.take(value)) {
          if (event === "end") {
            throw refusal(JSON.parse(data));
          }
          last = id;
          if (known.take(event, JSON.parse(data))) tell(known);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      // Asking again would bring the same answer.
      if (error instanceof Problem && error.status >= 400 && error.status < 500) {
        status("ended", error);
        return;
      }
      if (error instanceof Problem) why = error;
    } finally {
      clearTimeout(silence);
      signal.removeEventListener("abort", end);
      // Whatever is left of it.
      end();
    }
    if (signal.aborted) return;
    status("waiting", why);
    await pause(wait, signal);
    wait = Math.min(wait * 2, RETRY_MAX_MS);
  }
}
