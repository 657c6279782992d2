// Publishes jobs to NATS, without asking a node. Needs @nats-io/transport-node and @nats-io/jetstream.
//
// A message is an array of jobs of one shard. A publisher has one message of each shard on its way at a time:
// jobs that come meanwhile make the next array, and a message that is sent again cannot overtake another.
// Each message has a `Nats-Msg-Id`, which it keeps when it is sent again, so that the server stores it once.

import { randomUUID } from "node:crypto";

import { type JetStreamClient, JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type NodeConnectionOptions, connect, errors, headers } from "@nats-io/transport-node";

import type { Job, JobsWritten } from "./api.js";
import { decode, encode } from "./codec.js";
import { ConnectionFailedError, PublishError, PublishManyError, RanktreeError, problem } from "./errors.js";
import { pauseMs, sleep } from "./retry.js";
import { latest, shardOf } from "./tokens.js";

type Connection = Awaited<ReturnType<typeof connect>>;

/** Fixed, because ids of a `publishMany` follow from where it is cut into messages. */
const JOBS_MAX = 1_000;
/** Every jobs stream takes messages of 128 KiB; the rest is for the headers. */
const BYTES_MAX = 127 * 1_024;
const ID_MAX = 512;
/** The server forgets an id after two minutes, unless the operator set another time on the stream. */
const GIVE_UP_MAX_MS = 110_000;

export interface PublisherOptions {
  /**
   * How many shards there are. Without it the publisher asks the first jobs stream, for which its user needs
   * the permission to publish to `$JS.API.STREAM.INFO.*`.
   */
  shards?: number;
  /** The nodes' `--prefix`, `ranktree`. */
  prefix?: string;
  /** Until a message that was not acknowledged is sent again, 5,000. */
  ackTimeoutMs?: number;
  /** Until the publisher stops sending it, 60,000, at most 110,000. */
  giveUpAfterMs?: number;
  /** How many jobs and arrays wait to be stored, 10,000; further calls wait for room. */
  maxWaiting?: number;
}

export interface PublishOptions {
  /**
   * The `Nats-Msg-Id`: 1 to 512 printable ASCII characters. It switches batching off for this call: its jobs
   * share messages with no others, and the next message of the shard waits until it is acknowledged.
   */
  messageId?: string;
}

/** Jobs that go into one message, and who waits for it. */
interface Waiting {
  jobs: string[];
  bytes: number;
  /** Jobs without an id of the caller's may share a message with others. */
  messageId: string | undefined;
  stored: (sequence: number) => void;
  failed: (error: unknown) => void;
}

/** Publishes jobs to the streams that nodes read. Make one with `Publisher.connect`. */
export class Publisher {
  readonly shards: number;
  readonly #connection: Connection;
  readonly #jetstream: JetStreamClient;
  readonly #prefix: string;
  readonly #ackTimeoutMs: number;
  readonly #giveUpAfterMs: number;
  readonly #room: Room;
  readonly #lanes: Lane[];
  readonly #open = new Set<Promise<string>>();
  #isOwn = false;
  #isClosed = false;

