//! Questions about when boards have changed.
//!
//! They have a format of their own, as those about movement have: a node that does not know them refuses them
//! in words, and answers all others. Their replies are replies as any other.

use crate::cluster::questions::wire::question::{AskedQuestion, decode_question, encode_question};
use crate::cluster::questions::wire::{QUESTION_BYTES_MAX, Undecodable, body_of};

/// Far from the formats of questions, and from those of trims, profiles, movement and summaries.
pub const CHANGED_FORMAT: u8 = 115;

pub fn encode_question_of_changed(asked: &AskedQuestion<'_>) -> Result<Vec<u8>, Undecodable> {
    let mut bytes = vec![CHANGED_FORMAT];
    bytes.extend(encode_question(asked)?);
    Ok(bytes)
}

pub fn decode_question_of_changed(bytes: &[u8]) -> Result<AskedQuestion<'_>, Undecodable> {
    decode_question(body_of(CHANGED_FORMAT, bytes, QUESTION_BYTES_MAX + 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::questions::wire::FORMAT;
    use crate::query::question::{BoardLife, Question};
    use crate::state::Incarnation;
    use crate::types::{BoardName, Sequence};

    #[test]
    fn they_read_back_and_a_node_that_does_not_know_them_says_so() {
        let board = BoardName::new("a").expect("a good name");
        let question = Question::Changed(vec![BoardLife { board, incarnation: Incarnation(7) }]);
        let asked = AskedQuestion { question, least: Sequence(0), wait_ms: 500, may_be_behind: false };
        let bytes = encode_question_of_changed(&asked).expect("it is small");
        assert_eq!(decode_question_of_changed(&bytes).as_ref(), Ok(&asked));
        assert_ne!(CHANGED_FORMAT, FORMAT);
        assert_eq!(decode_question(&bytes), Err(Undecodable::Format { found: CHANGED_FORMAT }));
        assert!(decode_question_of_changed(&encode_question(&asked).expect("it is small")).is_err());
    }
}
