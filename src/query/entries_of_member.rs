//! The entries of one member on several boards, at one `as_of`.

use std::collections::BTreeSet;

use crate::query::answer::{Listed, ListedProfile, MemberEntry, Standing};
use crate::query::entries::ConsistentAnswer;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::merge::{EntrySource, MergedEntry};
use crate::query::node::Node;
use crate::query::question::{BoardLife, FoundMember, Mark};
use crate::query::read::ShardsRead;
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::ReadError;
use crate::state::TreeId;
use crate::state_lock::Purpose;
use crate::tree::Words;
use crate::types::{AsOf, BoardName, MemberId};
use crate::window::{Instance, Window};
use crate::writer::{RegisteredBoard, Registry};

/// A member's entries.
#[derive(Debug, Clone)]
pub struct EntriesOfMember {
    pub as_of: AsOf,
    /// By the names of the instances read.
    pub entries: Vec<(BoardName, MemberEntry)>,
    /// The member beside its entries, for its profile; only if all boards were asked for.
    pub itself: Option<Listed>,
    /// Boards that were asked for and do not exist, do not have the instance, or do not list the member or
    /// have it beyond their capacity.
    pub not_found: Vec<BoardName>,
    /// Where the other boards of the member begin, if all were asked for and these are not all.
    pub next: Option<TreeId>,
}

/// Which boards of a member are asked for.
#[derive(Debug, Clone)]
pub enum BoardSelection {
    /// These, in this order.
    Named(Vec<BoardName>),
    /// Those that list it, after a place: at most `limit` of them. The home shard looks at a limited
    /// number of boards for a page, so that a page may be shorter than that and yet not the last one.
    All {
        after: Option<TreeId>,
        limit: usize,
        /// Only boards whose names begin with one of these; `None`: all.
        prefixes: Option<Vec<String>>,
    },
}

impl ConsistentAnswer for EntriesOfMember {
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf)) {
        for (_, entry) in &mut self.entries {
            visit(&mut entry.listed, &self.as_of);
        }
        if let Some(itself) = &mut self.itself {
            visit(itself, &self.as_of);
        }
    }
}

/// The member's entries on the boards asked for, by one instance of each or by several. A page of all boards
/// has them in the order in which boards came, and by name within the page. One round trip with the member's
/// home shard, which knows its boards, and one with the others.
///
/// # Arguments
/// `windows`: the instances of each board, in place of the one; empty for all: the current ones of a board
/// that is named, and each one that holds an entry where boards are not named. `hidden`: whether entries are
/// wanted, too, that are kept and not listed: hidden ones, and those beyond a capacity.
pub async fn entries_of_member(
    shards: ReadShards<'_>,
    registry: &Registry,
    id: &MemberId,
    selection: &BoardSelection,
    (instance, windows): (InstanceAsked, Option<&[WindowChoice]>),
    hidden: bool,
) -> Result<EntriesOfMember, ReadError> {
    let instance = instance.not_before(shards.time());
    let (mut missing, mut next): (Vec<(usize, BoardName)>, _) = (Vec::new(), None);
    let mut found: Vec<Found> = Vec::new();
    // Of what is found on boards that are named, which board it is on.
    let mut places = Vec::new();
    let mut itself = None;
    match selection {
        BoardSelection::Named(boards) => {
            let mut known = Vec::with_capacity(boards.len());
            let mut lives = Vec::with_capacity(boards.len());
            for (nth, name) in boards.iter().enumerate() {
                missing.push((nth, name.clone()));
                let Some(registered) = registry.get(name.as_str()) else { continue };
                for choice in choices_of(&registered, instance.choice, windows) {
                    let Ok(instance) = (InstanceAsked { choice, ..instance }).of(&registered.definition)
                    else {
                        continue;
                    };
                    let board = instance.name_on_shards(name);
                    lives.push(BoardLife { board, incarnation: registered.incarnation });
                    known.push((nth, registered.clone()));
                }
            }
            let members = shards.member_on_boards(id, lives.clone(), hidden).await?;
            for (((nth, registered), life), member) in known.into_iter().zip(lives).zip(members) {
                if let Some(member) = member {
                    found.push((registered, life, member));
                    places.push(nth);
                }
            }
        }
        BoardSelection::All { after, limit, prefixes } => {
            let limit = u32::try_from(*limit).unwrap_or(u32::MAX);
            let (after, prefixes) = (after.map(|tree| tree.0), prefixes.as_deref());
            let choice = if windows.is_some() { WindowChoice::Every } else { instance.choice };
            let instance = InstanceAsked { choice, ..instance };
            let page = shards.boards_of_member(id, after, limit, prefixes, instance, hidden).await?;
            next = page.next.map(TreeId);
            let home = shards.home_of(id);
            let profile = page.itself.map(|entry| ListedProfile::replied(&entry.profile, home));
            itself = Listed::without_entry(id, profile.unwrap_or(ListedProfile::NotAsked));
            for (life, member) in page.boards {
                let known = registry.get(life.board.split().0);
                let known = known.filter(|known| known.incarnation == life.incarnation);
                let is_asked = |known: &RegisteredBoard| is_among(known, &life.board, instance, windows);
                found.extend(known.filter(is_asked).map(|known| (known, life, member)));
            }
            found.sort_by(|(_, a, _), (_, b, _)| a.board.cmp(&b.board));
        }
    }
    let summed = sum(shards, id, &found, hidden).await?;
    // A board is found if the member is listed in one of the instances.
    let listed: BTreeSet<usize> =
        summed.iter().zip(&places).filter(|(entry, _)| entry.is_some()).map(|(_, nth)| *nth).collect();
    missing.retain(|(nth, _)| !listed.contains(nth));
    let entries =
        found.iter().zip(summed).filter_map(|((_, life, _), entry)| Some((life.board.clone(), entry?)));
    let entries = entries.collect();
    let not_found = missing.into_iter().map(|(_, name)| name).collect();
    Ok(EntriesOfMember { as_of: shards.as_of(), entries, itself, not_found, next })
}

