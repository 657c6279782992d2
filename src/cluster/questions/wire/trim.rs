//! A trim of a shard, and how far it has come. It is no question, because it changes something, so its bytes
//! begin with another number.

use bincode::{BorrowDecode, Decode, Encode};

use crate::cluster::questions::wire::counterparts::{LifeWire, WordsWire};
use crate::cluster::questions::wire::{
    QUESTION_BYTES_MAX, QUESTION_MEMORY_MAX, Undecodable, body_of, decode, encode_as, undecodable,
};
use crate::cluster::trim::{TrimOrder, Trimmed};
use crate::query::question::BoardLife;
use crate::state::{TrimPoint, TrimSide};
use crate::types::Sequence;

/// The only format of trims, far from that of questions.
pub const TRIM_FORMAT: u8 = 101;

/// A trim as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTrim {
    pub order: TrimOrder,
    /// The owner looks for entries once the shard has applied this sequence.
    pub least: Sequence,
    /// How long the asking node will wait for that, in milliseconds from when it asked.
    pub wait_ms: u32,
}

#[derive(Encode, BorrowDecode)]
struct AskedTrimWire<'a> {
    least: u64,
    wait_ms: u32,
    board: LifeWire<'a>,
    removes_better: bool,
    words: WordsWire,
    member: Option<&'a [u8]>,
}

#[derive(Encode, Decode)]
struct TrimmedWire {
    removed: u64,
    sequence: u64,
    is_finished: bool,
}

pub fn encode_trim(asked: &AskedTrim) -> Result<Vec<u8>, Undecodable> {
    let TrimOrder { board, incarnation, point } = &asked.order;
    let life = BoardLife { board: board.clone(), incarnation: *incarnation };
    let wire = AskedTrimWire {
        least: asked.least.0,
        wait_ms: asked.wait_ms,
        board: LifeWire::of(&life),
        removes_better: point.side == TrimSide::Better,
        words: WordsWire(point.words),
        member: point.member.as_deref(),
    };
    encode_as(TRIM_FORMAT, &wire, QUESTION_BYTES_MAX)
}

/// # Errors
/// When the bytes are no trim of a known format.
pub fn decode_trim(bytes: &[u8]) -> Result<AskedTrim, Undecodable> {
    let body = body_of(TRIM_FORMAT, bytes, QUESTION_BYTES_MAX)?;
    let AskedTrimWire { least, wait_ms, board, removes_better, words, member } =
        decode::<_, QUESTION_MEMORY_MAX>(body)?;
    let BoardLife { board, incarnation } = board.read()?;
    let side = if removes_better { TrimSide::Better } else { TrimSide::Worse };
    let point = TrimPoint { side, words: words.0, member: member.map(Into::into) };
    Ok(AskedTrim { order: TrimOrder { board, incarnation, point }, least: Sequence(least), wait_ms })
}

/// # Errors
/// Never, because it is small.
pub fn encode_trimmed(trimmed: &Trimmed) -> Result<Vec<u8>, Undecodable> {
    let Trimmed { removed, sequence, is_finished } = *trimmed;
    encode_as(TRIM_FORMAT, &TrimmedWire { removed, sequence: sequence.0, is_finished }, QUESTION_BYTES_MAX)
}

/// # Errors
/// When the bytes say nothing of a trim in a known format.
pub fn decode_trimmed(bytes: &[u8]) -> Result<Trimmed, Undecodable> {
    let body = body_of(TRIM_FORMAT, bytes, QUESTION_BYTES_MAX)?;
    let TrimmedWire { removed, sequence, is_finished } = decode::<_, QUESTION_MEMORY_MAX>(body)?;
    if removed > 0 && sequence == 0 {
        return Err(undecodable("it removed entries without a message"));
    }
    Ok(Trimmed { removed, sequence: Sequence(sequence), is_finished })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::questions::wire::decode_question;
    use crate::state::Incarnation;
    use crate::tree::Words;
    use crate::types::BoardName;

    fn asked(member: Option<&[u8]>) -> AskedTrim {
        let side = if member.is_some() { TrimSide::Worse } else { TrimSide::Better };
        let point =
            TrimPoint { side, words: Words::from_slice(&[1 << 63, 7]), member: member.map(Into::into) };
        let board = BoardName::new("a").expect("a good name");
        let order = TrimOrder { board, incarnation: Incarnation(7), point };
        AskedTrim { order, least: Sequence(300), wait_ms: 500 }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }

    #[test]
    fn golden_trims_and_answers() {
        for (asked, expected) in [
            (asked(None), "65fb2c01fbf401016107 01 02 00fdf1ffffffffffffff00"),
            (asked(Some(b"m7")), "65fb2c01fbf401016107 00 02 00fdf1ffffffffffffff01026d37"),
        ] {
            let mut bytes = encode_trim(&asked).expect("it is small");
            assert_eq!(hex(&bytes), expected.replace(' ', ""));
            assert_eq!(decode_trim(&bytes), Ok(asked));
            for length in 0..bytes.len() {
                assert!(decode_trim(&bytes[..length]).is_err(), "{length}");
            }
            assert_eq!(decode_question(&bytes), Err(Undecodable::Format { found: TRIM_FORMAT }));
            bytes.push(0);
            assert!(decode_trim(&bytes).is_err());
        }
        let trimmed = Trimmed { removed: 300, sequence: Sequence(9), is_finished: true };
        let bytes = encode_trimmed(&trimmed).expect("it is small");
        assert_eq!((hex(&bytes).as_str(), decode_trimmed(&bytes)), ("65fb2c010901", Ok(trimmed)));
        for strange in [&b""[..], b"\x65", b"\x65\x01\x00\x01", b"\x01\x01\x09\x01"] {
            assert!(decode_trimmed(strange).is_err(), "{strange:?}");
        }
    }
}
