// The client over HTTP. It needs `fetch` and nothing of Node, so that browsers have it too.

import type * as api from "./api.js";
import { Attempt } from "./attempt.js";
import {
  type Answer,
  type SchemaName,
  authorization,
  baseUrl,
  decode,
  encode,
  named,
  path,
  query,
} from "./codec.js";
import { ConnectionFailedError, ProblemError, problem } from "./errors.js";
import { isUnsent, reason } from "./failures.js";
import { HEARTBEAT_MS, LiveView } from "./live.js";
import { PAUSE_MAX_MS, isRead, isRepeatable, requestPauseMs, sleep, spread } from "./retry.js";
import { latest } from "./tokens.js";

/** What every call takes besides: a `signal` that ends it. */
export interface CallOptions {
  signal?: AbortSignal;
}

export interface RanktreeOptions {
  /** The token that the node asks for, if it does. White space around it is left out. */
  bearer?: string;
  /** How long a request may take, 10,000. A read with `after` gets the time that it may wait in addition. */
  timeoutMs?: number;
  /**
   * How often a read is sent again if no answer came or the node was overloaded, 2, over about two seconds.
   * A write is sent again only if it certainly was not taken.
   */
  retries?: number;
  /** A `fetch` of your own, for proxies or certificates. */
  fetch?: typeof fetch;
}

type Paged = { next_cursor?: string | null; as_of?: string };
type AskedPage = { cursor?: string; after?: string; partial?: boolean };

/**
 * Writes and reads over HTTP, through any node.
 *
 * One client may have any number of calls at a time. The options of a method are the parameters of the API,
 * and answers are its objects.
 */
export class Ranktree {
  readonly #url: string;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof fetch;

  constructor(url = "http://127.0.0.1:8080", options: RanktreeOptions = {}) {
    this.#url = baseUrl(url);
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#retries = options.retries ?? 2;
    this.#headers = authorization(options.bearer);
    const given = options.fetch;
    // Browsers refuse a `fetch` that is called as a method of something else.
    this.#fetch = given ?? ((input, init) => fetch(input, init));
  }

  // Boards

  /** Creates a board, or changes what can be changed of it. */
  async define(
    board: string,
    definition: api.DefinitionInput = {},
    options: api.PutBoardQuery & CallOptions = {},
  ): Promise<api.DefinedBoard> {
    return this.#send("DefinedBoard", "PUT", path("boards", board), options, definition);
  }

  /** A page of the boards, by name. */
  async boards(options: api.BoardsQuery & CallOptions = {}): Promise<api.BoardList> {
    return this.#send("BoardList", "GET", path("boards"), options);
  }

  /** A board's definition, and how many entries it has. */
  async board(board: string, options: api.BoardQuery & CallOptions = {}): Promise<api.Board> {
    return this.#send("Board", "GET", path("boards", board), options);
  }

  /** Opens the next manual season of a board, at a time or as soon as possible. */
  async openSeason(
    board: string,
    season: api.SeasonInput = {},
    options: api.OpenSeasonQuery & CallOptions = {},
  ): Promise<api.OpenedSeason> {
    return this.#send("OpenedSeason", "POST", path("boards", board, "seasons"), options, season);
  }

  /** Has a season that is planned, and has not begun, begin at another time. */
  async moveSeason(
    board: string,
    season: string,
    moved: api.MovedSeasonInput,
    options: api.MoveSeasonQuery & CallOptions = {},
  ): Promise<api.OpenedSeason> {
    return this.#send("OpenedSeason", "PUT", path("boards", board, "seasons", season), options, moved);
  }

  /** Takes a planned season back, which has not begun. */
  async cancelSeason(
    board: string,
    season: string,
    options: api.CancelSeasonQuery & CallOptions = {},
  ): Promise<api.CancelledSeason> {
    return this.#send("CancelledSeason", "DELETE", path("boards", board, "seasons", season), options);
  }

  /** Drops a board with all its entries. */
  async drop(board: string, options: api.DeleteBoardQuery & CallOptions = {}): Promise<api.DroppedBoard> {
    return this.#send("DroppedBoard", "DELETE", path("boards", board), options);
  }

