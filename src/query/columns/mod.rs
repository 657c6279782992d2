//! Entries with their members' entries on other boards: the table that games show, sorted by one of its
//! columns.
//!
//! Knows: that a member's entries of all boards are on the same shard, so that a shard tells them together;
//! and that a rank is a sum over shards, so that the score has to be known before it is counted at. Must not
//! know: which read finds the entries.
//!
//! Over shards in memory all is found under the same hold. Remote shards tell words and counts with each
//! reply, so with the last one as well, of which the answer is. The marks are those of the answer before: it
//! is read again until it shows what was counted at.

pub mod marks;

use std::collections::HashMap;
use std::sync::Arc;

use crate::board::Definition;
use crate::query::answer::{ColumnEntry, Listed, ListedColumn};
use crate::query::columns::marks::{BoardMarks, ColumnMarks, ColumnsTold};
use crate::query::entries::VisitEntries;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::node::{Node, View};
use crate::query::question::{self, BoardLife};
use crate::query::read::{Answer, BoardRead, NoBoard, OfBoard, ShardsRead};
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::{ReadError, RemoteShards};
use crate::query::shard_board::ShardBoard;
use crate::tree::Words;
use crate::types::{BoardName, MemberId, Timestamp, shard_of};
use crate::window::Instance;
use crate::writer::Registry;

/// How often a read is repeated because members of its entries have changed on the other boards meanwhile, or
/// other members have come.
const ATTEMPTS: u32 = 16;

/// Which boards the entries of an answer are wanted of, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnsAsked {
    pub boards: Vec<BoardName>,
    /// Whether ranks are wanted, too.
    pub ranks: bool,
    /// Which instance of each board that has the window; the others are read by their default window.
    pub choice: WindowChoice,
    /// The most entries that the answer has.
    pub entries: usize,
    /// Boards whose entries have to be counted.
    pub counted: usize,
}

/// A read of a board's entries with their members' entries on other boards, if those are asked for.
pub struct WithColumns<R> {
    pub read: OfBoard<R>,
    pub columns: Option<ColumnsAsked>,
}

impl<R: BoardRead<Answer: VisitEntries>> ShardsRead for WithColumns<R> {
    type Answer = Result<Answer<R::Answer>, NoBoard>;

    fn is_about(&self, board: &BoardName) -> bool {
        self.read.is_about(board) || self.columns.as_ref().is_some_and(|asked| asked.boards.contains(board))
    }

    fn lookups_on(&self, node: &Node) -> usize {
        let of_columns = self.columns.as_ref().map_or(0, |asked| {
            // Each member is on one of the shards, and the counts are of all of them.
            let words = asked.entries.saturating_mul(asked.boards.len());
            words.div_ceil(node.shards.len().max(1)) + asked.entries.saturating_mul(asked.counted)
        });
        self.read.lookups_on(node).saturating_add(of_columns)
    }

    async fn read<'r>(
        &'r self,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> Result<Self::Answer, ReadError> {
        match &self.columns {
            None => self.read.read(shards, registry).await,
            // Boxed: the future of each read would have room for it.
            Some(asked) => Box::pin(self.read_with(asked, shards, registry)).await,
        }
    }
}

impl<R: BoardRead<Answer: VisitEntries>> WithColumns<R> {
    async fn read_with<'r>(
        &'r self,
        asked: &'r ColumnsAsked,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> Result<<Self as ShardsRead>::Answer, ReadError> {
        if registry.get(self.read.board.as_str()).is_none() {
            return Ok(Err(NoBoard::Unknown));
        }
        // After shards in memory are locked, as the board that is read.
        let columns = match Columns::of(asked, registry, self.read.instance.now.max(shards.time())) {
            Ok(columns) => columns,
            Err(unknown) => return Ok(Err(NoBoard::UnknownColumn(unknown))),
        };
        match shards {
            ReadShards::InMemory(view) => {
                let mut answer = self.read.read(shards, registry).await?;
                if let Ok(answer) = &mut answer {
                    columns.fill_in_memory(view, &mut answer.body);
                    answer.columns = columns.windows();
                }
                Ok(answer)
            }
            ReadShards::Remote(remote) => self.read_remote(&columns, remote, registry).await,
        }
    }

    async fn read_remote<'r>(
        &'r self,
        columns: &Columns,
        remote: &'r RemoteShards<'r>,
        registry: &'r Registry,
    ) -> Result<<Self as ShardsRead>::Answer, ReadError> {
        let mut marks = Arc::new(columns.no_marks());
        for _ in 0..ATTEMPTS {
            remote.ask_beside(Arc::clone(&marks));
            let mut answer = match self.read.read(ReadShards::Remote(remote), registry).await? {
                Ok(answer) => answer,
                Err(why) => return Ok(Err(why)),
            };
            let told = remote.told_beside();
            match columns.fill(&marks, &told, &mut answer.body) {
                Ok(()) => {
                    answer.columns = columns.windows();
                    return Ok(Ok(answer));
                }
                Err(shown) => marks = Arc::new(shown),
            }
        }
        Err(ReadError::KeptChanging(ATTEMPTS))
    }
}

