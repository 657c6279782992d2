// What may be sent again, and when. Knows nothing of connections.

import { ConnectionFailedError, ProblemError } from "./errors.js";

/** A pause between tries grows from here to there. */
const PAUSE_MIN_MS = 50;
export const PAUSE_MAX_MS = 2_000;

/** Milliseconds to wait after a try, counted from 0. */
export function pauseMs(number: number): number {
  return spread(Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(number, 16)));
}

/**
 * Milliseconds to wait after a try of a request, counted from 0: short once, for a connection that was lost,
 * and then as long as an overloaded node may need. Two retries span 1 to 2 s.
 */
export function requestPauseMs(number: number): number {
  return pauseMs(2 + 3 * number);
}

/** So that clients that failed at the same moment do not come back at the same moment. */
export function spread(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}

export function isRead(method: string, route: string): boolean {
  return method === "GET" || READS.some((end) => route.endsWith(end));
}

/** What is read with a body. No name or id has a colon in a path, so that none ends like this. */
const READS = [":lookup", ":of", ":combine"];

/**
 * Whether a request that failed may be sent again as it is.
 *
 * A write may be only if it certainly was not taken: nothing was sent, or the service says that it is
 * overloaded and has stored no part of it.
 */
export function isRepeatable(method: string, route: string, error: unknown): boolean {
  if (error instanceof ConnectionFailedError) return !error.mayBeApplied;
  if (!(error instanceof ProblemError) || error.status !== 503) return false;
  if (isRead(method, route)) return error.code === "overloaded" || error.code === "shard_unavailable";
  return error.code === "overloaded" && error.token === undefined && error.results.length === 0;
}

/** Waits. With a `signal` that is aborted it throws the signal's reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