  /** Removes all entries; the definition stays. */
  async clear(board: string, options: api.ClearBoardQuery & CallOptions = {}): Promise<api.RemovedEntries> {
    return this.#send("RemovedEntries", "POST", path("boards", board) + ":clear", options);
  }

  /** Removes the entries behind a position, or those with a worse score: give one of the two. */
  async trim(
    board: string,
    what: api.TrimInput,
    options: api.TrimBoardQuery & CallOptions = {},
  ): Promise<api.RemovedEntries> {
    return this.#send("RemovedEntries", "POST", path("boards", board) + ":trim", options, what);
  }

  // Writes

  /**
   * One job: `write("arena", "p42", { score: 1200, op: "best" }, { wait: "applied" })`.
   *
   * With NATS and without `wait: "applied"`, the answer has a `token` and nothing else.
   */
  async write(
    board: string,
    member: string,
    job: api.EntryInput,
    options: api.PutMemberQuery & CallOptions = {},
  ): Promise<api.EntryWritten> {
    return this.#send("EntryWritten", "PUT", path("boards", board, "members", member), options, job);
  }

  /**
   * 1 to 1,000 jobs of any members. If one is invalid, none is applied: see `InvalidError.errors`.
   *
   * With NATS and without `wait: "applied"`, the answer has a `token` and nothing else.
   */
  async writeMany(
    jobs: readonly api.Job[],
    options: api.JobsQuery & CallOptions = {},
  ): Promise<api.JobsWritten> {
    return this.#send("JobsWritten", "POST", path("jobs"), options, jobs);
  }

  /** Takes a member off a board. */
  async remove(
    board: string,
    member: string,
    options: api.DeleteMemberQuery & CallOptions = {},
  ): Promise<api.EntryWritten> {
    return this.#send("EntryWritten", "DELETE", path("boards", board, "members", member), options);
  }

  /** Takes a member off every board. */
  async removeEverywhere(
    member: string,
    options: api.DeleteEverywhereQuery & CallOptions = {},
  ): Promise<api.MemberRemoved> {
    return this.#send("MemberRemoved", "DELETE", path("members", member), options);
  }

  // Reads

  /**
   * A member's score, rank, position and percentile. `NotFoundError` if it is not on the board. With
   * `windows`, `"*"` for all, the answer has an entry for each of them, and no score or rank of its own.
   */
  async member(
    board: string,
    member: string,
    options?: api.MemberQuery & { windows?: undefined } & CallOptions,
  ): Promise<api.Entry>;
  async member(
    board: string,
    member: string,
    options: api.MemberQuery & { windows: string } & CallOptions,
  ): Promise<api.EntryByWindow>;
  async member(
    board: string,
    member: string,
    options?: api.MemberQuery & CallOptions,
  ): Promise<api.Entry | api.EntryByWindow>;
  async member(
    board: string,
    member: string,
    options: api.MemberQuery & CallOptions = {},
  ): Promise<api.Entry | api.EntryByWindow> {
    const answered = options.windows == null ? "Entry" : "EntryByWindow";
    return this.#send(answered, "GET", path("boards", board, "members", member), options);
  }

  /** A member and its neighbours. */
  async around(
    board: string,
    member: string,
    options: api.AroundQuery & CallOptions = {},
  ): Promise<api.Neighbours> {
    return this.#send("Neighbours", "GET", path("boards", board, "members", member, "around"), options);
  }

  /** A page of the best, or with `from: "bottom"` of the worst. */
  async top(board: string, options: api.TopQuery & CallOptions = {}): Promise<api.Page> {
    return this.#send("Page", "GET", path("boards", board, "top"), options);
  }

  /** A page from any position on, counted from 1. */
  async positions(
    board: string,
    position: number,
    options: api.PositionsQuery & CallOptions = {},
  ): Promise<api.Page> {
    return this.#send("Page", "GET", path("boards", board, "positions", String(position)), options);
  }

  /** A page of the entries whose first key lies between `min` and `max`. */
  async range(board: string, options: api.RangeQuery & CallOptions = {}): Promise<api.Page> {
    return this.#send("Page", "GET", path("boards", board, "range"), options);
  }

