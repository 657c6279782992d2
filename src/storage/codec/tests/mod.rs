//! Golden bytes of every value kind, round trips of all that varies, and what damage does: an error, and
//! nothing else.
//!
//! - `samples`: a value of each kind
//! - `golden`: its bytes
//! - `round_trips`: what was written is read back
//! - `damage`: what nobody wrote is refused

mod damage;
mod golden;
mod round_trips;
mod samples;
