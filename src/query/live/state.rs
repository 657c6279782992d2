//! What one view shows at one moment, and how two of them differ.

use std::sync::Arc;

use crate::query::answer::{Listed, ListedMetadata};
use crate::state::Incarnation;
use crate::types::{AsOf, MemberId};
use crate::window::Instance;

/// What one view shows at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveState {
    /// A hash of all that is shown, but for `as_of`: equal on every node that shows the same.
    pub id: u64,
    /// Which of the board's lives it is.
    pub incarnation: Incarnation,
    pub instance: Instance,
    pub total: u64,
    /// Best first.
    pub entries: Vec<Arc<Listed>>,
    /// One for each member that is watched, in the order asked for; `None` if it is not listed.
    pub members: Vec<Option<Arc<Listed>>>,
    /// Whether some shard does not apply what is published, or does not answer at all.
    pub is_stale: bool,
    pub as_of: AsOf,
}

/// How a state differs from an earlier one of the same instance and the same life of the board.
#[derive(Debug)]
pub struct LiveChange<'a> {
    /// Entries of the top that were not in it before, or were otherwise. Best first.
    pub entries: Vec<&'a Listed>,
    /// Members that were in the top and are not any more.
    pub left: Vec<&'a str>,
    /// Watched members whose entries are otherwise than before.
    pub members: Vec<&'a Listed>,
    /// Indexes of the watched members that were listed and are not any more.
    pub not_found: Vec<usize>,
}

impl LiveState {
    /// The same with its id.
    pub(super) fn identified(mut self) -> Self {
        let mut hash = Fnv::new();
        hash.number(self.incarnation.0);
        hash.bytes(self.instance.to_string().as_bytes());
        hash.number(self.total);
        hash.number(u64::from(self.is_stale));
        for listed in &self.entries {
            hash.listed(listed);
        }
        for member in &self.members {
            match member {
                Some(listed) => hash.listed(listed),
                None => hash.number(0),
            }
        }
        self.id = hash.0;
        self
    }

    /// Whether the state shows the same instance in the same life of the board.
    pub fn is_of_same(&self, other: &Self) -> bool {
        (self.incarnation, self.instance) == (other.incarnation, other.instance)
    }

    /// About how much memory it takes that an earlier state does not share.
    pub(super) fn bytes_beside(&self, earlier: &Self) -> usize {
        let bytes = |listed: &Listed| {
            let metadata = match &listed.metadata {
                ListedMetadata::Json(json) => json.len(),
                ListedMetadata::None | ListedMetadata::OnDisk(..) | ListedMetadata::Unreadable => 0,
            };
            size_of::<Listed>() + listed.member.len() + metadata
        };
        let is_shared = |now: &Arc<Listed>, before: Option<&Arc<Listed>>| {
            before.is_some_and(|before| Arc::ptr_eq(now, before))
        };
        let entries = self.entries.iter().enumerate();
        let entries = entries.filter(|(index, now)| !is_shared(now, earlier.entries.get(*index)));
        let members = self.members.iter().enumerate().filter_map(|(index, now)| Some((index, now.as_ref()?)));
        let members = members
            .filter(|(index, now)| !is_shared(now, earlier.members.get(*index).and_then(Option::as_ref)));
        let lists = (self.entries.len() + self.members.len()) * size_of::<Arc<Listed>>();
        lists + size_of::<Self>() + entries.chain(members).map(|(_, listed)| bytes(listed)).sum::<usize>()
    }

    /// Whether it shows the same, apart from what it is exact at.
    pub(super) fn shows_same(&self, other: &Self) -> bool {
        self.id == other.id
            && self.is_of_same(other)
            && (self.total, self.is_stale) == (other.total, other.is_stale)
            && self.entries == other.entries
            && self.members == other.members
    }

    /// Whether a change says all that is otherwise than in an earlier state: whether [`Self::since`] has one.
    pub(super) fn can_follow(&self, earlier: &Self) -> bool {
        self.is_of_same(earlier) && self.members.len() == earlier.members.len()
    }

    /// What has changed since an earlier state. `None`: it is of another instance, or of another life of the
    /// board, so that all of it is new.
    pub fn since<'a>(&'a self, earlier: &'a Self) -> Option<LiveChange<'a>> {
        if !self.can_follow(earlier) {
            return None;
        }
        // Most entries stay where they are.
        let was = |index: usize, listed: &Arc<Listed>| {
            earlier.entries.get(index) == Some(listed) || earlier.entries.contains(listed)
        };
        let entries = self.entries.iter().enumerate().filter(|(index, listed)| !was(*index, listed));
        let entries = entries.map(|(_, listed)| &**listed).collect();
        let is_in = |member: &str| self.entries.iter().any(|listed| &*listed.member == member);
        let left = earlier.entries.iter().map(|listed| &*listed.member).filter(|member| !is_in(member));
        let pairs = || self.members.iter().zip(&earlier.members);
        let members = pairs().filter(|(now, before)| now != before).filter_map(|(now, _)| now.as_deref());
        let gone = |(now, before): (&Option<_>, &Option<_>)| now.is_none() && before.is_some();
        let not_found = pairs().enumerate().filter(|(_, pair)| gone(*pair)).map(|(index, _)| index);
        Some(LiveChange {
            entries,
            left: left.collect(),
            members: members.collect(),
            not_found: not_found.collect(),
        })
    }
}

