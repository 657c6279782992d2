// A board as it changes: reads server-sent events by fetch, because EventSource cannot send a token.

import { Problem, send } from "./api.js";

const RETRY_MS = 2000;
const RETRY_MAX_MS = 30000;

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

  take(kind, data) {
    const replaced = new Set([...data.entries.map((entry) => entry.member), ...(data.left ?? [])]);
    this.fresh = kind === "changes" ? new Set(data.entries.map((entry) => entry.member)) : new Set();
    const stay = kind === "changes" ? this.entries.filter((entry) => !replaced.has(entry.member)) : [];
    this.entries = [...stay, ...data.entries].sort((a, b) => a.position - b.position);
    if (kind === "state") this.members.clear();
    for (const entry of data.members) this.members.set(entry.member, entry);
    for (const member of data.not_found) this.members.delete(member);
    this.total = data.total;
    this.window = data.window;
    this.stale = data.stale === true;
    this.asOf = data.as_of;
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

/// Watches until `signal` ends it. `tell` gets what is known, `status` how the connection is.
export async function watch(url, signal, tell, status) {
  const known = new Known();
  let last = "";
  let wait = RETRY_MS;
  while (!signal.aborted) {
    try {
      status("connecting");
      const response = await send("GET", url, {
        signal,
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
        for (const { event, id, data } of events.take(value)) {
          if (event === "end") {
            const problem = JSON.parse(data);
            status("ended", new Problem(problem.status, problem));
            return;
          }
          last = id;
          known.take(event, JSON.parse(data));
          tell(known);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      // Asking again would bring the same answer.
      if (error instanceof Problem && error.status >= 400 && error.status < 500) {
        status("ended", error);
        return;
      }
    }
    if (signal.aborted) return;
    status("waiting");
    await pause(wait, signal);
    wait = Math.min(wait * 2, RETRY_MAX_MS);
  }
}