  /** Uses a connection of your own, which is not closed with the publisher. */
  constructor(connection: Connection, options: PublisherOptions & { shards: number }) {
    const giveUpAfterMs = options.giveUpAfterMs ?? 60_000;
    checkGiveUp(giveUpAfterMs);
    shardOf("", options.shards);
    this.shards = options.shards;
    this.#connection = connection;
    this.#jetstream = jetstream(connection);
    this.#prefix = options.prefix ?? "ranktree";
    this.#ackTimeoutMs = options.ackTimeoutMs ?? 5_000;
    this.#giveUpAfterMs = giveUpAfterMs;
    this.#room = new Room(options.maxWaiting ?? 10_000);
    this.#lanes = Array.from({ length: options.shards }, (_, shard) => {
      return new Lane((payload, messageId) => this.#store(shard, payload, messageId));
    });
  }

  /** Connects to NATS. Other options are those of its client: `user`, `pass`, `tls`. */
  static async connect(
    servers: string | string[] = "nats://127.0.0.1:4222",
    options: PublisherOptions & NodeConnectionOptions = {},
  ): Promise<Publisher> {
    const { shards, prefix = "ranktree", ackTimeoutMs, giveUpAfterMs, maxWaiting, ...others } = options;
    if (giveUpAfterMs !== undefined) checkGiveUp(giveUpAfterMs);
    if ([servers].flat().some((server) => server.includes("@"))) {
      // The client of NATS would leave them out, or show them in an error.
      throw new TypeError("a server's address has no user and no password: give the options user and pass");
    }
    const connection = await connect({ maxReconnectAttempts: -1, ...others, servers });
    try {
      const found = shards ?? (await findShards(connection, prefix));
      const own = {
        ...(ackTimeoutMs === undefined ? {} : { ackTimeoutMs }),
        ...(giveUpAfterMs === undefined ? {} : { giveUpAfterMs }),
        ...(maxWaiting === undefined ? {} : { maxWaiting }),
      };
      const publisher = new Publisher(connection, { shards: found, prefix, ...own });
      publisher.#isOwn = true;
      return publisher;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Waits for what is on its way, and closes the connection if `connect` made it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#open);
    if (this.#isOwn) await this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Stores a job, and returns its token. Whether it is applied or rejected is not known then.
   *
   * Without a `messageId` jobs of the same moment share messages. A `messageId` switches that off: the job
   * has a message of its own, and the next one of its shard waits until that is acknowledged. You may publish
   * it again under the same id then, also after your process was killed: within two minutes it counts once.
   * For many jobs give `publishMany` one id, or the jobs a `version`.
   */
  async publish(job: Job, { messageId }: PublishOptions = {}): Promise<string> {
    this.#checkOpen();
    checkId(messageId);
    return this.#opened(this.#put(this.#shard(job), [encoded(job)], messageId));
  }

  /**
   * Stores jobs of any members, in as few messages as possible, and returns one token for all.
   *
   * Jobs of a member stay in their order. With a `messageId` they share messages with each other and with no
   * other jobs, and the ids of the messages follow from it; to publish again, give the same jobs in the same
   * order. `PublishManyError` if messages were not acknowledged.
   */
  async publishMany(jobs: readonly Job[], { messageId }: PublishOptions = {}): Promise<string> {
    this.#checkOpen();
    checkId(messageId);
    if (jobs.length === 0) throw new RangeError("there are no jobs to publish");
    return this.#opened(this.#putMany(jobs, messageId));
  }

  async #putMany(jobs: readonly Job[], messageId: string | undefined): Promise<string> {
    const byShard = new Map<number, string[]>();
    for (const job of jobs) {
      const shard = this.#shard(job);
      const texts = byShard.get(shard) ?? [];
      texts.push(encoded(job));
      byShard.set(shard, texts);
    }
    const parts = [...byShard].map(([shard, texts]) => this.#putAll(shard, cut(texts), messageId));
    const outcomes = await Promise.all(parts);
    const token = latest(...outcomes.map((outcome) => outcome.token));
    const failed = outcomes.flatMap((outcome) => outcome.errors);
    const [first] = failed;
    if (first) throw new PublishManyError(first, failed, messageId, token);
    return token as string;
  }

  /**
   * Has a node write jobs of members of one shard, and returns what came of them.
   *
   * Nothing is sent again. If no answer came in time, `ConnectionFailedError` is thrown; give jobs a
   * `version`, and send them again before later ones of the same members. `changedOnly` asks for a short
   * answer.
   */
  async write(
    jobs: readonly Job[],
    { changedOnly = false, timeoutMs = 35_000 }: { changedOnly?: boolean; timeoutMs?: number } = {},
  ): Promise<JobsWritten> {
    this.#checkOpen();
    const shards = new Set(jobs.map((job) => this.#shard(job)));
    if (shards.size !== 1) {
      throw new RangeError(
        `the jobs of a write belong to one shard; these belong to [${[...shards].sort()}]`,
      );
    }
    const subject = `${this.#prefix}.write.${[...shards][0]}`;
    const asked = headers();
    if (changedOnly) asked.set("Ranktree-Results", "changed");
    const answer = await this.#connection
      .request(subject, encode(jobs), { timeout: timeoutMs, headers: asked })
      .catch((error: unknown) => {
        if (isNoResponders(error)) {
          throw problem(503, {
            code: "shard_unavailable",
            detail: `no node answers to ${subject}; try again`,
          });
        }
        const told = error instanceof errors.TimeoutError ? `within ${timeoutMs} ms` : messageOf(error);
        const detail = `no node answered to ${subject}: ${told}`;
        throw new ConnectionFailedError(detail, !isUnsent(error), { cause: error });
      });
    const status = answer.headers?.get("Nats-Service-Error-Code");
    if (status) throw problem(Number(status), decode(answer.string(), "Problem"));
    return decode(answer.string(), "JobsWritten") as JobsWritten;
  }

  /** Counts a call, for which `close` waits. */
  async #opened(call: Promise<string>): Promise<string> {
    this.#open.add(call);
    try {
      return await call;
    } finally {
      this.#open.delete(call);
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new RanktreeError("the publisher is closed");
  }

  #shard(job: Job): number {
    // Jobs may come from anywhere, and JavaScript has no types.
    const member = (job as Job | undefined)?.member;
    if (typeof member !== "string") {
      throw new TypeError(`a job has a member, which is a string; got ${typeof member}`);
    }
    const bytes = Buffer.byteLength(member, "utf8");
    // Half of a pair is not a character, and has no UTF-8.
    if (bytes < 1 || bytes > 256 || /\p{Surrogate}/u.test(member)) {
      throw new RangeError(`a member's id is 1 to 256 bytes of UTF-8; got ${JSON.stringify(member)}`);
    }
    return shardOf(member, this.shards);
  }

  /** Stores the messages of a shard. After one that failed the others are not sent, to stay in order. */
  async #putAll(
    shard: number,
    messages: string[][],
    base: string | undefined,
  ): Promise<{ token: string | undefined; errors: PublishError[] }> {
    let token: string | undefined;
    const failed: PublishError[] = [];
    for (const [number, jobs] of messages.entries()) {
      const messageId = base === undefined ? undefined : `${base}.${shard}.${number}`;
      const [first] = failed;
      if (first) {
        const told = `not sent, because ${first.messageId ?? "a message before it"} was not acknowledged`;
        failed.push(new PublishError(told, messageId, false));
        continue;
      }
      try {
        token = await this.#put(shard, jobs, messageId);
      } catch (error) {
        if (!(error instanceof PublishError)) throw error;
        failed.push(error);
      }
    }
    return { token, errors: failed };
  }

  async #put(shard: number, jobs: string[], messageId: string | undefined): Promise<string> {
    const lane = this.#lanes[shard] as Lane;
    const bytes = jobs.reduce((sum, job) => sum + Buffer.byteLength(job, "utf8") + 1, 0);
    await this.#room.enter();
    try {
      const sequence = await new Promise<number>((stored, failed) => {
        lane.put({ jobs, bytes, messageId, stored, failed });
      });
      return `${shard}:${sequence}`;
    } finally {
      this.#room.leave();
    }
  }

  /** Publishes until the server acknowledges, always under the same id, and returns the sequence. */
  async #store(shard: number, payload: string, messageId: string): Promise<number> {
    const subject = `${this.#prefix}.jobs.${shard}`;
    const stream = `${this.#prefix.toUpperCase()}_JOBS_${shard}`;
    const end = performance.now() + this.#giveUpAfterMs;
    let mayBeStored = false;
    for (let number = 0; ; number += 1) {
      let told: string;
      let cause: unknown;
      try {
        const expect = { streamName: stream };
        const options = { msgID: messageId, timeout: this.#ackTimeoutMs, expect };
        return (await this.#jetstream.publish(subject, payload, options)).seq;
      } catch (error) {
        cause = error;
        told = `${subject}: ${messageOf(error)}`;
        if (error instanceof JetStreamApiError) {
          // A full stream, and one without a leader, have a status from 500 on: they may come back.
          if (error.status < 500) throw new PublishError(told, messageId, mayBeStored, { cause });
        } else if (isNoResponders(error)) {
          told = `${subject}: there is no stream ${stream}; a node with the same prefix creates it`;
        } else if (isFinal(error)) {
          throw new PublishError(told, messageId, mayBeStored || !isUnsent(error), { cause });
        } else {
          // Not acknowledged in time, or the connection was lost.
          mayBeStored = true;
          told = `${subject}: not acknowledged within ${this.#giveUpAfterMs / 1_000} s (${messageOf(error)})`;
        }
      }
      const rest = pauseMs(number);
      if (performance.now() + rest >= end) throw new PublishError(told, messageId, mayBeStored, { cause });
      await sleep(rest);
    }
  }
}

/** The messages of one shard, one after the other. */
class Lane {
  readonly #store: (payload: string, messageId: string) => Promise<number>;
  readonly #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(store: (payload: string, messageId: string) => Promise<number>) {
    this.#store = store;
  }

  put(one: Waiting): void {
    this.#waiting.push(one);
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    // What is published in the same turn shares the first message already.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#send(this.#take());
    this.#isRunning = false;
  }

  /** The next message: the first that waits, and those after it that fit into the same array. */
  #take(): Waiting[] {
    let jobs = 0;
    let bytes = 0;
    let count = 0;
    for (const one of this.#waiting) {
      const isAlone = one.messageId !== undefined;
      const isFull = jobs + one.jobs.length > JOBS_MAX || bytes + one.bytes > BYTES_MAX;
      if (count > 0 && (isAlone || isFull)) break;
      jobs += one.jobs.length;
      bytes += one.bytes;
      count += 1;
      if (isAlone) break;
    }
    return this.#waiting.splice(0, count);
  }

  async #send(message: Waiting[]): Promise<void> {
    const messageId = message[0]?.messageId ?? newId();
    const payload = `[${message.flatMap((one) => one.jobs).join(",")}]`;
    try {
      const sequence = await this.#store(payload, messageId);
      message.forEach((one) => one.stored(sequence));
    } catch (error) {
      message.forEach((one) => one.failed(failureOf(one, error)));
    }
  }
}

