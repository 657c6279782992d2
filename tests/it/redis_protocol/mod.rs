//! Redis' protocol, by the real binary and a real client library.
//!
//! - `same_as_redis`: random commands have the same replies as in a real redis-server
//! - `take`: entries that are taken by their place, each once
//! - `store`: what boards make together, stored on one of them
//! - `boards`: what keys are as boards, and what HTTP shows of them
//! - `expiry`: when boards end, with the same replies as in a real redis-server
//! - `tokens`: what tokens allow, for every command
//! - `limits`: what one client may take of the time and the memory of all
//! - `frames`: pipelines, and clients that do not behave
//! - `tls`: connections over TCP
//! - `durability`: what was replied to is there after `kill -9`

mod boards;
mod durability;
mod expiry;
mod frames;
mod limits;
mod same_as_redis;
mod store;
mod take;
mod tls;
mod tokens;
