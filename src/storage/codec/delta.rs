//! The redo log: the changes of a batch to boards and entries, encoded straight from the plan.

use std::ops::Range;
use std::sync::Arc;

use bincode::de::{Decoder, read::Reader};
use bincode::error::DecodeError;
use bincode::{Decode, Encode};

use crate::state::{Applied, BoardEvent, Entry, EntryParts, Incarnation, RecordNumber, TreeId};
use crate::storage::codec::bytes::{CONFIG, Undecodable, decode_bounded, to_vec, undecodable};
use crate::storage::codec::definition::{DefinitionWire, definition_from_wire, definition_to_wire};
use crate::storage::codec::numbers::{put_signed, put_unsigned};
use crate::storage::codec::parts::{
    AppliedWire, EntryStateWire, applied_from_wire, applied_to_wire, board_name, put_entry_state,
};
use crate::types::{MAX_MEMBER_BYTES, MemberId, Sequence, Timestamp};

/// One (tree, member) before and after a batch.
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

pub fn encode_delta(delta: &Delta) -> Vec<u8> {
    let mut encoder = DeltaEncoder::new(delta.first, delta.applied, &delta.events, delta.changes.len());
    for change in &delta.changes {
        let [before, after] = [&change.before, &change.after].map(|entry| entry.as_ref().map(Entry::parts));
        encoder.push(change.tree, &change.member, before, after);
    }
    encoder.finish()
}

/// Before what may be absent.
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
/// In place of the length of a member's id: it is the change before's.
const SAME_MEMBER: u8 = 0;

/// Encodes a delta change by change, straight from the plan, without copying ids first. A tree or a member
/// costs no bytes if the change before has the same one.
///
/// Changes are written by hand, as bincode would: going through its traits, field by field, took three times
/// as many instructions.
pub struct DeltaEncoder {
    bytes: Vec<u8>,
    base: Timestamp,
    tree: TreeId,
    /// Where the last id is in `bytes`.
    member: Range<usize>,
}

impl DeltaEncoder {
    pub fn new(first: Sequence, applied: Applied, events: &[BoardEvent], changes: usize) -> Self {
        let events: Vec<EventWire> = events.iter().map(event_to_wire).collect();
        let count = u64::try_from(changes).expect("counts fit 64 bits");
        let mut bytes = to_vec(&(first.0, applied_to_wire(applied), events, count));
        bytes.reserve(changes * 48);
        Self { bytes, base: applied.timestamp, tree: TreeId(0), member: 0..0 }
    }

    pub fn push(
        &mut self,
        tree: TreeId,
        member: &[u8],
        before: Option<EntryParts<'_>>,
        after: Option<EntryParts<'_>>,
    ) {
        if tree == self.tree {
            self.bytes.push(ABSENT);
        } else {
            self.bytes.push(PRESENT);
            put_unsigned(&mut self.bytes, tree.0.into());
            self.tree = tree;
        }
        if self.bytes.get(self.member.clone()) == Some(member) {
            self.bytes.push(SAME_MEMBER);
        } else {
            put_unsigned(&mut self.bytes, crate::types::count(member.len()));
            let start = self.bytes.len();
            self.bytes.extend_from_slice(member);
            self.member = start..self.bytes.len();
        }
        self.put_entry(before);
        self.put_entry(after);
    }

    /// Times are stored relative to the batch's last message, in one to three bytes each; absolute times
    /// would take nine.
    fn put_entry(&mut self, entry: Option<EntryParts<'_>>) {
        let bytes = &mut self.bytes;
        let Some(EntryParts { state, updated_at, version, has_metadata }) = entry else {
            bytes.push(ABSENT);
            return;
        };
        bytes.push(PRESENT);
        put_entry_state(bytes, &state);
        put_signed(bytes, updated_at.as_micros() - self.base.as_micros());
        match version {
            None => bytes.push(ABSENT),
            Some(version) => {
                bytes.push(PRESENT);
                put_unsigned(bytes, version);
            }
        }
        bytes.push(has_metadata.into());
    }

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
    // A damaged count must not reserve memory: every change takes at least four bytes.
    let mut changes: Vec<DeltaChange> = Vec::with_capacity(count.min(bytes.len() / 4));
    let mut tree = TreeId(0);
    for _ in 0..count {
        let rest = bytes.get(at..).unwrap_or_default();
        let (change, read): (DecodedChange, usize) =
            bincode::decode_from_slice_with_context(rest, CONFIG, applied.timestamp).map_err(fail)?;
        at += read;
        tree = change.tree.unwrap_or(tree);
        let (before, after) = (change.before, change.after);
        let member = change.member.or_else(|| Some(changes.last()?.member.clone()));
        let member = member.ok_or_else(|| undecodable("delta", "its first change names no member"))?;
        changes.push(DeltaChange { tree, member, before, after });
    }
    if at != bytes.len() {
        return Err(undecodable("delta", "there are more bytes after its last change"));
    }
    Ok(Delta { first: Sequence(first), applied, events, changes })
}

