//! What a checkpoint consists of: the manifest, dictionary pages and runs of entries.

use std::sync::Arc;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::board::Definition;
use crate::state::{Applied, DroppedName, Incarnation, RecordNumber, TreeId};
use crate::storage::codec::bytes::{CONFIG, Undecodable, from_slice, to_vec, undecodable};
use crate::storage::codec::definition::{DefinitionWire, definition_from_wire, definition_to_wire};
use crate::storage::codec::parts::{AppliedWire, applied_from_wire, applied_to_wire, board_name};
use crate::tree::Handle;
use crate::types::{BoardName, MemberId, Sequence};

/// The manifest of a completed checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The message that the checkpoint is of.
    pub applied: Applied,
    /// The applied sequence when the last page was copied. A log that ends before it cannot bring the
    /// checkpoint to a consistent state.
    pub copied_through: Sequence,
    pub next_tree: u32,
    pub boards: Vec<ManifestBoard>,
    pub dropped: Vec<DroppedName>,
    /// Drops up to this number were forgotten.
    pub forgotten: RecordNumber,
    /// The highest number of an incarnation or a record that the shard has seen.
    pub latest: RecordNumber,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestBoard {
    pub name: BoardName,
    pub incarnation: Incarnation,
    pub definition: Arc<Definition>,
    pub all: TreeId,
    /// Number of entries in the tree's pages, by which a missing page is noticed.
    pub entries: u64,
}

/// A run of entries by column: a tree page in the tree's order, or a member page in the order of handles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntriesPage {
    pub handles: Vec<u32>,
    /// One vector per word of an entry.
    pub columns: Vec<Vec<u64>>,
}

#[derive(Encode, Decode)]
struct ManifestWire {
    applied: AppliedWire,
    copied_through: u64,
    next_tree: u32,
    boards: Vec<(String, u64, DefinitionWire, u32, u64)>,
    /// The name of a dropped board, its last life, and the number of the record that dropped it.
    dropped: Vec<(String, u64, Option<u64>)>,
    forgotten: u64,
    latest: u64,
}

pub fn encode_manifest(manifest: &Manifest) -> Vec<u8> {
    let boards = manifest.boards.iter().map(|board| {
        let definition = definition_to_wire(&board.definition);
        (board.name.to_string(), board.incarnation.0, definition, board.all.0, board.entries)
    });
    let dropped = manifest
        .dropped
        .iter()
        .map(|DroppedName { name, life, number }| (name.to_string(), life.0, number.map(|number| number.0)));
    to_vec(&ManifestWire {
        applied: applied_to_wire(manifest.applied),
        copied_through: manifest.copied_through.0,
        next_tree: manifest.next_tree,
        boards: boards.collect(),
        dropped: dropped.collect(),
        forgotten: manifest.forgotten.0,
        latest: manifest.latest.0,
    })
}

/// # Errors
/// When the bytes are no such record, or break a rule of what they describe.
pub fn decode_manifest(bytes: &[u8]) -> Result<Manifest, Undecodable> {
    let wire: ManifestWire = from_slice("manifest", bytes)?;
    let mut boards = Vec::with_capacity(wire.boards.len());
    for (name, incarnation, definition, all, entries) in wire.boards {
        boards.push(ManifestBoard {
            name: board_name("manifest", &name)?,
            incarnation: Incarnation(incarnation),
            definition: Arc::new(definition_from_wire(definition)?),
            all: TreeId(all),
            entries,
        });
    }
    let dropped = wire.dropped.into_iter().map(|(name, life, number)| {
        let name = board_name("manifest", &name)?;
        Ok(DroppedName { name, life: Incarnation(life), number: number.map(RecordNumber) })
    });
    Ok(Manifest {
        applied: applied_from_wire(&wire.applied)?,
        copied_through: Sequence(wire.copied_through),
        next_tree: wire.next_tree,
        boards,
        dropped: dropped.collect::<Result<_, Undecodable>>()?,
        forgotten: RecordNumber(wire.forgotten),
        latest: RecordNumber(wire.latest),
    })
}

/// Members of a dictionary page: (handle, id).
pub fn encode_dictionary<'a>(members: impl Iterator<Item = (Handle, &'a [u8])>) -> Vec<u8> {
    let members: Vec<(u32, &[u8])> = members.map(|(handle, id)| (handle.0, id)).collect();
    to_vec(&members)
}

/// Hands each member of a dictionary page to `each`.
///
/// # Errors
/// When the bytes are no such record, or a member id is not valid.
pub fn decode_dictionary(bytes: &[u8], mut each: impl FnMut(Handle, &[u8])) -> Result<(), Undecodable> {
    let fail = |error: DecodeError| undecodable("dictionary page", error);
    let (count, mut at): (u64, usize) = bincode::decode_from_slice(bytes, CONFIG).map_err(fail)?;
    for _ in 0..count {
        let rest = bytes.get(at..).unwrap_or_default();
        let ((handle, id), read): ((u32, &[u8]), usize) =
            bincode::borrow_decode_from_slice(rest, CONFIG).map_err(fail)?;
        at += read;
        let text = std::str::from_utf8(id).map_err(|error| undecodable("dictionary page", error))?;
        MemberId::new(text).map_err(|error| undecodable("dictionary page", error))?;
        each(Handle(handle), id);
    }
    if at == bytes.len() {
        Ok(())
    } else {
        Err(undecodable("dictionary page", "there are more bytes after its end"))
    }
}

/// A run of entries; `columns` are as long as `handles`.
pub fn encode_entries(handles: &[u32], columns: &[&[u64]]) -> Vec<u8> {
    to_vec(&PageWire { handles, columns })
}

/// # Errors
/// When the bytes are no such record, or its columns differ in length.
pub fn decode_entries(bytes: &[u8]) -> Result<EntriesPage, Undecodable> {
    from_slice("page", bytes)
}

struct PageWire<'a> {
    handles: &'a [u32],
    columns: &'a [&'a [u64]],
}

impl Encode for PageWire<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.handles.encode(encoder)?;
        u64::try_from(self.columns.len()).unwrap_or(u64::MAX).encode(encoder)?;
        for column in self.columns {
            let base = column.iter().min().copied().unwrap_or(0);
            base.encode(encoder)?;
            for word in *column {
                (word - base).encode(encoder)?;
            }
        }
        Ok(())
    }
}

impl<C> Decode<C> for EntriesPage {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let length = u64::decode(decoder)?;
        // A valid page has at most 256. A damaged length must not reserve memory; decoding stops at the end
        // of the bytes.
        let mut handles = Vec::with_capacity(usize::try_from(length.min(256)).unwrap_or(0));
        for _ in 0..length {
            handles.push(u32::decode(decoder)?);
        }
        // Each column takes at least a byte, so decoding a damaged count stops at the end of the bytes.
        let count = u64::decode(decoder)?;
        let mut columns = Vec::new();
        for _ in 0..count {
            let base = u64::decode(decoder)?;
            let column = handles.iter().map(|_| Ok(base.wrapping_add(u64::decode(decoder)?)));
            columns.push(column.collect::<Result<Vec<_>, DecodeError>>()?);
        }
        Ok(Self { handles, columns })
    }
}
