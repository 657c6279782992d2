//! Extras: the parts of entries that trees cannot hold, in pages.

use bincode::error::DecodeError;

use crate::state::{EntryState, Extra, Unlisted};
use crate::storage::codec::bytes::{CONFIG, Undecodable, to_vec, undecodable};
use crate::storage::codec::parts::EntryStateWire;
use crate::tree::Handle;
use crate::types::Timestamp;

/// Version, whether there is metadata, and the state of an entry that is not listed.
type ExtraFields = (Option<u64>, bool, Option<EntryStateWire>);

/// A page of extras. Times are stored relative to the least of them.
pub fn encode_extras(extras: &[(Handle, &Extra)]) -> Vec<u8> {
    let micros = |extra: &Extra| extra.updated_at.as_micros();
    let base = extras.iter().map(|(_, extra)| micros(extra)).min().unwrap_or(0);
    let mut bytes = to_vec(&(extras.len(), base));
    for (handle, extra) in extras {
        let since = micros(extra).wrapping_sub(base).cast_unsigned();
        let record = (handle.0, since, rest_of(extra));
        bincode::encode_into_std_write(&record, &mut bytes, CONFIG).expect("writing to memory does not fail");
    }
    bytes
}

/// Hands each extra of a page to `each`.
///
/// # Errors
/// When the bytes are no such record, or as `each`.
pub fn decode_extras(
    bytes: &[u8],
    mut each: impl FnMut(Handle, Extra) -> Result<(), Undecodable>,
) -> Result<(), Undecodable> {
    let fail = |error: DecodeError| undecodable("extras page", error);
    let ((count, base), mut at): ((u64, i64), usize) =
        bincode::decode_from_slice(bytes, CONFIG).map_err(fail)?;
    for _ in 0..count {
        let left = bytes.get(at..).unwrap_or_default();
        let ((handle, since, rest), read): ((u32, u64, ExtraFields), usize) =
            bincode::decode_from_slice(left, CONFIG).map_err(fail)?;
        at += read;
        each(Handle(handle), extra_of(base.wrapping_add_unsigned(since), rest)?)?;
    }
    if at == bytes.len() {
        Ok(())
    } else {
        Err(undecodable("extras page", "there are more bytes after its end"))
    }
}

fn rest_of(extra: &Extra) -> ExtraFields {
    let state = match &extra.unlisted {
        None => None,
        Some(Unlisted::Hidden(words)) => Some(EntryState::Hidden(**words)),
        Some(Unlisted::Removed) => Some(EntryState::Removed),
    };
    (extra.version, extra.has_metadata, state.map(EntryStateWire))
}

fn extra_of(micros: i64, rest: ExtraFields) -> Result<Extra, Undecodable> {
    let (version, has_metadata, state) = rest;
    let unlisted = match state.map(|wire| wire.0) {
        None => None,
        Some(EntryState::Hidden(words)) => Some(Unlisted::Hidden(Box::new(words))),
        Some(EntryState::Removed) => Some(Unlisted::Removed),
        Some(EntryState::Listed(_)) => {
            return Err(undecodable(
                "extras page",
                "it holds the score of a listed entry, which belongs in the tree",
            ));
        }
    };
    let updated_at = Timestamp::from_micros(micros).map_err(|error| undecodable("extras page", error))?;
    Ok(Extra { updated_at, version, has_metadata, unlisted })
}
