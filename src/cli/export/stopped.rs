//! A stopped service's boards, from its data directory: loaded as a start would, and read as a request would.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::cli::Failure;
use crate::cli::board_line::ExportedInstance;
use crate::cli::export::remote::NoInstance;
use crate::cli::export::row::{Hidden, Page, Row};
use crate::cli::offline::Offline;
use crate::http::{definition_json, write_score};
use crate::query::{
    End, HiddenEntry, InstanceAsked, Listed, ListedMetadata, PageCursor, ReadShards, Start, View,
    WindowChoice, hidden_entries, run_in_memory, top,
};
use crate::state::{Ban, BansAsked, Shard, TreeId};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::{Store, TreesFrom, recover};
use crate::types::{AsOf, BoardName, MemberId, Score, ShardId, shard_of};
use crate::window::Instance;
use crate::writer::{RegisteredBoard, Registry};

const PAGE_ENTRIES: usize = 1_000;
/// Boards that a message names.
const BOARDS_NAMED: usize = 20;

pub struct Stopped {
    stores: Vec<Store>,
    shards: Vec<StateLock>,
    registry: Registry,
    window: WindowChoice,
    profiles: bool,
}

impl Stopped {
    /// Loads all shards.
    ///
    /// # Arguments
    /// - `window`: which instance of boards is read. The current one is that of the last message.
    /// - `profiles`: whether entries have their members' profiles.
    ///
    /// # Errors
    /// When they cannot be loaded.
    pub fn open(offline: &Offline, window: WindowChoice, profiles: bool) -> Result<Self, Failure> {
        let mut shards = Vec::new();
        let stores = offline.open_all()?;
        let registry = Registry::new(false);
        for store in &stores {
            let progress = crate::cli::progress::Progress::new(format!("shard {}", store.shard()));
            let recovered =
                recover(store, TreesFrom::Pages, &|what, done, total| progress.note(what, done, total))?;
            progress.finish();
            registry.register_boards_of(&recovered.shard);
            shards.push(StateLock::new(recovered.shard));
        }
        for shard in &shards {
            for (name, incarnation) in shard.read(Purpose::Start).dropped().iter() {
                registry.forget(name, incarnation);
            }
        }
        Ok(Self { stores, shards, registry, window, profiles })
    }

    /// In the order of their names.
    pub fn boards(&self) -> Vec<BoardName> {
        let named = self.registry.all().into_iter().map(|(name, _)| name);
        named.filter(|name| !name.is_service()).collect()
    }

    fn known(&self, board: &BoardName) -> Result<RegisteredBoard, Failure> {
        self.registry.get(board.as_str()).ok_or_else(|| {
            let all = self.boards();
            let named: Vec<_> = all.iter().take(BOARDS_NAMED).map(BoardName::as_str).collect();
            let more = all.len().saturating_sub(named.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("there is no board {board}; the boards are {}{more}", named.join(", ")).into()
        })
    }

    /// What the board is, as JSON, and whether its default window has an instance.
    ///
    /// # Errors
    /// When there is no such board.
    pub fn definition(&self, board: &BoardName) -> Result<(String, bool), Failure> {
        let definition = self.known(board)?.definition;
        let now = ReadShards::InMemory(&self.view()).time();
        let is_begun = InstanceAsked { choice: WindowChoice::Default, now }.of(&definition).is_ok();
        Ok((definition_json(&definition), is_begun))
    }

    /// From when to when an instance of the board is.
    ///
    /// # Errors
    /// When there is no such board or instance.
    pub fn instance(&self, board: &BoardName, instance: Instance) -> Result<ExportedInstance, Failure> {
        let span = self.known(board)?.definition.calendar().span(instance);
        let span = span.ok_or_else(|| format!("the board {board} has no instance {instance}"))?;
        Ok(ExportedInstance { instance, span })
    }

    /// Who is hidden on the board, by member, and the entries of its instance that are.
    ///
    /// # Errors
    /// When there is no such board or instance, or metadata or profiles cannot be read.
    pub fn hidden(&self, name: &BoardName) -> Result<Vec<Hidden>, Failure> {
        let known = self.known(name)?;
        let view = self.view();
        let shards = ReadShards::InMemory(&view);
        let (instance, as_of) = (self.read_instance(name, &known, shards)?, shards.as_of());
        let mut rows = BTreeMap::new();
        for entry in hidden_entries(&view, name, instance, &known) {
            rows.insert(entry.member.clone(), self.hidden_row(&entry, &as_of)?);
        }
        let of_shard = |shard: &Shard| shard.bans().list(BansAsked::On(name), None, usize::MAX).0;
        let mut bans: Vec<_> = view.shards.iter().flat_map(|shard| of_shard(shard)).collect();
        bans.sort_by(|one, other| (&one.member, &one.scope).cmp(&(&other.member, &other.scope)));
        // One may be hidden on all boards, and on this one too: the entry is told once.
        let hidden = bans.into_iter().map(|Ban { member, scope, .. }| Hidden {
            entry: rows.remove(member.as_str()),
            member: member.as_str().to_owned(),
            is_everywhere: scope.is_none(),
        });
        Ok(hidden.collect())
    }

    fn hidden_row(&self, entry: &HiddenEntry, as_of: &AsOf) -> Result<Row<'static>, Failure> {
        let meta = match entry.metadata {
            Some((shard, tree)) => self.metadata(shard, tree, &entry.member, as_of)?.into(),
            None => "{}".into(),
        };
        Ok(Row {
            profile: self.profile_if_asked(&entry.member)?,
            member: entry.member.to_string().into(),
            score: score(&entry.score).into(),
            rank: "".into(),
            position: "".into(),
            updated_at: entry.updated_at.to_string().into(),
            reached_at: entry.reached_at.map(|at| at.to_string().into()),
            version: entry.version.map(|version| version.to_string().into()),
            meta,
        })
    }

