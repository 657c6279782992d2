//! Writes: from a request's jobs or boards to the shards' queues, and back to what came of them.
//!
//! - `job_list`: a request's jobs from JSON, and the answer to them
//! - `scatter`: jobs to shards, and their results back in the order of the request
//! - `options`: how long a write waits; `new_boards`: boards that are created before the jobs are sent
//! - `publish`: messages to shards; `settle`: waits for jobs that are parked
//! - `remote`: jobs that an owner on another node applies
//! - `results`: the result of each job; `results_json`: as JSON; `sent_metadata`: metadata in them
//! - `entered`: which instances of its board a job has entered
//! - `over_nats`: the same for requests that come over NATS
//! - `boards`: definitions, clears and drops; `trim`: trims

pub mod boards;
pub mod entered;
pub mod job_list;
pub mod new_boards;
pub mod options;
pub mod over_nats;
pub mod publish;
pub mod remote;
pub mod results;
pub mod results_json;
pub mod scatter;
pub mod sent_metadata;
pub mod settle;
pub mod trim;
pub mod would_drop;
