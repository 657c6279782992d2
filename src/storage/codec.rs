//! Values as bytes: the only place that knows bincode.
//!
//! Knows: every record's layout and the format version. Must not know: keys, or RocksDB.
//!
//! bincode is pinned to 2.0.1 and its layout is fixed by the golden tests below. Its releases are final
//! (RUSTSEC-2025-0141), which is what a disk format wants; should it ever have to go, this file is what is replaced.
//!
//! Numbers are variable-length: a byte up to 250, then 3, 5 or 9 bytes. Words are stored by their distance from 2^63,
//! zigzag, which is the score itself for either direction, so small scores take a byte or three. In pages each
//! column is stored by its distance from its least word.

use std::sync::Arc;

use bincode::config::{Configuration, standard};
use bincode::de::{Decoder, read::Reader};
use bincode::enc::{Encoder, write::Writer};
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use thiserror::Error;

use crate::board::{Definition, Key, Order, Policy, Ties};
use crate::job::RejectCode;
use crate::state::{Applied, BoardEvent, Entry, Extra, Incarnation, Standing, TreeId, Unlisted};
use crate::tree::{Handle, Words};
use crate::types::{BoardName, MemberId, Sequence, Timestamp};

/// Raised with every change that an older ranktree could not read.
pub const FORMAT_VERSION: u32 = 1;

const CONFIG: Configuration = standard();

/// A damaged length must not make us reserve memory for it. A record takes at most this many bytes of memory for each
/// of its own before it turns out to end too soon: the greediest, a dropped board of a name of one letter, takes 18.
const MEMORY_PER_BYTE: usize = 32;

/// A value that is not what its kind says it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a {kind} cannot be read: {reason}")]
pub struct Undecodable {
    pub kind: &'static str,
    pub reason: String,
}

/// Written with every batch: how far this shard is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Meta {
    pub format_version: u32,
    pub shard: u16,
    /// The number of shards the members are spread over; a directory belongs to one such layout.
    pub shards: u16,
    pub applied_sequence: u64,
    pub message_timestamp_micros: i64,
    pub message_hash: u64,
    pub jobs_rejected: u64,
    /// Identity of the queue the sequences belong to: empty for the local source.
    pub stream: String,
}

/// A job that was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectRecord {
    pub sequence: Sequence,
    /// The job's place within its message.
    pub index: u32,
    pub code: RejectCode,
    pub detail: String,
    /// The job as it came, cut to a length that storage can bear.
    pub job: Vec<u8>,
}

/// A job that waits for the definition of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedRecord {
    /// The message that brought it.
    pub sequence: Sequence,
    /// Its place within the message.
    pub index: u32,
    /// The message's timestamp.
    pub timestamp: Timestamp,
    /// The job as the queue describes it.
    pub job: Vec<u8>,
}

#[derive(Encode, Decode)]
struct RejectWire {
    code: u8,
    detail: String,
    job: Vec<u8>,
}

/// Metadata of an entry, and the message that brought it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MetadataRecord {
    pub sequence: u64,
    pub json: String,
}

/// One (tree, member) as a batch found it and left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaChange {
    pub tree: TreeId,
    pub member: Vec<u8>,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

/// The redo log of one batch: messages `first ..= applied.sequence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    pub first: Sequence,
    pub applied: Applied,
    pub events: Vec<BoardEvent>,
    pub changes: Vec<DeltaChange>,
}