/// The other boards, as the registry has them.
struct Columns {
    /// In the order asked for: its name, and which of `read` it is; `None` if it has no such instance now.
    asked: Vec<(BoardName, Option<usize>)>,
    read: Vec<Column>,
}

struct Column {
    instance: Instance,
    definition: Arc<Definition>,
    life: BoardLife,
    ranks: bool,
}

/// What a column's entry is worked out from: the words, and whose they are.
type Row<'t> = &'t [Option<Words>];

impl Columns {
    /// # Errors
    /// The name of a board that there is not.
    fn of(asked: &ColumnsAsked, registry: &Registry, now: Timestamp) -> Result<Self, BoardName> {
        let mut columns = Self { asked: Vec::with_capacity(asked.boards.len()), read: Vec::new() };
        for name in &asked.boards {
            let Some(known) = registry.get(name.as_str()) else { return Err(name.clone()) };
            let has_window = match asked.choice {
                WindowChoice::Current(window) => known.definition.windows.contains(&window),
                WindowChoice::Named(instance) => known.definition.windows.contains(&instance.window),
                WindowChoice::Default | WindowChoice::Every => false,
            };
            let choice = if has_window { asked.choice } else { WindowChoice::Default };
            let place = InstanceAsked { choice, now }.of(&known.definition).ok().map(|instance| {
                let board = instance.name_on_shards(name);
                columns.read.push(Column {
                    instance,
                    life: BoardLife { board, incarnation: known.incarnation },
                    definition: Arc::clone(&known.definition),
                    ranks: asked.ranks,
                });
                columns.read.len() - 1
            });
            columns.asked.push((name.clone(), place));
        }
        Ok(columns)
    }

    /// Which instance of each board was read.
    fn windows(&self) -> Vec<(BoardName, Option<Instance>)> {
        let instance = |place: Option<usize>| Some(self.read.get(place?)?.instance);
        self.asked.iter().map(|(name, place)| (name.clone(), instance(*place))).collect()
    }

    fn no_marks(&self) -> ColumnMarks {
        let boards = self.read.iter().map(|column| BoardMarks {
            life: column.life.clone(),
            keys: column.definition.keys.len(),
            ranks: column.ranks,
            places: column.definition.capacity.is_some(),
            entries: Vec::new(),
        });
        ColumnMarks { boards: boards.collect() }
    }

    fn fill_in_memory(&self, view: &View<'_>, answer: &mut impl VisitEntries) {
        let shard_count = u16::try_from(view.shards.len()).unwrap_or(u16::MAX);
        let mut members: Vec<Vec<Box<[u8]>>> = vec![Vec::new(); view.shards.len()];
        answer.each_entry(&mut |listed| {
            let home = MemberId::new(&*listed.member).ok().map(|member| shard_of(&member, shard_count));
            if let Some(of_shard) = home.and_then(|home| members.get_mut(home.index())) {
                of_shard.push(listed.member.as_bytes().into());
            }
        });
        let lives: Vec<&BoardLife> = self.read.iter().map(|column| &column.life).collect();
        let mut told: Vec<Option<Arc<ColumnsTold>>> = Vec::with_capacity(members.len());
        for (shard, members) in view.shards.iter().zip(members) {
            let words = question::words_on_boards(shard, &lives, &members);
            told.push(Some(Arc::new(ColumnsTold::of(members, &words, lives.len()))));
        }
        let Err(marks) = self.fill(&self.no_marks(), &told, answer) else { return };
        for (shard, told) in view.shards.iter().zip(&mut told) {
            let Some(told) = told.as_mut().and_then(Arc::get_mut) else { continue };
            let counts = |board: &BoardMarks| {
                question::counts_of(&ShardBoard::of_life(shard, &board.life), &board.marks())
            };
            told.counts = marks.boards.iter().map(counts).collect();
        }
        // Nothing changes meanwhile, so these are the marks of all that is shown.
        let _ = self.fill(&marks, &told, answer);
    }