  /** Up to 1,000 members among themselves: friends' boards. */
  async lookup(
    board: string,
    members: readonly string[],
    options: api.LookupQuery & CallOptions = {},
  ): Promise<api.Group> {
    const asked = { members: members.map(named) };
    return this.#send("Group", "POST", path("boards", board, "members") + ":lookup", options, asked);
  }

  /**
   * A list over several boards: each member's scores, multiplied by the boards' weights, are added up, or the
   * least or greatest is taken. For the next page give `cursor` beside the same boards.
   */
  async combine(
    what: api.CombineInput,
    options: api.CombineQuery & CallOptions = {},
  ): Promise<api.CombinedBoards> {
    return this.#send("CombinedBoards", "POST", path("boards") + ":combine", options, what);
  }

  /** The rank of a score, whether or not anybody has it. */
  async rank(
    board: string,
    score: api.ScoreInput,
    options: api.RankQuery & CallOptions = {},
  ): Promise<api.Rank> {
    return this.#send("Rank", "GET", path("boards", board, "rank"), { ...options, score });
  }

  /** The ranks of up to 1,000 scores. */
  async ranks(
    board: string,
    scores: readonly api.ScoreInput[],
    options: api.RanksOfQuery & CallOptions = {},
  ): Promise<api.Ranks> {
    return this.#send("Ranks", "POST", path("boards", board, "ranks") + ":of", options, { scores });
  }

  /** The score at a `rank`, a `position` or a `percentile`: give one of the three. */
  async score(board: string, options: api.ScoreQuery & CallOptions): Promise<api.Place> {
    return this.#send("Place", "GET", path("boards", board, "score"), options);
  }

  /** How many entries lie between `min` and `max`. */
  async count(board: string, options: api.CountQuery & CallOptions = {}): Promise<api.Count> {
    return this.#send("Count", "GET", path("boards", board, "count"), options);
  }

  /** How scores are spread, over equal `buckets` or between `edges`. */
  async histogram(board: string, options: api.HistogramQuery & CallOptions = {}): Promise<api.Histogram> {
    return this.#send("Histogram", "GET", path("boards", board, "histogram"), options);
  }

  /** The scores at some percentiles. */
  async percentiles(
    board: string,
    p: readonly number[],
    options: api.PercentilesQuery & CallOptions = {},
  ): Promise<api.Percentiles> {
    return this.#send("Percentiles", "GET", path("boards", board, "percentiles"), { ...options, p });
  }

  /** A member's entries on some boards, or a page of all. */
  async memberBoards(
    member: string,
    options: api.MemberBoardsQuery & CallOptions = {},
  ): Promise<api.MemberBoards> {
    return this.#send("MemberBoards", "GET", path("members", member), options);
  }

  /** A page of the bans that `hide` has made: who is hidden, and on which board, or `null` for all. */
  async hidden(options: api.HiddenQuery & CallOptions = {}): Promise<api.HiddenList> {
    return this.#send("HiddenList", "GET", path("hidden"), options);
  }

  /** A page of the jobs that were refused, newest first. */
  async rejects(options: api.RejectsQuery & CallOptions = {}): Promise<api.RejectList> {
    return this.#send("RejectList", "GET", path("rejects"), options);
  }

  /** The state of the node, and of every shard. */
  async status(options: CallOptions = {}): Promise<api.Status> {
    return this.#send("Status", "GET", path("status"), options);
  }

  /** Has a board, or without `board` the service, refuse writes for a `reason`, or take them again. */
  async setReadOnly(
    what: api.ReadOnlyInput,
    options: api.SetReadOnlyQuery & CallOptions = {},
  ): Promise<api.ReadOnlySet> {
    return this.#send("ReadOnlySet", "POST", path("readonly"), options, what);
  }

  // All pages. Each page is at least as new as the one before, also if another node answers.

  /** All entries from an end of a board on, best or worst first. `limit` is the size of a page. */
  async *iterTop(
    board: string,
    options: api.TopQuery & CallOptions = {},
  ): AsyncGenerator<api.ListedEntry, void> {
    for await (const page of pages((asked) => this.top(board, asked), options)) yield* page.entries;
  }

  /** All entries between `min` and `max`. `limit` is the size of a page. */
  async *iterRange(
    board: string,
    options: api.RangeQuery & CallOptions = {},
  ): AsyncGenerator<api.ListedEntry, void> {
    for await (const page of pages((asked) => this.range(board, asked), options)) yield* page.entries;
  }