#[derive(Encode, Decode)]
enum EventWire {
    Define {
        board: String,
        incarnation: u64,
        definition: DefinitionWire,
    },
    Drop {
        board: String,
        incarnation: u64,
    },
    /// A drop with the number of its record in the boards' stream. Since format 2, all drops that the stream
    /// decided have one.
    DropNumbered {
        board: String,
        incarnation: u64,
        number: u64,
    },
    DefineNumbered {
        board: String,
        incarnation: u64,
        number: u64,
        definition: DefinitionWire,
    },
}

fn event_to_wire(event: &BoardEvent) -> EventWire {
    match event {
        BoardEvent::Define { board, incarnation: Incarnation(incarnation), number, definition } => {
            let (board, incarnation) = (board.to_string(), *incarnation);
            let definition = definition_to_wire(definition);
            match *number {
                None => EventWire::Define { board, incarnation, definition },
                Some(RecordNumber(number)) => {
                    EventWire::DefineNumbered { board, incarnation, number, definition }
                }
            }
        }
        BoardEvent::Drop { board, incarnation: Incarnation(incarnation), number } => {
            let (board, incarnation) = (board.to_string(), *incarnation);
            match *number {
                None => EventWire::Drop { board, incarnation },
                Some(RecordNumber(number)) => EventWire::DropNumbered { board, incarnation, number },
            }
        }
    }
}

fn event_from_wire(wire: EventWire) -> Result<BoardEvent, Undecodable> {
    match wire {
        EventWire::Define { board, incarnation, definition } => {
            define_from_wire(&board, incarnation, None, definition)
        }
        EventWire::DefineNumbered { board, incarnation, number, definition } => {
            define_from_wire(&board, incarnation, Some(number), definition)
        }
        EventWire::Drop { board, incarnation } => drop_from_wire(&board, incarnation, None),
        EventWire::DropNumbered { board, incarnation, number } => {
            drop_from_wire(&board, incarnation, Some(number))
        }
    }
}

fn define_from_wire(
    board: &str,
    incarnation: u64,
    number: Option<u64>,
    definition: DefinitionWire,
) -> Result<BoardEvent, Undecodable> {
    Ok(BoardEvent::Define {
        board: board_name("delta", board)?,
        incarnation: Incarnation(incarnation),
        number: number.map(RecordNumber),
        definition: Arc::new(definition_from_wire(definition)?),
    })
}

fn drop_from_wire(board: &str, incarnation: u64, number: Option<u64>) -> Result<BoardEvent, Undecodable> {
    let (board, number) = (board_name("delta", board)?, number.map(RecordNumber));
    Ok(BoardEvent::Drop { board, incarnation: Incarnation(incarnation), number })
}

fn decode_entry<D: Decoder<Context = Timestamp>>(decoder: &mut D) -> Result<Option<Entry>, DecodeError> {
    if !bool::decode(decoder)? {
        return Ok(None);
    }
    let state = EntryStateWire::decode(decoder)?.0;
    let micros = i64::decode(decoder)?.checked_add(decoder.context().as_micros());
    let updated_at = micros.and_then(|micros| Timestamp::from_micros(micros).ok());
    let updated_at = updated_at.ok_or(DecodeError::Other("an entry's time is out of range"))?;
    let version = Option::<u64>::decode(decoder)?;
    let has_metadata = bool::decode(decoder)?;
    Ok(Some(Entry { state, updated_at, version, has_metadata }))
}

struct DecodedChange {
    tree: Option<TreeId>,
    member: Option<Vec<u8>>,
    before: Option<Entry>,
    after: Option<Entry>,
}

impl Decode<Timestamp> for DecodedChange {
    fn decode<D: Decoder<Context = Timestamp>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let tree = Option::<u32>::decode(decoder)?.map(TreeId);
        let member = match u32::decode(decoder)? {
            0 => None,
            length => Some(decode_member(decoder, length)?),
        };
        let before = decode_entry(decoder)?;
        let after = decode_entry(decoder)?;
        Ok(Self { tree, member, before, after })
    }
}

fn decode_member<D: Decoder>(decoder: &mut D, length: u32) -> Result<Vec<u8>, DecodeError> {
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_MEMBER_BYTES);
    let mut member = vec![0; length.ok_or(DecodeError::Other("a member id is too long"))?];
    decoder.reader().read(&mut member)?;
    let text = std::str::from_utf8(&member).map_err(|_| DecodeError::Other("a member id is not UTF-8"))?;
    MemberId::new(text).map_err(|_| DecodeError::Other("a member id has control characters"))?;
    Ok(member)
}