    fn view(&self) -> View<'_> {
        View { shards: self.shards.iter().map(|shard| shard.read(Purpose::Read)).collect() }
    }

    /// The instance that is asked for, at the time of the last message: what the data are of, however long
    /// ago the service was stopped.
    fn read_instance(
        &self,
        board: &BoardName,
        known: &RegisteredBoard,
        shards: ReadShards<'_>,
    ) -> Result<Instance, Failure> {
        let asked = InstanceAsked { choice: self.window, now: shards.time() };
        asked
            .of(&known.definition)
            .map_err(|why| NoInstance { at: format!("board {board}"), why: why.to_string() }.into())
    }

    /// The page behind a cursor, or the first one.
    ///
    /// # Errors
    /// When there is no such board or instance, or metadata or profiles cannot be read.
    pub fn page(&self, name: &BoardName, cursor: Option<&str>) -> Result<Page<'static>, Failure> {
        let known = self.known(name)?;
        let view = self.view();
        let shards = ReadShards::InMemory(&view);
        let instance = self.read_instance(name, &known, shards)?;
        let (board, name) = (shards.board(name, instance, &known), name.as_str());
        let start = match cursor {
            None => Start::End(End::Top),
            Some(text) => {
                let decoded = PageCursor::decode(text, name, known.definition.columns());
                let (cursor, _) =
                    decoded.ok_or("the export's own cursor could not be decoded, which is a bug")?;
                Start::After(cursor)
            }
        };
        let page = run_in_memory(top(&board, &start, PAGE_ENTRIES))?;
        let as_of = board.as_of();
        let entries = page.entries.iter().map(|listed| self.row(listed, &as_of)).collect::<Result<_, _>>()?;
        Ok(Page {
            window: instance.to_string().into(),
            total: run_in_memory(board.total())?,
            entries,
            next_cursor: page.next.map(|cursor| cursor.encode(name, instance).into()),
            as_of: as_of.to_string().into(),
            stale: false,
        })
    }

    fn profile(&self, member: &str) -> Result<Option<String>, Failure> {
        let shards = u16::try_from(self.stores.len())?;
        let store = self.stores.get(shard_of(&MemberId::new(member)?, shards).index());
        let record = store.map(|store| store.profile(member.as_bytes())).transpose()?.flatten();
        Ok(record.and_then(|record| record.json))
    }

    fn profile_if_asked(&self, member: &str) -> Result<Option<Cow<'static, str>>, Failure> {
        let profile = if self.profiles { self.profile(member)? } else { None };
        Ok(profile.map(Into::into))
    }

    /// The metadata of a member that has some.
    fn metadata(&self, shard: ShardId, tree: TreeId, member: &str, as_of: &AsOf) -> Result<String, Failure> {
        let store = self.stores.get(shard.index());
        let store = store.ok_or("an entry belongs to a shard that is not open, which is a bug")?;
        let record = store.metadata(tree, member.as_bytes())?;
        let record = record.ok_or_else(|| {
            format!("the metadata of {member} are missing at {as_of}; ranktree verify lists what is damaged")
        })?;
        Ok(record.json)
    }

    fn row(&self, listed: &Listed, as_of: &AsOf) -> Result<Row<'static>, Failure> {
        let meta = match &listed.metadata {
            ListedMetadata::OnDisk(shard, tree) => {
                self.metadata(*shard, *tree, &listed.member, as_of)?.into()
            }
            ListedMetadata::Json(json) => json.to_string().into(),
            ListedMetadata::None | ListedMetadata::Unreadable => "{}".into(),
        };
        Ok(Row {
            profile: self.profile_if_asked(&listed.member)?,
            member: listed.member.to_string().into(),
            score: score(&listed.score).into(),
            rank: listed.rank().to_string().into(),
            position: listed.position.to_string().into(),
            updated_at: listed.updated_at.to_string().into(),
            reached_at: listed.reached_at.map(|at| at.to_string().into()),
            version: listed.version.map(|version| version.to_string().into()),
            meta,
        })
    }
}

/// As answers write it.
fn score(score: &Score) -> String {
    let mut out = Vec::new();
    write_score(&mut out, score);
    String::from_utf8(out).expect("JSON is UTF-8")
}