/**
 * What a caller is told. Not the id of a shared message: the server would take one of its jobs, published
 * again alone, for the whole.
 */
function failureOf({ messageId }: Waiting, error: unknown): unknown {
  if (!(error instanceof PublishError)) return error;
  return new PublishError(error.message, messageId, error.mayBeStored, { cause: error.cause });
}

/** How many may wait at a time. Others come in in their order. */
class Room {
  #free: number;
  readonly #queue: (() => void)[] = [];

  constructor(size: number) {
    if (!(size >= 1)) throw new RangeError(`maxWaiting is at least 1; got ${size}`);
    this.#free = size;
  }

  async enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve) => this.#queue.push(resolve));
  }

  leave(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#free += 1;
  }
}

function checkGiveUp(ms: number): void {
  if (ms > GIVE_UP_MAX_MS) {
    throw new RangeError(
      `giveUpAfterMs is at most ${GIVE_UP_MAX_MS}, because the server forgets ids; got ${ms}`,
    );
  }
}

function checkId(messageId: string | undefined): void {
  if (messageId !== undefined && !(/^[\x20-\x7e]+$/.test(messageId) && messageId.length <= ID_MAX)) {
    throw new RangeError(`a message's id is 1 to ${ID_MAX} printable ASCII characters; got "${messageId}"`);
  }
}

