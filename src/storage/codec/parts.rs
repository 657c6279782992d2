//! Parts of several kinds of record: how far a shard is, a board's name, and where an entry stands.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::state::{Applied, EntryState};
use crate::storage::codec::bytes::{Undecodable, undecodable};
use crate::tree::Words;
use crate::types::{BoardName, Sequence, Timestamp};

#[derive(Encode, Decode)]
pub(super) struct AppliedWire {
    sequence: u64,
    timestamp_micros: i64,
    hash: u64,
}

pub(super) fn applied_to_wire(applied: Applied) -> AppliedWire {
    AppliedWire {
        sequence: applied.sequence.0,
        timestamp_micros: applied.timestamp.as_micros(),
        hash: applied.hash,
    }
}

pub(super) fn applied_from_wire(wire: &AppliedWire) -> Result<Applied, Undecodable> {
    let timestamp = Timestamp::from_micros(wire.timestamp_micros);
    Ok(Applied {
        sequence: Sequence(wire.sequence),
        timestamp: timestamp.map_err(|error| undecodable("applied sequence", error))?,
        hash: wire.hash,
    })
}

/// The name of a board, or of an instance of one.
pub(super) fn board_name(kind: &'static str, text: &str) -> Result<BoardName, Undecodable> {
    BoardName::of_shard(text).map_err(|error| undecodable(kind, error))
}

pub(super) struct EntryStateWire(pub(super) EntryState);

const REMOVED: u8 = 0;
const LISTED: u8 = 1;
const HIDDEN: u8 = 2;

impl Encode for EntryStateWire {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        encode_entry_state(&self.0, encoder)
    }
}

/// As [`EntryStateWire`] encodes it, without a copy of it.
pub(super) fn encode_entry_state<E: Encoder>(state: &EntryState, encoder: &mut E) -> Result<(), EncodeError> {
    let (kind, words) = match state {
        EntryState::Removed => return REMOVED.encode(encoder),
        EntryState::Listed(words) => (LISTED, words),
        EntryState::Hidden(words) => (HIDDEN, words),
    };
    kind.encode(encoder)?;
    let words = words.as_slice();
    u8::try_from(words.len()).unwrap_or(u8::MAX).encode(encoder)?;
    words.iter().try_for_each(|word| (word ^ (1 << 63)).cast_signed().encode(encoder))
}

impl<C> Decode<C> for EntryStateWire {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let kind = u8::decode(decoder)?;
        if kind == REMOVED {
            return Ok(Self(EntryState::Removed));
        }
        let mut words = Words::new();
        for _ in 0..u8::decode(decoder)? {
            if words.as_slice().len() == crate::tree::MAX_WORDS {
                return Err(DecodeError::Other("an entry has too many words"));
            }
            words.push(i64::decode(decoder)?.cast_unsigned() ^ (1 << 63));
        }
        match kind {
            LISTED => Ok(Self(EntryState::Listed(words))),
            HIDDEN => Ok(Self(EntryState::Hidden(words))),
            _ => Err(DecodeError::Other("the kind of an entry is unknown")),
        }
    }
}
