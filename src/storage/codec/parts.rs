//! Parts of several kinds of record: how far a shard is, a board's name and definition, and where an entry
//! stands.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::board::{Definition, Key, Order, Policy, Ties};
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

pub(super) fn board_name(kind: &'static str, text: &str) -> Result<BoardName, Undecodable> {
    BoardName::new(text).map_err(|error| undecodable(kind, error))
}

#[derive(Encode, Decode)]
pub(super) struct DefinitionWire {
    keys: Vec<(String, u8, i64, i64)>,
    policy: u8,
    ties: u8,
    utc_offset_minutes: i16,
    keep: u32,
}

pub(super) fn definition_to_wire(definition: &Definition) -> DefinitionWire {
    let keys = definition.keys.iter().map(|key| {
        let order = match key.order {
            Order::Ascending => 0,
            Order::Descending => 1,
        };
        (key.name.clone(), order, key.min, key.max)
    });
    DefinitionWire {
        keys: keys.collect(),
        policy: match definition.policy {
            Policy::Set => 0,
            Policy::Best => 1,
            Policy::Incr => 2,
        },
        ties: match definition.ties {
            Ties::First => 0,
            Ties::Last => 1,
            Ties::Member => 2,
        },
        utc_offset_minutes: definition.utc_offset_minutes,
        keep: definition.keep,
    }
}

pub(super) fn definition_from_wire(wire: DefinitionWire) -> Result<Definition, Undecodable> {
    let unknown = |what: &str| undecodable("board definition", format!("its {what} has an unknown number"));
    let mut keys = Vec::with_capacity(wire.keys.len());
    for (name, order, min, max) in wire.keys {
        let order = match order {
            0 => Order::Ascending,
            1 => Order::Descending,
            _ => return Err(unknown("order")),
        };
        keys.push(Key { name, order, min, max });
    }
    let policy = match wire.policy {
        0 => Policy::Set,
        1 => Policy::Best,
        2 => Policy::Incr,
        _ => return Err(unknown("policy")),
    };
    let ties = match wire.ties {
        0 => Ties::First,
        1 => Ties::Last,
        2 => Ties::Member,
        _ => return Err(unknown("tie rule")),
    };
    let (utc_offset_minutes, keep) = (wire.utc_offset_minutes, wire.keep);
    let definition = Definition { keys, policy, ties, utc_offset_minutes, keep, ..Definition::default() };
    definition.validate().map_err(|error| undecodable("board definition", error))?;
    Ok(definition)
}

pub(super) struct EntryStateWire(pub(super) EntryState);

const REMOVED: u8 = 0;
const LISTED: u8 = 1;
const HIDDEN: u8 = 2;

impl Encode for EntryStateWire {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let (kind, words) = match &self.0 {
            EntryState::Removed => return REMOVED.encode(encoder),
            EntryState::Listed(words) => (LISTED, words),
            EntryState::Hidden(words) => (HIDDEN, words),
        };
        kind.encode(encoder)?;
        let words = words.as_slice();
        u8::try_from(words.len()).unwrap_or(u8::MAX).encode(encoder)?;
        words.iter().try_for_each(|word| (word ^ (1 << 63)).cast_signed().encode(encoder))
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