/// What a completed checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// What the checkpoint is of.
    pub applied: Applied,
    /// How far the shard had come when the last of it was looked at. A log that ends before cannot make it right.
    pub seen: Sequence,
    pub next_tree: u32,
    pub boards: Vec<ManifestBoard>,
    pub dropped: Vec<(BoardName, Incarnation)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestBoard {
    pub name: BoardName,
    pub incarnation: Incarnation,
    pub definition: Arc<Definition>,
    pub all: TreeId,
    /// Entries in the tree's pages: a page that went missing is noticed by this.
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
struct DefinitionWire {
    keys: Vec<(String, u8, i64, i64)>,
    policy: u8,
    ties: u8,
    utc_offset_minutes: i16,
    keep: u32,
}

#[derive(Encode, Decode)]
enum EventWire {
    Define { board: String, incarnation: u64, definition: DefinitionWire },
    Drop { board: String, incarnation: u64 },
}

#[derive(Encode, Decode)]
struct ManifestWire {
    format_version: u32,
    applied: AppliedWire,
    seen: u64,
    next_tree: u32,
    boards: Vec<(String, u64, DefinitionWire, u32, u64)>,
    dropped: Vec<(String, u64)>,
}

#[derive(Encode, Decode)]
struct AppliedWire {
    sequence: u64,
    timestamp_micros: i64,
    hash: u64,
}

/// The format version of a meta record, even one whose rest this ranktree cannot read.
#[must_use]
pub fn format_version(meta: &[u8]) -> Option<u32> {
    bincode::decode_from_slice(meta, CONFIG).ok().map(|(version, _)| version)
}

#[must_use]
pub fn encode_meta(meta: &Meta) -> Vec<u8> {
    to_vec(meta)
}

/// # Errors
/// When the bytes are no such record.
pub fn decode_meta(bytes: &[u8]) -> Result<Meta, Undecodable> {
    from_slice("meta record", bytes)
}

#[must_use]
pub fn encode_metadata(record: &MetadataRecord) -> Vec<u8> {
    to_vec(record)
}

/// # Errors
/// When the bytes are no such record.
pub fn decode_metadata(bytes: &[u8]) -> Result<MetadataRecord, Undecodable> {
    from_slice("metadata record", bytes)
}

#[must_use]
pub fn encode_reject(record: &RejectRecord) -> Vec<u8> {
    let code = RejectCode::ALL.iter().position(|code| *code == record.code).unwrap_or_default();
    let code = u8::try_from(code).expect("there are ten codes");
    to_vec(&RejectWire { code, detail: record.detail.clone(), job: record.job.clone() })
}

/// # Errors
/// When the bytes are no such record.
pub fn decode_reject(sequence: Sequence, index: u32, bytes: &[u8]) -> Result<RejectRecord, Undecodable> {
    let wire: RejectWire = from_slice("reject", bytes)?;
    let code = RejectCode::ALL.get(usize::from(wire.code));
    let code = *code.ok_or_else(|| undecodable("reject", "its code is unknown"))?;
    Ok(RejectRecord { sequence, index, code, detail: wire.detail, job: wire.job })
}

#[must_use]
pub fn encode_parked(record: &ParkedRecord) -> Vec<u8> {
    to_vec(&(record.timestamp.as_micros(), record.job.as_slice()))
}

/// # Errors
/// When the bytes are no such record.
pub fn decode_parked(sequence: Sequence, index: u32, bytes: &[u8]) -> Result<ParkedRecord, Undecodable> {
    let (micros, job): (i64, Vec<u8>) = from_slice("parked job", bytes)?;
    let timestamp = Timestamp::from_micros(micros).map_err(|error| undecodable("parked job", error))?;
    Ok(ParkedRecord { sequence, index, timestamp, job })
}

#[must_use]
pub fn encode_manifest(manifest: &Manifest) -> Vec<u8> {
    let boards = manifest.boards.iter().map(|board| {
        let definition = definition_to_wire(&board.definition);
        (board.name.to_string(), board.incarnation.0, definition, board.all.0, board.entries)
    });
    let dropped = manifest.dropped.iter().map(|(name, incarnation)| (name.to_string(), incarnation.0));
    to_vec(&ManifestWire {
        format_version: FORMAT_VERSION,
        applied: applied_to_wire(manifest.applied),
        seen: manifest.seen.0,
        next_tree: manifest.next_tree,
        boards: boards.collect(),
        dropped: dropped.collect(),
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
    let dropped = wire.dropped.into_iter();
    let dropped = dropped.map(|(name, life)| Ok((board_name("manifest", &name)?, Incarnation(life))));
    Ok(Manifest {
        applied: applied_from_wire(&wire.applied)?,
        seen: Sequence(wire.seen),
        next_tree: wire.next_tree,
        boards,
        dropped: dropped.collect::<Result<_, Undecodable>>()?,
    })
}

/// Members of a dictionary page: (handle, id).
#[must_use]
pub fn encode_dictionary<'a>(members: impl Iterator<Item = (Handle, &'a [u8])>) -> Vec<u8> {
    let members: Vec<(u32, &[u8])> = members.map(|(handle, id)| (handle.0, id)).collect();
    to_vec(&members)
}

/// Hands each member of a dictionary page to `each`.
///
/// # Errors
/// When the bytes are no such record, or an id is none.
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
    if at == bytes.len() { Ok(()) } else { Err(undecodable("dictionary page", "bytes follow it")) }
}