function encoded(job: Job): string {
  const text = encode(job);
  const bytes = Buffer.byteLength(text, "utf8");
  if (bytes >= BYTES_MAX) throw new RangeError(`a job has at most ${BYTES_MAX} bytes; got ${bytes}`);
  return text;
}

/** Arrays of at most as many jobs and bytes as a message may have. */
function cut(jobs: string[]): string[][] {
  const found: string[][] = [];
  let last: string[] = [];
  let size = 0;
  for (const job of jobs) {
    const bytes = Buffer.byteLength(job, "utf8") + 1;
    if (found.length === 0 || last.length === JOBS_MAX || size + bytes > BYTES_MAX) {
      last = [];
      found.push(last);
      size = 0;
    }
    last.push(job);
    size += bytes;
  }
  return found;
}

/** How many shards there are, as the first jobs stream says. */
async function findShards(connection: Connection, prefix: string): Promise<number> {
  const stream = `${prefix.toUpperCase()}_JOBS_0`;
  // Without a look at the account, which a game's user may not be allowed to ask for.
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const info = await manager.streams.info(stream).catch((error: unknown) => {
    const told = `the stream ${stream} does not say how many shards there are: ${messageOf(error)}`;
    throw new RanktreeError(`${told}; start a node, or give shards`, { cause: error });
  });
  const found = info.config.metadata?.["ranktree-shards"];
  if (found === undefined) throw new RanktreeError(`the stream ${stream} is not one of ranktree's`);
  return Number(found);
}

function newId(): string {
  return randomUUID().replaceAll("-", "");
}

function isNoResponders(error: unknown): boolean {
  // A publish that nobody answers is another error, which this one is the cause of.
  return causesOf(error).some((one) => one instanceof errors.RequestError && one.isNoResponders());
}

/** What sending again does not help against. */
function isFinal(error: unknown): boolean {
  const kinds = [
    errors.ClosedConnectionError,
    errors.DrainingConnectionError,
    errors.PermissionViolationError,
    errors.InvalidArgumentError,
    errors.InvalidSubjectError,
  ];
  return causesOf(error).some((one) => kinds.some((kind) => one instanceof kind));
}

/** Whether a message was refused, by the client of NATS or by the server, before anybody could have it. */
function isUnsent(error: unknown): boolean {
  // Who may not read the answer may have sent the message.
  const isAnswer = (one: unknown) =>
    one instanceof errors.PermissionViolationError && one.operation === "subscription";
  return isFinal(error) && !causesOf(error).some(isAnswer);
}

/** An error, and what it comes from. */
function causesOf(error: unknown): unknown[] {
  return [error, error instanceof Error ? error.cause : undefined];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