  /** All members of several boards together. `limit` is the size of a page. */
  async *iterCombine(
    what: api.CombineInput,
    options: api.CombineQuery & CallOptions = {},
  ): AsyncGenerator<api.CombinedEntry, void> {
    const read = ({ cursor = what.cursor, ...asked }: AskedPage) => this.combine({ ...what, cursor }, asked);
    for await (const page of pages(read, options)) yield* page.entries;
  }

  /** All boards, by name. `limit` is the size of a page. */
  async *iterBoards(options: api.BoardsQuery & CallOptions = {}): AsyncGenerator<api.ListedBoard, void> {
    for await (const page of pages((asked) => this.boards(asked), options)) yield* page.boards;
  }

  /** A member's entries on all boards. */
  async *iterMemberBoards(
    member: string,
    options: api.MemberBoardsQuery & CallOptions = {},
  ): AsyncGenerator<api.Entry, void> {
    for await (const page of pages((asked) => this.memberBoards(member, asked), options)) yield* page.entries;
  }

  /** All bans. `limit` is the size of a page. */
  async *iterHidden(options: api.HiddenQuery & CallOptions = {}): AsyncGenerator<api.Ban, void> {
    for await (const page of pages((asked) => this.hidden(asked), options)) yield* page.hidden;
  }

  /** All jobs that were refused, newest first. `limit` is the size of a page. */
  async *iterRejects(options: api.RejectsQuery & CallOptions = {}): AsyncGenerator<api.Reject, void> {
    for await (const page of pages((asked) => this.rejects(asked), options)) yield* page.rejects;
  }

  // A board as it changes