#[must_use]
pub fn encode_extra(extra: &Extra) -> Vec<u8> {
    let standing = match &extra.unlisted {
        None => None,
        Some(Unlisted::Hidden(words)) => Some(Standing::Hidden(**words)),
        Some(Unlisted::Removed) => Some(Standing::Removed),
    };
    let (time, version) = (extra.updated_at.as_micros(), extra.version);
    to_vec(&(time, version, extra.has_metadata, standing.map(StandingWire)))
}

/// # Errors
/// When the bytes are no such record.
pub fn decode_extra(bytes: &[u8]) -> Result<Extra, Undecodable> {
    let (time, version, has_metadata, standing): (i64, Option<u64>, bool, Option<StandingWire>) =
        from_slice("extra", bytes)?;
    let unlisted = match standing.map(|wire| wire.0) {
        None => None,
        Some(Standing::Hidden(words)) => Some(Unlisted::Hidden(Box::new(words))),
        Some(Standing::Removed) => Some(Unlisted::Removed),
        Some(Standing::Listed(_)) => return Err(undecodable("extra", "it says where a listed entry stands")),
    };
    let updated_at = Timestamp::from_micros(time).map_err(|error| undecodable("extra", error))?;
    Ok(Extra { updated_at, version, has_metadata, unlisted })
}

/// A run of entries; `columns` are as long as `handles`.
#[must_use]
pub fn encode_entries(handles: &[u32], columns: &[&[u64]]) -> Vec<u8> {
    to_vec(&PageWire { handles, columns })
}

/// # Errors
/// When the bytes are no such record, or its columns differ in length.
pub fn decode_entries(bytes: &[u8]) -> Result<EntriesPage, Undecodable> {
    from_slice("page", bytes)
}

#[must_use]
pub fn encode_delta(delta: &Delta) -> Vec<u8> {
    let mut encoder = DeltaEncoder::new(delta.first, delta.applied, &delta.events, delta.changes.len());
    for change in &delta.changes {
        encoder.push(change.tree, &change.member, change.before.as_ref(), change.after.as_ref());
    }
    encoder.finish()
}

/// Encodes a delta change by change, straight from the plan, without copying ids first.
pub struct DeltaEncoder {
    bytes: Vec<u8>,
    base: Timestamp,
    tree: TreeId,
}

impl DeltaEncoder {
    #[must_use]
    pub fn new(first: Sequence, applied: Applied, events: &[BoardEvent], changes: usize) -> Self {
        let events: Vec<EventWire> = events.iter().map(event_to_wire).collect();
        let count = u64::try_from(changes).expect("counts fit 64 bits");
        let mut bytes = to_vec(&(first.0, applied_to_wire(applied), events, count));
        bytes.reserve(changes * 48);
        Self { bytes, base: applied.timestamp, tree: TreeId(0) }
    }

