//! A job's form on the wire: JSON.
//!
//! Knows: fields, their kinds, and which of them belong together. Must not know: boards' definitions, or anything else
//! that only the current state can judge. Queues carry this form, and storage keeps parked and rejected jobs in it.

mod decode;
mod encode;
mod fast_path;
mod json_words;
pub mod lenient;
mod named_boards;

pub use decode::{BoardNames, Decoded, compact, decode, decode_for, decode_one, decode_with};
pub use encode::encode;
pub use json_words::json_words;
pub use named_boards::names_only;
