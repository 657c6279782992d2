// What can go wrong, as errors.
//
// Every answer of the service that is a problem (RFC 9457) becomes a `ProblemError`, or one of its kinds by
// the status. `code` is stable and for programs; `detail` is for people.

import type { Problem } from "./api.js";

/** Anything that this package throws about the service. */
export class RanktreeError extends Error {
  static {
    // The name in messages and traces, which a bundler may not shorten.
    this.prototype.name = "RanktreeError";
  }
}

/** No answer came. */
export class ConnectionFailedError extends RanktreeError {
  static {
    this.prototype.name = "ConnectionFailedError";
  }

  /**
   * The request was a write and may have reached the service. Send it again with the `version` it had, before
   * later writes of the member: then it counts once.
   */
  readonly mayBeApplied: boolean;

  constructor(detail: string, mayBeApplied: boolean, options?: ErrorOptions) {
    super(detail, options);
    this.mayBeApplied = mayBeApplied;
  }
}

/** The service refused a request, or could not do it. */
export class ProblemError extends RanktreeError {
  static {
    this.prototype.name = "ProblemError";
  }

  readonly status: number;
  /** Stable, for programs: `unknown_member`. */
  readonly code: string;
  /** For people. */
  readonly detail: string;
  /** The whole answer, with fields that only some problems have, such as `shards`. */
  readonly problem: Partial<Problem>;
  /** In milliseconds, if the service said when to try again. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, problem: Partial<Problem>, retryAfterMs?: number) {
    const code = problem.code ?? "unknown";
    const detail = problem.detail ?? "the answer says no more";
    super(`${status} ${code}: ${detail}`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }

  /** Names the jobs of a request that were stored although others failed. */
  get token(): string | undefined {
    return this.problem.token;
  }

  /** The outcome of each job of a request that failed in part. */
  get results(): NonNullable<Problem["results"]> {
    return this.problem.results ?? [];
  }
}

/** 400, 413, 422: the request can never succeed as it is. Nothing was applied. */
export class InvalidError extends ProblemError {
  static {
    this.prototype.name = "InvalidError";
  }

  /** Which jobs of a request are invalid: `index`, `code`, `detail`. */
  get errors(): NonNullable<Problem["errors"]> {
    return this.problem.errors ?? [];
  }
}

/** 401, 403: the bearer token is missing or unknown, or does not allow this. */
export class AccessError extends ProblemError {
  static {
    this.prototype.name = "AccessError";
  }
}

/** 404: no such board, member or position. */
export class NotFoundError extends ProblemError {
  static {
    this.prototype.name = "NotFoundError";
  }
}

/**
 * 404, and not about a board or a member: the service has no such path, or something else answers. The
 * client's address is wrong, for example with a path of its own, or the service is an older one.
 */
export class UnknownRouteError extends ProblemError {
  static {
    this.prototype.name = "UnknownRouteError";
  }

  constructor(status: number, problem: Partial<Problem>, retryAfterMs?: number) {
    super(status, problem, retryAfterMs);
    this.message += "; check the client's address: it is a node's, or a proxy's that passes /v1/ on to one";
  }
}

/** 409: the state refuses it: `stale_version`, `out_of_range`, `overflow`, `board_differs` and others. */
export class RejectedError extends ProblemError {
  static {
    this.prototype.name = "RejectedError";
  }
}

/**
 * 503: overloaded, or a shard that no node answers for. Try again after `retryAfterMs`.
 *
 * With the code `commit_unknown` a write may or may not be applied.
 */
export class UnavailableError extends ProblemError {
  static {
    this.prototype.name = "UnavailableError";
  }

  /** The shards that no node answers for. */
  get shards(): number[] {
    return (this.problem.shards ?? []).filter((shard): shard is number => typeof shard === "number");
  }
}

/** 504: the writes that `after` names were not applied in time. */
export class NotYetAppliedError extends ProblemError {
  static {
    this.prototype.name = "NotYetAppliedError";
  }
}

/** A message was not acknowledged by NATS. */
export class PublishError extends RanktreeError {
  static {
    this.prototype.name = "PublishError";
  }

  /**
   * The `Nats-Msg-Id` that follows from the one you gave: publish the same jobs under the same id to go on.
   * It is `undefined` if you gave none. Then the jobs may have shared a message with others, and whether they
   * may be published again is for their `version` to say.
   */
  readonly messageId: string | undefined;
  /** False only if the message was refused each time, or not sent, and so is not stored. */
  readonly mayBeStored: boolean;

  constructor(detail: string, messageId: string | undefined, mayBeStored: boolean, options?: ErrorOptions) {
    super(detail, options);
    this.messageId = messageId;
    this.mayBeStored = mayBeStored;
  }
}

/** Some messages of a `publishMany` were not acknowledged. Its `messageId` is the one that you gave. */
export class PublishManyError extends PublishError {
  static {
    this.prototype.name = "PublishManyError";
  }

  /** Of each of those messages, with its own id. */
  readonly errors: readonly PublishError[];
  /** Names the messages that were acknowledged, if there are any. */
  readonly token: string | undefined;

  constructor(
    first: PublishError,
    errors: readonly PublishError[],
    messageId: string | undefined,
    token: string | undefined,
  ) {
    const mayBeStored = errors.some((error) => error.mayBeStored);
    super(`${errors.length} messages: ${first.message}`, messageId, mayBeStored, { cause: first });
    this.errors = errors;
    this.token = token;
  }
}

const KINDS: Record<number, typeof ProblemError> = {
  400: InvalidError,
  401: AccessError,
  403: AccessError,
  404: NotFoundError,
  409: RejectedError,
  413: InvalidError,
  422: InvalidError,
  503: UnavailableError,
  504: NotYetAppliedError,
};

/** The error for an answer that is not a success. */
export function problem(status: number, body: unknown, retryAfter?: string | null): ProblemError {
  const told = typeof body === "object" && body !== null && !Array.isArray(body) ? body : {};
  const { code } = told as Partial<Problem>;
  const isRoute = status === 404 && (code === undefined || code === "unknown_route");
  const kind = isRoute ? UnknownRouteError : (KINDS[status] ?? ProblemError);
  const isSeconds = retryAfter != null && /^\d+$/.test(retryAfter);
  return new kind(status, told, isSeconds ? Number(retryAfter) * 1000 : undefined);
}