/// The members of a question, each once.
pub(super) fn each_once(members: Vec<MemberId>) -> Vec<MemberId> {
    let mut named = std::collections::HashSet::new();
    let mut members = members;
    members.retain(|member| named.insert(member.clone()));
    members
}

/// FNV-1a of 64 bits, because an id must be the same on every node and of every version.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // The length, so that two texts are not taken for two others.
        let length = crate::types::count(bytes.len()).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn listed(&mut self, listed: &Listed) {
        self.bytes(listed.member.as_bytes());
        for key in listed.score.keys() {
            self.bytes(&key.to_le_bytes());
        }
        self.bytes(&listed.error.unwrap_or_default().to_le_bytes());
        self.number(listed.better);
        self.number(listed.position);
        self.bytes(&listed.updated_at.as_micros().to_le_bytes());
        match &listed.metadata {
            ListedMetadata::Json(json) => self.bytes(json.as_bytes()),
            ListedMetadata::None => self.bytes(b"{}"),
            ListedMetadata::OnDisk(..) | ListedMetadata::Unreadable => self.bytes(b"null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::answer::{ListedMovement, ListedProfile};
    use crate::types::{Score, Timestamp};

    fn entry(member: &str, score: i64, position: u64) -> Arc<Listed> {
        Arc::new(Listed {
            member: member.into(),
            score: Score::new(&[score]).expect("one key"),
            error: None,
            better: position - 1,
            position,
            updated_at: Timestamp::default(),
            reached_at: None,
            version: None,
            metadata: ListedMetadata::None,
            profile: ListedProfile::NotAsked,
            movement: ListedMovement::NotAsked,
            columns: Box::default(),
        })
    }

    fn state(entries: &[(&str, i64)], members: &[Option<(&str, i64, u64)>]) -> LiveState {
        let listed = |(index, (member, score)): (u64, &(&str, i64))| entry(member, *score, index + 1);
        LiveState {
            id: 0,
            incarnation: Incarnation(7),
            instance: Instance::ALL,
            total: 9,
            entries: (0..).zip(entries).map(listed).collect(),
            members: members
                .iter()
                .map(|member| member.map(|(id, score, at)| entry(id, score, at)))
                .collect(),
            is_stale: false,
            as_of: AsOf::default(),
        }
        .identified()
    }

    #[test]
    fn a_change_names_what_is_new_what_is_otherwise_and_what_has_left() {
        let before = state(&[("a", 9), ("b", 8), ("c", 7)], &[Some(("z", 1, 9)), Some(("y", 1, 8)), None]);
        let now = state(&[("a", 9), ("d", 8), ("b", 7)], &[Some(("z", 2, 7)), None, None]);
        assert_ne!(before.id, now.id);
        let change = now.since(&before).expect("they are of the same instance");
        let names =
            |listed: &[&Listed]| listed.iter().map(|each| each.member.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&change.entries), ["d", "b"]);
        assert_eq!(change.left, ["c"]);
        assert_eq!(names(&change.members), ["z"]);
        assert_eq!(change.not_found, [1]);
        let none = now.since(&now).expect("it is the same");
        assert!(none.entries.is_empty() && none.left.is_empty() && none.members.is_empty());
    }

    #[test]
    fn another_life_of_the_board_is_another_state() {
        let before = state(&[("a", 9)], &[]);
        let cleared = LiveState { incarnation: Incarnation(8), ..before.clone() }.identified();
        assert!(cleared.since(&before).is_none() && !cleared.can_follow(&before));
        assert_ne!(cleared.id, before.id);
    }

    #[test]
    fn an_id_is_of_what_is_shown_and_not_of_when() {
        let one = state(&[("a", 9)], &[]);
        let as_of = AsOf::parse("0:7").expect("a token");
        assert_eq!(LiveState { as_of, ..one.clone() }.identified().id, one.id);
        assert_ne!(LiveState { total: 10, ..one.clone() }.identified().id, one.id);
        assert_ne!(LiveState { is_stale: true, ..one.clone() }.identified().id, one.id);
    }
}
