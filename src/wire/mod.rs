//! A job's form on the wire: JSON.
//!
//! Knows: fields, their kinds, and which of them belong together. Must not know: boards' definitions, or
//! anything else that only the current state can judge. Queues carry this form, and storage keeps parked and
//! rejected jobs in it.
//!
//! - `decode`: the way in, by `fast_path` for jobs in their commonest form, else by `strict`, which explains
//!   refusals
//! - `encode`: the way out
//! - `plain_list`: bodies that are one list, in their commonest form
//! - `lenient`: JSON values as text, read once it is known what they should be

mod decode;
mod encode;

mod fast_path;
mod strict;

mod compact;
mod json_words;
pub mod lenient;
mod named_boards;
mod named_member;
mod plain_list;
mod text_escapes;

pub use compact::{compact, compact_unescaped};
pub use decode::{decode, decode_for, decode_one, decode_plain, decode_with};
pub use encode::{encode, encode_into, score_json};
pub use fast_path::BoardNames;
pub use json_words::json_words;
pub use named_boards::names_only;
pub use named_member::{cut_job, members_named};
pub use plain_list::{plain_members, plain_scores};
pub use strict::{Decoded, decode_strictly};
