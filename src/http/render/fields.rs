//! The parts of answers: entries, lists, ranks, outcomes of jobs, definitions.
//!
//! Knows: the names and shapes of the public API. Must not know: where the numbers come from.

use std::borrow::Cow;
use std::ops::Range;

use crate::board::{Beyond, Definition, Key, KeyType, offset};
use crate::http::render::json::{self, Object};
use crate::http::render::repeated::Repeated;
use crate::query::{
    Answer, EntryChange, Listed, ListedColumn, ListedMetadata, ListedMovement, ListedProfile, MemberEntry,
    ShardStanding, Standing,
};
use crate::types::{AsOf, BoardName, Score};
use crate::window::{Instance, Seasons, Window, length_text};

/// A plain number for one key, an array for more.
pub fn score(out: &mut Vec<u8>, score: &Score) {
    let mut numbers = score.numbers();
    match numbers.next() {
        Some(only) if numbers.len() == 0 => json::number(out, only),
        _ => json::array(out, score.numbers(), json::number),
    }
}

/// Only where scores may be too high.
fn error(object: &mut Object<'_>, error: Option<i64>) {
    if let Some(error) = error {
        object.signed("error", error);
    }
}

fn metadata(out: &mut Vec<u8>, metadata: &ListedMetadata) {
    match metadata {
        ListedMetadata::Json(text) => out.extend_from_slice(text.as_bytes()),
        ListedMetadata::None => out.extend_from_slice(b"{}"),
        // Unknown metadata is null, which no metadata is.
        ListedMetadata::OnDisk(..) | ListedMetadata::Unreadable => out.extend_from_slice(b"null"),
    }
}

/// Only if it was asked for.
pub fn profile(object: &mut Object<'_>, profile: &ListedProfile) {
    match profile {
        ListedProfile::NotAsked => {}
        ListedProfile::Json(text) => object.name("profile").extend_from_slice(text.as_bytes()),
        ListedProfile::None | ListedProfile::OnDisk(_) | ListedProfile::Unreadable => object.null("profile"),
    }
}

/// Only if it was asked for.
fn movement(object: &mut Object<'_>, movement: ListedMovement) {
    match movement {
        ListedMovement::NotAsked => {}
        ListedMovement::NotListedThen => object.null("movement"),
        ListedMovement::By(climbed) => object.signed("movement", climbed),
    }
}

/// The member on other boards. Only if they were asked for.
fn columns(object: &mut Object<'_>, columns: &[ListedColumn]) {
    if columns.is_empty() {
        return;
    }
    let mut with = object.object("with");
    for ListedColumn { board, entry } in columns {
        let Some(entry) = entry else {
            with.null_of(board.as_str());
            continue;
        };
        let mut column = with.object_of(board.as_str());
        score(column.name("score"), &entry.score);
        error(&mut column, entry.error);
        if let Some(rank) = entry.rank {
            column.count("rank", rank);
        }
        column.end();
    }
    with.end();
}

/// What an answer was exact at.
pub fn as_of(object: &mut Object<'_>, as_of: &AsOf) {
    json::as_of(object.name("as_of"), as_of);
}

/// The name of the instance that was read.
pub fn window(object: &mut Object<'_>, instance: Instance) {
    object.text("window", &instance_name(instance));
}

/// Most boards have no other instance than `all`, whose name takes no formatter.
pub fn instance_name(instance: Instance) -> Cow<'static, str> {
    if instance == Instance::ALL { Window::All.name().into() } else { instance.to_string().into() }
}

/// better, tied, worse, total.
pub fn counts(object: &mut Object<'_>, standing: &Standing) {
    object.count("better", standing.better);
    object.count("tied", standing.tied);
    object.count("worse", standing.worse());
    object.count("total", standing.total);
}

/// An entry with all its fields.
///
/// # Arguments
/// `window`: the name of the instance.
pub fn entry(object: &mut Object<'_>, board: &str, window: &str, entry: &MemberEntry, as_of: &AsOf) {
    entry_among(object, board, window, entry, as_of, &mut Repeated::default());
}