    pub fn push(&mut self, tree: TreeId, member: &[u8], before: Option<&Entry>, after: Option<&Entry>) {
        let same_tree = tree == self.tree;
        self.tree = tree;
        let wire = ChangeWire {
            tree: (!same_tree).then_some(tree),
            member,
            before: before.map(|entry| EntryWire { entry: *entry, base: self.base }),
            after: after.map(|entry| EntryWire { entry: *entry, base: self.base }),
        };
        bincode::encode_into_std_write(&wire, &mut self.bytes, CONFIG).expect("memory can be written to");
    }

    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// # Errors
/// When the bytes are no such record, or break a rule of what they describe.
pub fn decode_delta(bytes: &[u8]) -> Result<Delta, Undecodable> {
    type Head = (u64, AppliedWire, Vec<EventWire>, u64);
    let fail = |error: DecodeError| undecodable("delta", error);
    let ((first, applied, events, count), mut at): (Head, usize) = decode_bounded(bytes).map_err(fail)?;
    let applied = applied_from_wire(&applied)?;
    let events = events.into_iter().map(event_from_wire).collect::<Result<_, _>>()?;
    let count = usize::try_from(count).map_err(|error| undecodable("delta", error))?;
    // A damaged count must not make us reserve memory for it: every change takes at least four bytes.
    let mut changes = Vec::with_capacity(count.min(bytes.len() / 4));
    let mut tree = TreeId(0);
    for _ in 0..count {
        let rest = bytes.get(at..).unwrap_or_default();
        let (change, read): (DecodedChange, usize) =
            bincode::decode_from_slice_with_context(rest, CONFIG, applied.timestamp).map_err(fail)?;
        at += read;
        tree = change.tree.unwrap_or(tree);
        let (member, before, after) = (change.member, change.before, change.after);
        changes.push(DeltaChange { tree, member, before, after });
    }
    if at != bytes.len() {
        return Err(undecodable("delta", "bytes follow its last change"));
    }
    Ok(Delta { first: Sequence(first), applied, events, changes })
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
        // A true page has 256 at most. A damaged length must not reserve memory, and ends with the bytes.
        let mut handles = Vec::with_capacity(usize::try_from(length.min(256)).unwrap_or(0));
        for _ in 0..length {
            handles.push(u32::decode(decoder)?);
        }
        // Each column takes a byte at least, so a damaged count ends with the bytes.
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

struct StandingWire(Standing);

const REMOVED: u8 = 0;
const LISTED: u8 = 1;
const HIDDEN: u8 = 2;

impl Encode for StandingWire {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let (kind, words) = match &self.0 {
            Standing::Removed => return REMOVED.encode(encoder),
            Standing::Listed(words) => (LISTED, words),
            Standing::Hidden(words) => (HIDDEN, words),
        };
        kind.encode(encoder)?;
        let words = words.as_slice();
        u8::try_from(words.len()).unwrap_or(u8::MAX).encode(encoder)?;
        words.iter().try_for_each(|word| (word ^ (1 << 63)).cast_signed().encode(encoder))
    }
}

impl<C> Decode<C> for StandingWire {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let kind = u8::decode(decoder)?;
        if kind == REMOVED {
            return Ok(Self(Standing::Removed));
        }
        let mut words = Words::new();
        for _ in 0..u8::decode(decoder)? {
            if words.as_slice().len() == crate::tree::MAX_WORDS {
                return Err(DecodeError::Other("an entry has too many words"));
            }
            words.push(i64::decode(decoder)?.cast_unsigned() ^ (1 << 63));
        }
        match kind {
            LISTED => Ok(Self(Standing::Listed(words))),
            HIDDEN => Ok(Self(Standing::Hidden(words))),
            _ => Err(DecodeError::Other("an entry's standing is unknown")),
        }
    }
}

/// Times are told from the batch's last message: a byte or three each, where a date would take nine.
struct EntryWire {
    entry: Entry,
    base: Timestamp,
}

impl Encode for EntryWire {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        StandingWire(self.entry.standing).encode(encoder)?;
        (self.entry.updated_at.as_micros() - self.base.as_micros()).encode(encoder)?;
        self.entry.version.encode(encoder)?;
        self.entry.has_metadata.encode(encoder)
    }
}

fn decode_entry<D: Decoder<Context = Timestamp>>(decoder: &mut D) -> Result<Option<Entry>, DecodeError> {
    if !bool::decode(decoder)? {
        return Ok(None);
    }
    let standing = StandingWire::decode(decoder)?.0;
    let micros = i64::decode(decoder)?.checked_add(decoder.context().as_micros());
    let updated_at = micros.and_then(|micros| Timestamp::from_micros(micros).ok());
    let updated_at = updated_at.ok_or(DecodeError::Other("an entry's time is out of range"))?;
    let version = Option::<u64>::decode(decoder)?;
    let has_metadata = bool::decode(decoder)?;
    Ok(Some(Entry { standing, updated_at, version, has_metadata }))
}

struct ChangeWire<'a> {
    /// Absent: the tree of the change before.
    tree: Option<TreeId>,
    member: &'a [u8],
    before: Option<EntryWire>,
    after: Option<EntryWire>,
}

impl Encode for ChangeWire<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.tree.map(|tree| tree.0).encode(encoder)?;
        u8::try_from(self.member.len()).unwrap_or(u8::MAX).encode(encoder)?;
        encoder.writer().write(self.member)?;
        self.before.encode(encoder)?;
        self.after.encode(encoder)
    }
}

