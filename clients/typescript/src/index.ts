// ranktree for JavaScript and TypeScript: exact leaderboards over HTTP.
//
// - `Ranktree` writes, reads and watches over HTTP, in Node and in browsers.
// - `ranktree-client/nats` has the `Publisher`, which publishes jobs to NATS, in Node.
// - The types of requests and answers are those of the API: `Entry`, `Page`, `Job`.

export type * from "./api.js";
export { type CallOptions, Ranktree, type RanktreeOptions } from "./client.js";
export {
  AccessError,
  ConnectionFailedError,
  InvalidError,
  NotFoundError,
  NotYetAppliedError,
  ProblemError,
  PublishError,
  PublishManyError,
  RanktreeError,
  RejectedError,
  UnavailableError,
  UnknownRouteError,
} from "./errors.js";
export { latest, memberHash, shardOf } from "./tokens.js";