/// As [`entry`], among others.
fn entry_among<'a>(
    object: &mut Object<'_>,
    board: &str,
    window: &str,
    entry: &MemberEntry,
    as_of: &'a AsOf,
    repeated: &mut Repeated<'a>,
) {
    let listed = &entry.listed;
    object.text("board", board);
    object.text("window", window);
    object.text("member", &listed.member);
    score(object.name("score"), &listed.score);
    error(object, listed.error);
    object.count("rank", listed.rank());
    object.count("position", listed.position);
    counts(object, &entry.standing);
    json::float(object.name("percentile"), entry.standing.percentile());
    repeated.updated_at(object, listed.updated_at);
    metadata(object.name("meta"), &listed.metadata);
    profile(object, &listed.profile);
    movement(object, listed.movement);
    if entry.is_hidden {
        object.bool("hidden", true);
    }
    if entry.is_beyond_capacity {
        object.bool("beyond_capacity", true);
    }
    repeated.as_of(object, as_of);
}

/// An entry within a list. Returns where the time of its last update is written.
pub fn listed(object: &mut Object<'_>, listed: &Listed) -> Range<usize> {
    object.text("member", &listed.member);
    score(object.name("score"), &listed.score);
    error(object, listed.error);
    object.count("rank", listed.rank());
    object.count("position", listed.position);
    let out = object.name("updated_at");
    let begin = out.len();
    json::time(out, listed.updated_at);
    let updated_at = begin..out.len();
    metadata(object.name("meta"), &listed.metadata);
    profile(object, &listed.profile);
    movement(object, listed.movement);
    columns(object, &listed.columns);
    updated_at
}

/// The beginning of answers about a board, unless they have the total among other counts.
pub fn write_answer_start<A>(object: &mut Object<'_>, board: &str, answer: &Answer<A>) {
    object.text("board", board);
    window(object, answer.instance);
    object.count("total", answer.total);
    if !answer.columns.is_empty() {
        let mut windows = object.object("with_windows");
        for (board, instance) in &answer.columns {
            match instance {
                Some(instance) => windows.text_of(board.as_str(), &instance_name(*instance)),
                None => windows.null_of(board.as_str()),
            }
        }
        windows.end();
    }
}

pub fn entries(object: &mut Object<'_>, entries: &[Listed]) {
    object.array("entries", entries, |out, entry| {
        let mut object = Object::begin(out);
        listed(&mut object, entry);
        object.end();
    });
}

/// What a copy of a board needs of its entries, besides what lists show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedParts {
    /// The time at which each score was reached, where that orders ties.
    pub reached_at: bool,
    /// The version, of entries that have one.
    pub version: bool,
}

/// Entries with what a copy of the board needs.
pub fn copied_entries(object: &mut Object<'_>, entries: &[Listed], parts: CopiedParts) {
    object.array("entries", entries, |out, entry| {
        let mut object = Object::begin(out);
        let updated_at = listed(&mut object, entry);
        match entry.reached_at.as_ref().filter(|_| parts.reached_at) {
            // To write a time takes longer than all the rest of an entry.
            Some(reached_at) if *reached_at == entry.updated_at => {
                object.name("reached_at").extend_from_within(updated_at);
            }
            Some(reached_at) => object.time("reached_at", *reached_at),
            None => {}
        }
        version(&mut object, entry, parts);
        object.end();
    });
}

/// The same of one entry, behind what is shown of it.
pub fn copied_parts(object: &mut Object<'_>, entry: &Listed, parts: CopiedParts) {
    if let Some(reached_at) = entry.reached_at.filter(|_| parts.reached_at) {
        object.time("reached_at", reached_at);
    }
    version(object, entry, parts);
}

fn version(object: &mut Object<'_>, entry: &Listed, parts: CopiedParts) {
    if let Some(version) = entry.version.filter(|_| parts.version) {
        object.count("version", version);
    }
}

/// A score's rank, and each shard's share in it.
pub fn rank(object: &mut Object<'_>, asked: &Score, standing: &Standing, shards: &[ShardStanding]) {
    score(object.name("score"), asked);
    object.count("rank", standing.rank());
    counts(object, standing);
    object.array("shards", shards, |out, shard| {
        let mut object = Object::begin(out);
        object.count("shard", u64::from(shard.shard.0));
        object.count("better", shard.better);
        object.count("tied", shard.tied);
        object.count("total", shard.total);
        object.end();
    });
}

