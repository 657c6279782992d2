//! The integration tests: one binary, so that `RocksDB` is linked once, and a file per behaviour.
//!
//! - [`real_data`]: 108,000 real jobs rank as a model that only sorts, whatever the number of shards
//! - [`crash`]: kill -9 at random moments loses nothing that was answered, and counts nothing twice
//! - [`damage`]: a damaged data directory ranks as before or is refused and left as it is, and nothing hangs
//! - [`nats_real_data`]: the same by way of NATS, one job a message and many
//! - [`nats_protocol`]: what the service does when a stream is not what it was, or its messages are no jobs
//! - [`nats_accept_gap`]: what a stream holds that does not continue what was applied is applied once, if the operator says so
//! - [`board_tokens`]: tokens of definitions and drops name every shard, and no token is empty
//! - [`nats_boards`]: one definition per board, whoever comes first
//! - [`nats_boards_lost`]: what the shards hold is kept when the stream that says what boards are is lost
//! - [`nats_boards_many`]: boards by the thousand are made without a round trip for each, and late definitions bring none back
//! - [`nats_control`]: who may publish jobs can do no more than publish jobs, whatever headers they write
//! - [`nats_credentials`]: every way to say who a node is, wrong ones, and ones that are replaced while it runs
//! - [`nats_permissions`]: the shipped permissions are enough, none is too many, and game services can only publish jobs
//! - [`nats_crash`]: kill -9 of the service and of NATS at random moments loses nothing and counts nothing twice
//! - [`nats_cluster`]: the same with three replicated servers, of which one after the other is killed
//! - [`nats_frozen`]: a server that is frozen, or whose packets are dropped, is left for another
//! - [`nats_gaps`]: what one server lacks is no gap, what the leader lacks is one, and a halt is over once all is well
//! - [`removals`]: boards cleared and trimmed: what goes and what stays, also when the process is killed in the middle
//! - [`nats_removals`]: the same by way of NATS, on every replica, and what a shard does with a command it does not know
//! - [`nats_rejects`]: rejects of every kind are told once by two nodes, and listed
//! - [`rejects`]: rejects of a running service are listed newest first, to those who may see them, and logged now and then
//! - [`nats_failed_commit`]: a write that is in the stream is applied later, and no answer says otherwise
//! - [`nats_full`]: a full stream says what holds its messages and what makes room
//! - [`nats_retention`]: what of a stream is kept is bounded, and room is made before it is full
//! - [`nats_outage`]: NATS is not there, or stalls, or the service does
//! - [`future_time`]: a time of more than five minutes ahead is rejected, whichever way a job comes
//! - [`full_disk`]: writes are refused, reads go on, nothing answered is lost, and it heals
//! - [`readme`]: the publishers that it shows work as they stand there
//! - [`two_processes`]: a data directory belongs to one of them
//! - [`load`]: the load generator's figures are what the service applied, and its errors are told in words
//! - [`config`]: what is set, and from where; the example file, the systemd unit, completions
//! - [`command_line`]: what documents, containers and errors say of commands, flags and variables is what there is
//! - [`export`]: out and in again, ranks and ties are equal
//! - [`redis`]: a sorted set of a real Redis ranks the same
//! - [`healthcheck`]: the exit code says whether a service is ready
//! - [`api`]: names, shapes and refusals of the contract, and what holds while scores move
//! - [`metrics`]: all that the contract names, and no more series than shards and routes make
//! - [`dashboards`]: a real Prometheus finds something for every expression of every panel and rule
//! - [`deployment`]: the container files name what exists, pinned and confined
//! - [`compose`]: what the compose file starts works together, and lets nobody in who has no token or password
//! - [`openapi`]: the examples of the API's document are what a node answers, and a fuzzer finds nothing that it does not say
//! - [`tokens`]: who may do what, and how tokens are exchanged while the service runs
//! - [`tls`]: HTTPS, and certificates that are exchanged while it runs
//! - [`secrets`]: passwords in arguments, files that hold secrets, and the data are kept from others
//! - [`slow_clients`]: clients that keep the service waiting, and floods of them
//! - [`gone_clients`]: clients that leave without waiting for their answer give their places back at once
//! - [`framing`]: where a request's body ends, and whether it is asked for
//! - [`overload`]: too many requests are told so, while probes and metrics answer
//! - [`layering`]: what a module must not know, read from the source

#![allow(clippy::indexing_slicing, reason = "a JSON value answers Null for a name that it does not have")]

mod support;

mod api;
mod board_tokens;
mod command_line;
mod compose;
mod config;
mod crash;
mod damage;
mod dashboards;
mod deployment;
mod export;
mod export_boards;
mod framing;
mod full_disk;
mod future_time;
mod gone_clients;
mod healthcheck;
mod layering;
mod load;
mod metrics;
mod nats_accept_gap;
mod nats_boards;
mod nats_boards_lost;
mod nats_boards_many;
mod nats_catch_up;
mod nats_cluster;
mod nats_control;
mod nats_crash;
mod nats_credentials;
mod nats_failed_commit;
mod nats_frozen;
mod nats_full;
mod nats_gaps;
mod nats_http;
mod nats_outage;
mod nats_permissions;
mod nats_protocol;
mod nats_real_data;
mod nats_rejects;
mod nats_removals;
mod nats_retention;
mod open_files;
mod openapi;
mod overload;
mod readme;
mod real_data;
mod redis;
mod rejects;
mod removals;
mod secrets;
mod slow_clients;
mod tls;
mod tokens;
mod two_processes;
