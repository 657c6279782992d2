//! What is kept of members whatever their entries are, as the batch sees it: bans, and versions that hold on
//! every board.
//!
//! Knows: the shard's, overlaid with the batch's own changes, and which versions are forgotten. Must not
//! know: what a job does with them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::state::{
    BanChange, BanScope, MEMBER_VERSIONS_MAX, MemberBans, MemberVersion, MemberVersionAge,
    MemberVersionChange, no_room,
};
use crate::types::{BoardName, MemberId, Sequence};
use crate::writer::plan::Batch;

/// What the batch has changed.
#[derive(Default)]
pub(super) struct MemberRecords {
    /// The bans of the members that the batch's jobs have hidden or shown.
    bans: BTreeMap<MemberId, MemberBans>,
    pub(super) ban_changes: Vec<BanChange>,
    /// Bans that there are more than on the shard, by where they hold.
    more_bans: BTreeMap<BanScope, isize>,
    /// Versions that the batch has set or forgotten.
    versions: BTreeMap<MemberId, Option<MemberVersion>>,
    pub(super) version_changes: Vec<MemberVersionChange>,
    /// Versions that there are more than on the shard.
    more_versions: isize,
    /// The shard's versions up to this one are dealt with.
    forgotten: Option<MemberVersionAge>,
}

impl Batch<'_> {
    /// The bans of a member; `None`: it has none.
    pub(super) fn bans_of(&self, member: &MemberId) -> Option<&MemberBans> {
        // Usually both are empty.
        if !self.member_records.bans.is_empty()
            && let Some(bans) = self.member_records.bans.get(member)
        {
            return Some(bans);
        }
        let bans = self.shard.bans();
        if bans.is_empty() { None } else { bans.of_member(member) }
    }

    /// Why another ban has no room on the shard; `None`: it has.
    pub(super) fn no_room_for_ban(&self, scope: &BanScope) -> Option<String> {
        let (bans, more) = (self.shard.bans(), &self.member_records.more_bans);
        let there = |scope| bans.count_of(scope).saturating_add_signed(more.get(scope).copied().unwrap_or(0));
        let all = bans.len().saturating_add_signed(more.values().sum());
        no_room(scope, there(scope), all.saturating_sub(there(&None)))
    }

    /// Whether a member is hidden on a board.
    ///
    /// # Arguments
    /// `name`: of the board, or of an instance of one.
    pub(super) fn is_hidden(&self, member: &MemberId, name: &BoardName) -> bool {
        self.bans_of(member).is_some_and(|bans| {
            let board = if name.is_instance() { Cow::Owned(name.board()) } else { Cow::Borrowed(name) };
            bans.hide(&board)
        })
    }

    /// Begins a ban, gives it another version, or ends it.
    pub(super) fn put_ban(&mut self, change: BanChange) {
        self.hash_ban(&change);
        let mut bans = self.bans_of(&change.member).cloned().unwrap_or_default();
        let BanChange { scope, member, after } = &change;
        let before = bans.get(scope);
        bans.set(scope, *after);
        let records = &mut self.member_records;
        let more = isize::from(after.is_some()) - isize::from(before.is_some());
        *records.more_bans.entry(scope.clone()).or_default() += more;
        records.bans.insert(member.clone(), bans);
        records.ban_changes.push(change.clone());
        self.step.bans.push(change);
    }

    /// The version of a member that a job on a board must be greater than, whatever the board knows. A parked
    /// job was compared with it when it came: those that came later are none of its.
    pub(super) fn version_everywhere(&self, member: &MemberId) -> Option<u64> {
        if self.replaying_parked { None } else { self.member_version(member) }
    }

    /// The version of a member that holds on every board.
    pub(super) fn member_version(&self, member: &MemberId) -> Option<u64> {
        let versions = self.shard.member_versions();
        let known = match self.member_records.versions.get(member) {
            Some(of_batch) => *of_batch,
            None if versions.is_empty() => None,
            None => versions.get(member),
        };
        known.map(|known| known.version)
    }

    /// Remembers the version of a member on every board, and forgets the oldest one if there are too many.
    pub(super) fn set_member_version(&mut self, member: &MemberId, version: u64, sequence: Sequence) {
        if self.member_version(member).is_none() {
            let held = self.shard.member_versions().len();
            if held.saturating_add_signed(self.member_records.more_versions) >= MEMBER_VERSIONS_MAX
                && let Some(oldest) = self.oldest_member_version()
            {
                self.forget_profile_version(&oldest, sequence);
                self.put_member_version(MemberVersionChange { member: oldest, after: None });
                self.member_records.more_versions -= 1;
            }
            self.member_records.more_versions += 1;
        }
        let after = Some(MemberVersion { version, sequence });
        self.put_member_version(MemberVersionChange { member: member.clone(), after });
    }

    fn put_member_version(&mut self, change: MemberVersionChange) {
        self.hash_member_version(&change);
        let records = &mut self.member_records;
        records.versions.insert(change.member.clone(), change.after);
        records.version_changes.push(change.clone());
        self.step.versions.push(change);
    }

    /// Whose version is the oldest: one of the shard's, which are older than those of the batch.
    fn oldest_member_version(&mut self) -> Option<MemberId> {
        let (records, versions) = (&self.member_records, self.shard.member_versions());
        let of_shard = versions
            .oldest_after(records.forgotten.as_ref())
            .find(|(_, member)| !records.versions.contains_key(member))
            .cloned();
        if let Some(oldest) = of_shard {
            let member = oldest.1.clone();
            self.member_records.forgotten = Some(oldest);
            return Some(member);
        }
        let of_batch =
            records.versions.iter().filter_map(|(member, known)| Some(((*known)?.sequence, member)));
        of_batch.min().map(|(_, member)| member.clone())
    }
}
