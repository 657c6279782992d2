//! Mixes what messages do into the hash of the log, in the order of the log.
//!
//! Knows: what is equal on all replicas, however each of them cuts the log into batches. An entry is mixed in
//! as it was found and as it was left: a replica whose entry was wrong before differs when the entry is next
//! named, even by a job that replaces it. Must not know: how the hash is computed, stored or compared.

use crate::job::{JobPlace, RejectCode};
use crate::state::{
    Applied, BanChange, BoardEvent, Entry, HashPoint, Incarnation, LogHash, MemberVersionChange,
};
use crate::storage::codec::ProfileRecord;
use crate::types::{BoardName, MemberId, count};
use crate::writer::plan::Batch;

/// What was mixed in; part of the hash's function, see [`HASH_VERSION`](crate::state::HASH_VERSION).
#[derive(Clone, Copy)]
enum Effect {
    Entry,
    Reject,
    Define,
    Drop,
    Parked,
    Unparked,
    Profile,
    Leap,
    Ban,
    MemberVersion,
}

impl Effect {
    fn word(self) -> u64 {
        match self {
            Self::Entry => 1,
            Self::Reject => 2,
            Self::Define => 3,
            Self::Drop => 4,
            Self::Parked => 5,
            Self::Unparked => 6,
            Self::Profile => 7,
            Self::Leap => 8,
            Self::Ban => 9,
            Self::MemberVersion => 10,
        }
    }
}

/// The hash of the log as the batch's messages are planned.
pub(super) struct BatchHash {
    pub(super) running: LogHash,
    pub(super) kept: Vec<HashPoint>,
}

impl Batch<'_> {
    pub(super) fn begin_hashing(&mut self, message: Applied) {
        if let Some(hash) = &mut self.hash {
            hash.running.begin_message(message);
            if let Some(leap) = self.leap {
                hash.running.words(Effect::Leap.word(), leap.as_micros().cast_unsigned());
                hash.running.words(self.time.as_micros().cast_unsigned(), 0);
            }
        }
    }

    pub(super) fn end_hashing(&mut self) {
        if let Some(hash) = &mut self.hash {
            hash.kept.extend(hash.running.point_to_keep());
        }
    }

    /// A job was decided on an entry, whether that changed it or not.
    pub(super) fn hash_entry(
        &mut self,
        (board, incarnation): (&BoardName, Incarnation),
        member: &MemberId,
        (before, after): (Option<&Entry>, Option<&Entry>),
    ) {
        let Some(BatchHash { running: hash, .. }) = &mut self.hash else { return };
        hash.words(Effect::Entry.word(), incarnation.0);
        hash.bytes(board.as_str().as_bytes());
        hash.bytes(member.as_bytes());
        hash.entry(before);
        hash.entry(after);
    }

    /// A job was decided on a profile that is there, or brings one.
    pub(super) fn hash_profile(
        &mut self,
        member: &MemberId,
        (before, after): (Option<&ProfileRecord>, Option<&ProfileRecord>),
    ) {
        let Some(BatchHash { running: hash, .. }) = &mut self.hash else { return };
        hash.words(Effect::Profile.word(), 0);
        hash.bytes(member.as_bytes());
        for record in [before, after] {
            let version = record.and_then(|record| record.version);
            let json = record.and_then(|record| record.json.as_deref());
            let kind = u64::from(record.is_some())
                | (u64::from(version.is_some()) << 1)
                | (u64::from(json.is_some()) << 2);
            hash.words(kind, version.unwrap_or_default());
            hash.bytes(json.unwrap_or_default().as_bytes());
        }
    }

    /// A ban began, got another version, or ended.
    pub(super) fn hash_ban(&mut self, BanChange { scope, member, after }: &BanChange) {
        let Some(BatchHash { running: hash, .. }) = &mut self.hash else { return };
        let since = after.map_or(-1, |record| record.since.as_micros());
        let version = after.and_then(|record| record.version);
        let kind = (u64::from(scope.is_some()) << 8) | (u64::from(version.is_some()) << 9);
        hash.words(Effect::Ban.word() | kind, since.cast_unsigned());
        hash.words(version.unwrap_or_default(), 0);
        hash.bytes(scope.as_ref().map_or("", BoardName::as_str).as_bytes());
        hash.bytes(member.as_bytes());
    }

    /// A version of a member that holds on every board is remembered, or forgotten.
    pub(super) fn hash_member_version(
        &mut self,
        MemberVersionChange { member, after }: &MemberVersionChange,
    ) {
        let Some(BatchHash { running: hash, .. }) = &mut self.hash else { return };
        let effect = Effect::MemberVersion.word() | (u64::from(after.is_some()) << 8);
        hash.words(effect, after.map_or(0, |after| after.version));
        hash.bytes(member.as_bytes());
    }

    /// A job was rejected. The text that says why is not mixed in: another version may word it otherwise.
    pub(super) fn hash_reject(&mut self, index: usize, code: RejectCode) {
        let Some(BatchHash { running: hash, .. }) = &mut self.hash else { return };
        let code = RejectCode::ALL.iter().position(|known| *known == code).map_or(u64::MAX, count);
        hash.words(Effect::Reject.word() | (code << 8), count(index));
    }

    pub(super) fn hash_event(&mut self, event: &BoardEvent) {
        let Some(BatchHash { running: hash, .. }) = &mut self.hash else { return };
        let (effect, board, incarnation, number) = match event {
            BoardEvent::Define { board, incarnation, number, .. } => {
                (Effect::Define, board, incarnation, number)
            }
            BoardEvent::Drop { board, incarnation, number } => (Effect::Drop, board, incarnation, number),
        };
        hash.words(effect.word(), incarnation.0);
        hash.words(u64::from(number.is_some()), number.map_or(0, |number| number.0));
        hash.bytes(board.as_str().as_bytes());
        if let BoardEvent::Define { definition, .. } = event {
            hash.definition(definition);
        }
    }

    /// A job was parked in a line, or waits for another board than before.
    pub(super) fn hash_parked(&mut self, line: u32, place: JobPlace, board: u32) {
        self.hash_place(Effect::Parked, line, place, board);
    }

    /// A parked job was taken out of its line. What came of it follows.
    pub(super) fn hash_unparked(&mut self, line: u32, place: JobPlace) {
        self.hash_place(Effect::Unparked, line, place, 0);
    }

    fn hash_place(&mut self, effect: Effect, line: u32, (sequence, index): JobPlace, board: u32) {
        let Some(BatchHash { running: hash, .. }) = &mut self.hash else { return };
        hash.words(effect.word() | (u64::from(line) << 32), u64::from(board) | (u64::from(index) << 32));
        hash.words(sequence.0, 0);
    }
}