/// changed, entry, previous.
pub fn change<'a>(object: &mut Object<'_>, change: &'a EntryChange, repeated: &mut Repeated<'a>) {
    object.bool("changed", change.changed);
    match &change.entry {
        Some(found) => {
            let mut inner = object.object("entry");
            let (board, instance) = change.board.name.split();
            let window = instance.unwrap_or(Window::All.name());
            entry_among(&mut inner, board, window, found, &change.as_of, repeated);
            inner.end();
        }
        None => object.null("entry"),
    }
    match &change.previous {
        Some(previous) => {
            let mut inner = object.object("previous");
            score(inner.name("score"), &previous.score);
            inner.count("rank", previous.rank);
            inner.count("position", previous.position);
            inner.end();
        }
        None => object.null("previous"),
    }
}

/// The outcome of a job on several boards, by name.
pub fn changes_by_board<'a>(
    object: &mut Object<'_>,
    changes: &'a [EntryChange],
    repeated: &mut Repeated<'a>,
) {
    let mut boards = object.object("boards");
    for one in changes {
        let mut board = boards.object_of(one.board.name.split().0);
        change(&mut board, one, repeated);
        board.end();
    }
    boards.end();
}

/// Whether a job on several boards changed each, by name.
pub fn changed_by_board(object: &mut Object<'_>, boards: &[(BoardName, bool)]) {
    let mut by_board = object.object("boards");
    for (name, changed) in boards {
        let mut board = by_board.object_of(name.split().0);
        board.bool("changed", *changed);
        board.end();
    }
    by_board.end();
}

/// A board's definition as `PUT` takes it.
pub fn definition(object: &mut Object<'_>, definition: &Definition) {
    object.array("keys", &definition.keys, |out, key| {
        let mut object = Object::begin(out);
        self::key(&mut object, key);
        object.end();
    });
    object.text("policy", definition.policy.name());
    object.text("ties", definition.ties.name());
    object.array("windows", &definition.windows, |out, window| json::text(out, window.name()));
    season(object, definition.seasons.as_ref());
    object.text("utc_offset", &offset(definition.utc_offset_minutes));
    object.count("keep", u64::from(definition.keep));
    object.text("grace", &length_text(definition.grace_micros));
    let ttl = definition.entry_ttl_micros.map(length_text);
    object.or_null("entry_ttl", ttl.as_deref(), Object::text);
    object.or_null("capacity", definition.capacity, Object::count);
    object.bool("movement", definition.movement);
    object.text("kind", definition.kind.name());
    object.or_null("expires_at", definition.expires_at.as_ref(), Object::plain);
    let after = definition.expires_after_micros.map(length_text);
    object.or_null("expires_after", after.as_deref(), Object::text);
}

/// When regular seasons start and how long the latest ones are, or that there are manual ones.
fn season(object: &mut Object<'_>, seasons: Option<&Seasons>) {
    match seasons {
        Some(Seasons::Manual(_)) => object.text("season", "manual"),
        Some(Seasons::Regular(series)) => {
            let mut season = object.object("season");
            if let (Some(first), Some(last)) = (series.first(), series.last()) {
                season.plain("starts", &first.begin);
                season.text("every", &length_text(last.every));
            }
            season.end();
        }
        None => object.null("season"),
    }
}

fn key(object: &mut Object<'_>, key: &Key) {
    object.text("name", &key.name);
    object.text("order", key.order.name());
    if key.key_type != KeyType::Integer {
        object.text("type", key.key_type.name());
    }
    // A bound at the end of the range is none.
    if key.min > i64::MIN {
        json::number(object.name("min"), key.number(key.min));
    }
    if key.max < i64::MAX {
        json::number(object.name("max"), key.number(key.max));
    }
    for (name, beyond) in [("below_min", key.below_min), ("above_max", key.above_max)] {
        if beyond != Beyond::Reject {
            object.text(name, beyond.name());
        }
    }
}