struct DecodedChange {
    tree: Option<TreeId>,
    member: Vec<u8>,
    before: Option<Entry>,
    after: Option<Entry>,
}

impl Decode<Timestamp> for DecodedChange {
    fn decode<D: Decoder<Context = Timestamp>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let tree = Option::<u32>::decode(decoder)?.map(TreeId);
        let mut member = vec![0; usize::from(u8::decode(decoder)?)];
        decoder.reader().read(&mut member)?;
        let text =
            std::str::from_utf8(&member).map_err(|_| DecodeError::Other("a member id is not UTF-8"))?;
        MemberId::new(text).map_err(|_| DecodeError::Other("a member id is none"))?;
        let before = decode_entry(decoder)?;
        let after = decode_entry(decoder)?;
        Ok(Self { tree, member, before, after })
    }
}

fn definition_to_wire(definition: &Definition) -> DefinitionWire {
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

fn definition_from_wire(wire: DefinitionWire) -> Result<Definition, Undecodable> {
    let unknown = |what: &str| undecodable("board definition", format!("its {what} is unknown"));
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
    let definition = Definition { keys, policy, ties, utc_offset_minutes, keep };
    definition.validate().map_err(|error| undecodable("board definition", error))?;
    Ok(definition)
}

fn event_to_wire(event: &BoardEvent) -> EventWire {
    match event {
        BoardEvent::Define { board, incarnation, definition } => EventWire::Define {
            board: board.to_string(),
            incarnation: incarnation.0,
            definition: definition_to_wire(definition),
        },
        BoardEvent::Drop { board, incarnation } => {
            EventWire::Drop { board: board.to_string(), incarnation: incarnation.0 }
        }
    }
}

fn event_from_wire(wire: EventWire) -> Result<BoardEvent, Undecodable> {
    Ok(match wire {
        EventWire::Define { board, incarnation, definition } => BoardEvent::Define {
            board: board_name("delta", &board)?,
            incarnation: Incarnation(incarnation),
            definition: Arc::new(definition_from_wire(definition)?),
        },
        EventWire::Drop { board, incarnation } => {
            BoardEvent::Drop { board: board_name("delta", &board)?, incarnation: Incarnation(incarnation) }
        }
    })
}

fn applied_to_wire(applied: Applied) -> AppliedWire {
    AppliedWire {
        sequence: applied.sequence.0,
        timestamp_micros: applied.timestamp.as_micros(),
        hash: applied.hash,
    }
}

fn applied_from_wire(wire: &AppliedWire) -> Result<Applied, Undecodable> {
    let timestamp = Timestamp::from_micros(wire.timestamp_micros);
    Ok(Applied {
        sequence: Sequence(wire.sequence),
        timestamp: timestamp.map_err(|error| undecodable("applied sequence", error))?,
        hash: wire.hash,
    })
}

fn board_name(kind: &'static str, text: &str) -> Result<BoardName, Undecodable> {
    BoardName::new(text).map_err(|error| undecodable(kind, error))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are handed over; that this copies their text is its business"
)]
fn undecodable(kind: &'static str, reason: impl ToString) -> Undecodable {
    Undecodable { kind, reason: reason.to_string() }
}

fn to_vec(value: &impl Encode) -> Vec<u8> {
    bincode::encode_to_vec(value, CONFIG).expect("memory can be written to")
}

fn from_slice<T: Decode<()>>(kind: &'static str, bytes: &[u8]) -> Result<T, Undecodable> {
    let (value, read) = decode_bounded(bytes).map_err(|error| undecodable(kind, error))?;
    if read == bytes.len() { Ok(value) } else { Err(undecodable(kind, "bytes follow it")) }
}

/// Decodes within a multiple of the record's own length, rounded up to a power of 64: bincode's limits are constants.
fn decode_bounded<T: Decode<()>>(bytes: &[u8]) -> Result<(T, usize), DecodeError> {
    let bound = bytes.len().saturating_mul(MEMORY_PER_BYTE);
    if bound <= 1 << 14 {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 14 }>())
    } else if bound <= 1 << 20 {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 20 }>())
    } else if bound <= 1 << 26 {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 26 }>())
    } else {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 32 }>())
    }
}

#[cfg(test)]
mod tests;