    /// Gives the entries of an answer their members' entries on the other boards.
    ///
    /// # Arguments
    /// `marks`: what was counted at. `told`: by each shard with its last reply; `None` if it did not reply.
    ///
    /// # Errors
    /// When the answer shows what was not counted at: the marks of all that it shows.
    fn fill(
        &self,
        marks: &ColumnMarks,
        told: &[Option<Arc<ColumnsTold>>],
        answer: &mut impl VisitEntries,
    ) -> Result<(), ColumnMarks> {
        let shard_count = u16::try_from(told.len()).unwrap_or(u16::MAX);
        let counted_at: Vec<HashMap<&str, (usize, Words)>> = marks.boards.iter().map(places_of).collect();
        let (mut shown, mut is_whole) = (self.no_marks(), true);
        let mut rows: Vec<Box<[ListedColumn]>> = Vec::new();
        answer.each_entry(&mut |listed| {
            let home = MemberId::new(&*listed.member).ok().map(|member| shard_of(&member, shard_count));
            let told_home = home.and_then(|home| told.get(home.index())?.as_deref());
            let row = told_home.and_then(|told| told.words.get(listed.member.as_bytes()));
            // A shard tells of each entry that it replies; another reply of it came later.
            is_whole &= row.is_some();
            let row: Row<'_> = row.map(|row| &**row).unwrap_or_default();
            let mut columns = Vec::with_capacity(self.read.len());
            for (nth, (column, words)) in self.read.iter().zip(row).enumerate() {
                let Some(words) = words else {
                    columns.push(None);
                    continue;
                };
                let mut counts = (0, 0);
                if let Some(board) = shown.boards.get_mut(nth).filter(|board| board.ranks || board.places) {
                    let at = counted_at.get(nth).and_then(|places| places.get(&*listed.member));
                    match at.filter(|(_, counted)| counted == words) {
                        Some((place, _)) => {
                            let of_shards = told.iter().flatten().filter_map(|told| told.counts.get(nth));
                            counts = board.counted(*place, of_shards);
                        }
                        None => is_whole = false,
                    }
                    board.entries.push((listed.member.clone(), *words));
                }
                columns.push(column.entry(words, counts));
            }
            rows.push(self.row(&columns));
        });
        if !is_whole {
            return Err(shown);
        }
        let mut rows = rows.into_iter();
        answer.each_entry(&mut |listed: &mut Listed| listed.columns = rows.next().unwrap_or_default());
        Ok(())
    }

    /// Puts entries of the boards that are read at their places.
    fn row(&self, entries: &[Option<ColumnEntry>]) -> Box<[ListedColumn]> {
        let entry = |place: Option<usize>| entries.get(place?)?.clone();
        self.asked
            .iter()
            .map(|(name, place)| ListedColumn { board: name.clone(), entry: entry(*place) })
            .collect()
    }
}

impl Column {
    /// `None` if it is beyond the capacity.
    fn entry(&self, words: &Words, (better, before): (u64, u64)) -> Option<ColumnEntry> {
        (self.definition.capacity_after(before) > 0).then(|| ColumnEntry {
            score: self.definition.score_of(words.as_slice()),
            error: self.definition.error_of(words.as_slice()),
            rank: self.ranks.then_some(better + 1),
        })
    }
}

/// Where each member is among the entries that were counted at.
fn places_of(board: &BoardMarks) -> HashMap<&str, (usize, Words)> {
    board.entries.iter().enumerate().map(|(nth, (member, words))| (&**member, (nth, *words))).collect()
}