  /**
   * The top of a board, and `members` wherever they are, as they change: the state now, and each further one.
   *
   * A loop that is slow misses states, never the newest one. A lost connection is made again, to whichever
   * node answers, for as long as the loop goes on; `stale` is true meanwhile, if connecting fails. The loop
   * ends with an error when the service says that there is nothing to watch any more: `NotFoundError` if the
   * board was dropped, `AccessError` if the token was taken back. Leave it with `break`, or from outside by
   * the `signal`.
   */
  async *live(board: string, options: api.LiveQuery & CallOptions = {}): AsyncGenerator<api.LiveState, void> {
    const { signal, after, timeout_ms, ...watched } = options;
    const route = path("boards", board, "live");
    const view = new LiveView(options.members ?? []);
    let failures = 0;
    for (;;) {
      let pause: number | undefined;
      const attempt = new Attempt(this.#timeoutMs + waitsMs(options), signal);
      try {
        // A state that was shown is named by its id.
        const wait = view.state ? {} : { after, timeout_ms };
        for await (const bytes of this.#watch(route, { ...watched, ...wait }, view, attempt)) {
          if (!view.feed(bytes) || !view.state) continue;
          failures = 0;
          yield view.state;
        }
        // The node shuts down.
      } catch (error) {
        const isShown = view.state !== undefined;
        if ((!isShown && failures >= this.#retries) || !isPassing(error, route, isShown)) throw error;
        const asked = error instanceof ProblemError ? error.retryAfterMs : undefined;
        pause = asked === undefined || isShown ? asked : Math.min(asked, PAUSE_MAX_MS);
      } finally {
        attempt.end();
      }
      if (view.state && failures === 1) yield { ...view.state, stale: true };
      await sleep(pause ?? (view.state ? spread(view.reconnectMs) : requestPauseMs(failures)), signal);
      failures += 1;
    }
  }

  /** The bytes of one connection's events. */
  async *#watch(
    route: string,
    options: object,
    view: LiveView,
    attempt: Attempt,
  ): AsyncGenerator<Uint8Array> {
    const headers: Record<string, string> = { ...this.#headers, Accept: "text/event-stream" };
    if (view.lastEventId !== undefined) headers["Last-Event-ID"] = view.lastEventId;
    const url = this.#url + route + query(options);
    view.begin();
    try {
      const answer = await this.#fetch(url, {
        headers,
        signal: attempt.signal,
        cache: "no-store",
      });
      if (!answer.ok || !answer.body) throw await refusal(answer);
      const reader = answer.body.getReader();
      for (;;) {
        // The service says something all the time. The loop's own time does not count.
        attempt.restart(this.#timeoutMs + HEARTBEAT_MS);
        const { done, value } = await reader.read();
        attempt.pause();
        if (done) return;
        yield value;
      }
    } catch (error) {
      throw this.#failure(error, "GET", route, attempt);
    }
  }

  // Requests

  /** Sends a request, again if it may be, and reads what is `answered`: the name of an object of the API. */
  async #send<N extends SchemaName>(
    answered: N,
    method: string,
    route: string,
    options: object,
    body?: unknown,
  ): Promise<Answer<N>> {
    const { signal, ...parameters } = options as CallOptions;
    const url = this.#url + route + query(parameters);
    const text = body === undefined ? undefined : encode(body);
    const timeoutMs = this.#timeoutMs + waitsMs(parameters);
    for (let number = 0; ; number += 1) {
      const attempt = new Attempt(timeoutMs, signal);
      try {
        return decoded(await this.#once(method, route, url, text, attempt), answered) as Answer<N>;
      } catch (error) {
        if (number >= this.#retries || !isRepeatable(method, route, error)) throw error;
        const asked = error instanceof ProblemError ? error.retryAfterMs : undefined;
        await sleep(asked === undefined ? requestPauseMs(number) : Math.min(asked, PAUSE_MAX_MS), signal);
      } finally {
        attempt.end();
      }
    }
  }

  async #once(
    method: string,
    route: string,
    url: string,
    body: string | undefined,
    attempt: Attempt,
  ): Promise<string> {
    const headers =
      body === undefined ? this.#headers : { ...this.#headers, "Content-Type": "application/json" };
    let answer: Response;
    try {
      const more = body === undefined ? {} : { body };
      answer = await this.#fetch(url, { method, headers, signal: attempt.signal, ...more });
      if (!answer.ok) throw await refusal(answer);
      return await answer.text();
    } catch (error) {
      throw this.#failure(error, method, route, attempt);
    }
  }

  /** What a request that has no answer failed with. */
  #failure(error: unknown, method: string, route: string, attempt: Attempt): unknown {
    if (error instanceof ProblemError) return error;
    // The caller's own reason, as `fetch` has it.
    if (attempt.isCancelled) return error;
    const mayBeApplied = !isRead(method, route) && !isUnsent(error);
    const why = attempt.isLate ? `no answer within ${attempt.timeoutMs} ms` : reason(error);
    const told = `${this.#url} did not answer ${method} ${route}: ${why}`;
    return new ConnectionFailedError(told, mayBeApplied, { cause: error });
  }
}

/** A page after the other, each at least as new as the one before. */
async function* pages<P extends Paged>(
  read: (asked: AskedPage) => Promise<P>,
  options: AskedPage,
): AsyncGenerator<P, void> {
  const asked = { ...options };
  for (;;) {
    const page = await read(asked);
    yield page;
    if (!page.next_cursor) return;
    asked.cursor = page.next_cursor;
    if (page.as_of !== undefined && !asked.partial) asked.after = latest(asked.after, page.as_of);
  }
}

function decoded(text: string, answered: SchemaName): unknown {
  try {
    return decode(text, answered);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw problem(200, { detail: "the answer is not JSON" });
  }
}

/** How long a read may wait on the service's side, for what `after` names. */
function waitsMs(parameters: { after?: string; timeout_ms?: number }): number {
  return parameters.after === undefined ? 0 : (parameters.timeout_ms ?? 5_000);
}

async function refusal(answer: Response): Promise<ProblemError> {
  const text = await answer.text();
  let told: unknown;
  try {
    told = decode(text, "Problem");
  } catch {
    // Something on the way, which knows nothing of ranktree, answered.
    told = undefined;
  }
  return problem(answer.status, told, answer.headers.get("Retry-After"));
}

/** Whether a watch goes on after this: as with reads, and once a state was shown with all that may pass. */
function isPassing(error: unknown, route: string, isShown: boolean): boolean {
  if (isShown && error instanceof ProblemError && error.status >= 500) return true;
  return isRepeatable("GET", route, error);
}
