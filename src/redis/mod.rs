//! Redis' protocol: commands on sorted sets, answered from boards.
//!
//! Knows: frames, commands, and in which order Redis shows what a board holds. Must not know: HTTP and JSON,
//! or how reads and writes are done (`operations`).
//!
//! - `frames`: requests out of bytes, replies into bytes
//! - `number`: scores as texts; `refused`: errors in Redis' words
//! - `commands`: which there are, and what their arguments ask for
//! - `boards`: what they do on boards
//! - `server`: listener, connections, their state, and commands about it

mod boards;
mod commands;
mod frames;
mod number;
mod refused;
mod server;

pub use commands::COMMANDS;
pub use server::{ListenAddress, Listener, Serving, serve};
