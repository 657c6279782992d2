//! Parts of several kinds of record: how far a shard is, a board's name, and where an entry stands.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::enc::write::Writer;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::state::{Applied, EntryState, EntryStateParts};
use crate::storage::codec::bytes::{Undecodable, undecodable};
use crate::storage::codec::numbers::{put_signed, put_unsigned};
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
        let mut bytes = Vec::new();
        put_entry_state(&mut bytes, &self.0.parts());
        encoder.writer().write(&bytes)
    }
}

/// Puts down a state as [`EntryStateWire`] decodes it.
pub(super) fn put_entry_state(bytes: &mut Vec<u8>, state: &EntryStateParts<'_>) {
    let (kind, words) = match state {
        EntryStateParts::Removed => return bytes.push(REMOVED),
        EntryStateParts::Listed(words) => (LISTED, *words),
        EntryStateParts::Hidden(words) => (HIDDEN, *words),
    };
    bytes.push(kind);
    put_unsigned(bytes, u64::try_from(words.len()).unwrap_or(u64::MAX));
    for word in words {
        put_signed(bytes, (word ^ (1 << 63)).cast_signed());
    }
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
