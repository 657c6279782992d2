// A watched board: server-sent events, and the state that they make. Knows nothing of connections.

import type { ListedEntry, LiveChanges, LiveState } from "./api.js";
import { decode } from "./codec.js";
import { problem, type ProblemError } from "./errors.js";

/** After so long without an event the service sends a comment. */
export const HEARTBEAT_MS = 10_000;

/** What a board shows, from the events that came. */
export class LiveView {
  /** Of the last event; a connection that is lost is gone on with from here. */
  lastEventId: string | undefined;
  /** When to connect again, as the service asks for. */
  reconnectMs = 2_000;
  state: LiveState | undefined;

  readonly #members: ReadonlySet<string>;
  readonly #decoder = new TextDecoder();
  #text = "";
  #event: { kind: string; data: string[]; id: string | undefined } = { kind: "", data: [], id: undefined };

  /** `members`: those that are watched, in the order in which they are shown. */
  constructor(members: readonly string[]) {
    this.#members = new Set(members);
  }

  /** Forgets the part of an event that a lost connection left. */
  begin(): void {
    this.#decoder.decode();
    this.#text = "";
    this.#event = { kind: "", data: [], id: undefined };
  }

  /**
   * Takes bytes of the stream, and says whether events in them make another state. Of several only the last
   * state is shown: who is slow gets what is newest.
   *
   * @throws the problem that the service ends the stream with
   */
  feed(bytes: Uint8Array): boolean {
    const lines = (this.#text + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#text = lines.pop() ?? "";
    let isNew = false;
    for (const line of lines) {
      isNew = this.#line(line.replace(/\r$/, "")) || isNew;
    }
    return isNew;
  }

  #line(line: string): boolean {
    if (line === "") {
      const { kind, data, id } = this.#event;
      this.#event = { kind: "", data: [], id: undefined };
      return data.length > 0 && this.#apply(kind, data.join("\n"), id);
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event.kind = value;
    else if (name === "data") this.#event.data.push(value);
    else if (name === "id") this.#event.id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.reconnectMs = Number(value);
    return false;
  }

  #apply(kind: string, data: string, id: string | undefined): boolean {
    if (kind === "end") throw ended(data);
    if (kind === "state") this.state = this.#inOrder(decode(data, "LiveState") as LiveState);
    else if (kind === "changes" && this.state)
      this.state = this.#changed(this.state, decode(data, "LiveChanges") as LiveChanges);
    else return false;
    this.lastEventId = id ?? this.lastEventId;
    return true;
  }

  #changed(before: LiveState, changes: LiveChanges): LiveState {
    const { left, ...shown } = changes;
    const entries = byMember(before.entries, changes.entries);
    left.forEach((member) => entries.delete(member));
    const members = byMember(before.members, changes.members);
    changes.not_found.forEach((member) => members.delete(member));
    return this.#inOrder({
      ...shown,
      entries: [...entries.values()].sort((one, other) => one.position - other.position),
      members: [...members.values()],
    });
  }

  /** With the watched members in the order in which they were asked for. */
  #inOrder(state: LiveState): LiveState {
    const found = byMember(state.members, []);
    const watched = [...this.#members];
    return {
      ...state,
      members: watched.flatMap((member) => found.get(member) ?? []),
      not_found: watched.filter((member) => !found.has(member)),
    };
  }
}

function byMember(before: ListedEntry[], after: ListedEntry[]): Map<string, ListedEntry> {
  return new Map([...before, ...after].map((entry) => [entry.member, entry]));
}

function ended(data: string): ProblemError {
  const told = decode(data, "Problem") as { status?: unknown };
  return problem(typeof told.status === "number" ? told.status : 500, told);
}