/// The instances of a board that is named.
fn choices_of(
    known: &RegisteredBoard,
    choice: WindowChoice,
    windows: Option<&[WindowChoice]>,
) -> Vec<WindowChoice> {
    match windows {
        None => vec![choice],
        Some([]) => known.definition.windows.iter().map(|window| WindowChoice::Current(*window)).collect(),
        Some(windows) => windows.to_vec(),
    }
}

/// Whether an instance of a board that is not named is one of those that are asked for.
fn is_among(
    known: &RegisteredBoard,
    name: &BoardName,
    asked: InstanceAsked,
    windows: Option<&[WindowChoice]>,
) -> bool {
    let instance = Instance::of_name_on_shards(name);
    match windows {
        None | Some([]) => true,
        Some(windows) => windows
            .iter()
            .any(|choice| InstanceAsked { choice: *choice, ..asked }.of(&known.definition).ok() == instance),
    }
}

/// What the home shard found of the member on a board.
type Found = (RegisteredBoard, BoardLife, FoundMember);

/// Adds the other shards' counts to what the home shard found. `None` where the entry is beyond the capacity,
/// unless those are wanted, too.
async fn sum(
    shards: ReadShards<'_>,
    id: &MemberId,
    found: &[Found],
    beyond_capacity: bool,
) -> Result<Vec<Option<MemberEntry>>, ReadError> {
    let home = shards.home_of(id);
    let marks = |known: &RegisteredBoard, member: &'_ FoundMember| {
        let words = member.entry.words.as_slice();
        Mark::Score(Words::from_slice(words.get(..known.definition.keys.len()).unwrap_or(words)))
    };
    let boards = found.iter().map(|(known, life, member)| {
        (life.clone(), vec![marks(known, member), Mark::Entry(member.entry.key())])
    });
    let counts = shards.counts(boards.collect(), Some(home)).await?;
    let entries = found.iter().enumerate().map(|(nth, (known, _, member))| {
        let FoundMember { entry, at_score, index, total, is_hidden } = member;
        let (mut better, mut tied, mut total, mut ahead) =
            (at_score.before, at_score.through - at_score.before, *total, *index);
        for (_, boards) in &counts {
            let board = boards.get(nth)?;
            let [score, key] = board.marks.as_slice() else { return None };
            better += score.before;
            tied += score.through - score.before;
            total += board.total;
            ahead += key.before;
        }
        let merged = MergedEntry { shard: home, key: entry.key(), source: EntrySource::Replied(entry) };
        let standing = Standing { better, tied, total };
        let listed = MemberEntry::within_capacity(&known.definition, &merged, ahead, &standing);
        let kept = || MemberEntry::kept(&known.definition, &merged, ahead, &standing);
        let entry = listed.or_else(|| if beyond_capacity { kept() } else { None })?;
        Some(MemberEntry { is_hidden: *is_hidden, ..entry })
    });
    Ok(entries.collect())
}

/// Reads [`entries_of_member`].
pub struct MemberOnBoards {
    pub member: MemberId,
    pub boards: BoardSelection,
    pub instance: InstanceAsked,
    /// In place of `instance`: see [`entries_of_member`].
    pub windows: Option<Vec<WindowChoice>>,
    /// Whether entries that are hidden or beyond a capacity are wanted, too, as they would stand if they were
    /// listed.
    pub hidden: bool,
}

impl ShardsRead for MemberOnBoards {
    type Answer = EntriesOfMember;

    fn is_about(&self, board: &BoardName) -> bool {
        match &self.boards {
            BoardSelection::Named(boards) => boards.contains(board),
            BoardSelection::All { .. } => true,
        }
    }

    /// The score and the place of its entry on each board, of which most members are on few.
    fn lookups_on(&self, node: &Node) -> usize {
        let boards = match &self.boards {
            BoardSelection::Named(boards) => {
                boards.len() * self.windows.as_ref().map_or(1, |windows| windows.len().max(Window::ALL.len()))
            }
            BoardSelection::All { after, limit, .. } => {
                let Some(home) = node.owned(node.home_of(&self.member)) else { return 0 };
                let shard = home.state.read(Purpose::Read);
                let handle = shard.members.get(self.member.as_bytes());
                handle.map_or(0, |handle| shard.members.trees_after(handle, *after).take(*limit).count())
            }
        };
        2 * boards
    }

    async fn read<'r>(
        &'r self,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> Result<Self::Answer, ReadError> {
        let instances = (self.instance, self.windows.as_deref());
        entries_of_member(shards, registry, &self.member, &self.boards, instances, self.hidden).await
    }
}
