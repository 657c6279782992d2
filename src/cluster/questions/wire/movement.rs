//! Questions about movement.
//!
//! They have a format of their own, as those that ask for profiles have: a node that does not know them
//! refuses them in words, and answers all others. Their replies are replies as any other.

use crate::cluster::questions::wire::question::{AskedQuestion, decode_question, encode_question};
use crate::cluster::questions::wire::{QUESTION_BYTES_MAX, Undecodable, body_of};

/// Far from the formats of questions, and from those of trims and profiles.
pub const MOVEMENT_FORMAT: u8 = 105;

pub fn encode_question_of_movement(asked: &AskedQuestion<'_>) -> Result<Vec<u8>, Undecodable> {
    let mut bytes = vec![MOVEMENT_FORMAT];
    bytes.extend(encode_question(asked)?);
    Ok(bytes)
}

pub fn decode_question_of_movement(bytes: &[u8]) -> Result<AskedQuestion<'_>, Undecodable> {
    decode_question(body_of(MOVEMENT_FORMAT, bytes, QUESTION_BYTES_MAX + 1)?)
}
