//! Plans what becomes of a member's profile. It is no entry of a tree: it is a record on disk, which the
//! batch reads when a job names it, and writes with the rest of the commit.
//!
//! Knows: versions of profiles, which are ordered apart from those of the member's entries. Must not know:
//! what is in a profile.

use crate::job::{Job, Reject, RejectCode};
use crate::storage::codec::ProfileRecord;
use crate::types::{MemberId, Sequence};
use crate::writer::plan::Batch;

/// A profile as the batch sees it.
pub(super) struct BatchProfile {
    pub(super) record: Option<ProfileRecord>,
    /// Whether the batch has changed the record.
    pub(super) is_changed: bool,
}

/// What a job makes of a profile.
pub(super) struct ProfileDecision {
    before: Option<ProfileRecord>,
    json: Option<String>,
    /// The version to remember.
    version: Option<u64>,
}

impl Batch<'_> {
    /// Decides a job that brings a profile, or takes it away: `None`.
    pub(super) fn decide_profile(
        &mut self,
        job: &Job,
        json: Option<&str>,
    ) -> Result<ProfileDecision, Reject> {
        let before = self.profile(&job.member);
        let stored = before.as_ref().and_then(|record| record.version);
        if let (Some(version), Some(stored)) = (job.version, stored)
            && version <= stored
        {
            let detail =
                format!("profile: version {version} is not greater than the stored version, {stored}");
            return Err(Reject::new(RejectCode::StaleVersion, detail));
        }
        Ok(ProfileDecision { before, json: json.map(str::to_owned), version: job.version.or(stored) })
    }

    /// Decides a removal from every board; `None` if the member has no profile and never had one, and there
    /// is no version to remember.
    pub(super) fn decide_profile_removal(&mut self, job: &Job) -> Result<Option<ProfileDecision>, Reject> {
        if self.profile(&job.member).is_none() && job.version.is_none() {
            return Ok(None);
        }
        let decided = self.decide_profile(job, None)?;
        if self.removes_early(job) {
            let version = decided.before.as_ref().and_then(|record| record.version);
            return Ok(Some(ProfileDecision { version, ..decided }));
        }
        Ok(Some(decided))
    }

    /// Records a decision in the plan.
    pub(super) fn record_profile(
        &mut self,
        member: &MemberId,
        ProfileDecision { before, json, version }: ProfileDecision,
        sequence: Sequence,
    ) {
        let held = before.as_ref().and_then(|record| record.json.as_deref());
        let changed = held != json.as_deref();
        // A profile that stays as it is belongs to the earlier moments, too.
        let sequence = before.as_ref().filter(|_| !changed).map_or(sequence.0, |record| record.sequence);
        // A remembered version keeps a late retry from bringing the profile back.
        let is_kept = json.is_some() || version.is_some();
        let after = is_kept.then_some(ProfileRecord { sequence, version, json });
        self.hash_profile(member, (before.as_ref(), after.as_ref()));
        self.job_ids.job_changed |= changed;
        self.outcome_profile = Some(changed);
        if let Some(profile) = self.profiles.get_mut(member) {
            profile.is_changed |= profile.record != after;
            profile.record = after;
        }
    }

    /// Forgets the version of a profile that is gone.
    pub(super) fn forget_profile_version(&mut self, member: &MemberId, sequence: Sequence) {
        let before = self.profile(member);
        if before.as_ref().is_some_and(|record| record.json.is_none()) {
            let told = self.outcome_profile;
            self.record_profile(member, ProfileDecision { before, json: None, version: None }, sequence);
            self.outcome_profile = told;
        }
    }

    /// The profile of a member: what the batch has made of it, or the record on disk. If that cannot be read,
    /// the plan is not committed.
    fn profile(&mut self, member: &MemberId) -> Option<ProfileRecord> {
        if let Some(known) = self.profiles.get(member) {
            return known.record.clone();
        }
        let planner = self.planner;
        let record = self.shard.unlocked(|| (planner.read_profile)(member)).unwrap_or_else(|reason| {
            self.unreadable = Some(reason);
            None
        });
        let known = BatchProfile { record: record.clone(), is_changed: false };
        self.profiles.insert(member.clone(), known);
        record
    }
}
