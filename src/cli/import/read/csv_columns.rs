//! Which column of a CSV file is what: its header, a first look at its rows, and `--column FIELD=NAME`.
//!
//! A column that nobody asked for is read only if it fits: other programs have a version, a position or a
//! meta of their own.

use csv::ByteRecord;

use crate::cli::import::ImportError;
use crate::cli::import::read::column_names::{Asked, Field, Fits, Unasked};
use crate::cli::import::read::csv_separators::{SEPARATORS, WITHIN_NAMES, is_aligned, separator_words};
use crate::cli::import::read::entry::{CellNames, fits_meta, fits_version};
use crate::cli::import::read::rules::Rules;
use crate::cli::import::shell_word::shell_word;
use crate::job::Op;
use crate::types::{quoted, shown};

/// Columns that a message names.
const COLUMNS_NAMED: usize = 20;

/// The columns of an export that no other file has together.
const EXPORTED: [&str; 7] = ["board", "member", "score", "rank", "position", "at", "updated_at"];

/// What columns of other files are often called.
const MEMBER_NAMES: [&str; 19] = [
    "player",
    "name",
    "user",
    "username",
    "user_name",
    "handle",
    "login",
    "nick",
    "nickname",
    "player_name",
    "athlete",
    "driver",
    "runner",
    "participant",
    "contestant",
    "team",
    "id",
    "user_id",
    "player_id",
];
const SCORE_NAMES: [&str; 14] = [
    "points",
    "rating",
    "total",
    "xp",
    "result",
    "elo",
    "value",
    "time",
    "total_points",
    "scores",
    "pts",
    "count",
    "wins",
    "level",
];
const BOARD_NAMES: [&str; 6] = ["game", "contest", "event", "league", "leaderboard", "category"];

/// Where each field is in a record.
#[derive(Debug, Default)]
pub struct Columns {
    pub board: Option<usize>,
    pub member: usize,
    pub scores: Vec<usize>,
    pub at: Option<usize>,
    pub version: Option<usize>,
    pub meta: Option<usize>,
    pub op: Option<usize>,
    pub meta_parts: Vec<(String, usize)>,
    pub profile_parts: Vec<(String, usize)>,
    /// Of an export only.
    pub updated_at: Option<usize>,
    pub hidden: Option<usize>,
    /// The file is an export of ranktree.
    pub is_exported: bool,
}

/// Columns, and what is told of them.
#[derive(Debug)]
pub struct Found {
    pub columns: Columns,
    pub names: CellNames,
    pub note: String,
}

/// What decides about columns.
pub struct Header<'a> {
    pub names: &'a [String],
    /// The first rows.
    pub sample: &'a [(u64, u64, ByteRecord)],
    pub rules: &'a Rules,
    /// What is between cells.
    pub delimiter: char,
    /// A first line says that the file is an export.
    pub is_exported: bool,
}

impl Header<'_> {
    /// # Errors
    /// When the header lacks a column that is needed, or names one twice.
    pub fn find(&self) -> Result<Found, ImportError> {
        let rules = self.rules;
        let has_all =
            EXPORTED.iter().all(|name| self.names.iter().any(|found| found.eq_ignore_ascii_case(name)));
        let is_exported = self.is_exported || (has_all && !rules.no_header);
        let (mut told, mut left) = (Vec::new(), Vec::new());
        let mut tell = |field: &str, column: Option<usize>, why: &str| {
            if let Some(name) = column.and_then(|column| self.names.get(column)) {
                told.push(format!("{field} from {} ({why})", quoted(name)));
            }
        };
        let member = self.needed(&Field::Member)?;
        tell("member", Some(member), self.why(&Field::Member));
        // With --board, the column decides nothing and need not be there.
        let board = if rules.board.is_some() { None } else { Some(self.needed(&Field::Board)?) };
        tell("board", board, self.why(&Field::Board));
        let scores = self.scores()?;
        for (key, column) in scores.iter().enumerate() {
            let field =
                if scores.len() > 1 { format!("key {} of the score", key + 1) } else { "score".to_owned() };
            tell(&field, Some(*column), self.why(&Field::Score));
        }
        let at = self.fitting(&Field::At, &mut left, |text| rules.times.fits(text))?;
        tell("at", at, self.why(&Field::At));
        if at.is_none() && rules.times.format.is_some() {
            return Err(ImportError::NoTimes);
        }
        let version = if rules.version.is_some() {
            None
        } else {
            self.fitting(&Field::Version, &mut left, |text| fits_version(text).into())?
        };
        tell("version", version, self.why(&Field::Version));
        let has_parts = rules.columns.parts().any(|(field, _)| matches!(field, Field::MetaPart(_)));
        let fits = |text: &str| fits_meta(text).into();
        let meta = if has_parts { None } else { self.fitting(&Field::Meta, &mut left, fits)? };
        tell("meta", meta, self.why(&Field::Meta));
        let mut columns =
            Columns { board, member, scores, at, version, meta, is_exported, ..Columns::default() };
        for (field, name) in rules.columns.parts() {
            let column = self.column(name)?.ok_or_else(|| self.missing(field, name))?;
            tell(&field.name(), Some(column), "--column");
            match field {
                Field::MetaPart(part) => columns.meta_parts.push((part.clone(), column)),
                Field::ProfilePart(part) => columns.profile_parts.push((part.clone(), column)),
                _ => {}
            }
        }
        // What these ask for is done or refused, and not passed over.
        let fits = |_: &str| Fits::Yes;
        columns.hidden = self.fitting(&Field::Hidden, &mut left, fits)?;
        tell("hidden", columns.hidden.filter(|_| !is_exported), self.why(&Field::Hidden));
        if is_exported {
            columns.updated_at = self.column("updated_at")?;
        } else {
            columns.op = self.fitting(&Field::Op, &mut left, fits)?;
            tell("op", columns.op, self.why(&Field::Op));
        }
        let note = self.note(&columns, &told, &left);
        let names = self.cell_names(&columns);
        Ok(Found { columns, names, note })
    }

    fn why(&self, field: &Field) -> &'static str {
        match (self.rules.columns.of(field), self.is_exported) {
            (Asked::From(_), _) => "--column",
            (_, true) => "an export has it",
            (_, false) => "its name",
        }
    }

    fn needed(&self, field: &Field) -> Result<usize, ImportError> {
        let name = field.name();
        match self.rules.columns.of(field) {
            Asked::From(name) => self.column(name)?.ok_or_else(|| self.missing(field, name)),
            _ if self.rules.no_header => Err(self.missing(field, &name)),
            _ => self.column(&name)?.ok_or_else(|| self.missing(field, &name)),
        }
    }

    fn scores(&self) -> Result<Vec<usize>, ImportError> {
        let asked = self.rules.columns.scores();
        let of_name = |name: &&str| self.column(name)?.ok_or_else(|| self.missing(&Field::Score, name));
        if !asked.is_empty() {
            return asked.iter().map(of_name).collect();
        }
        let is_needed = self.rules.op.is_none_or(Op::takes_score);
        let is_off = self.rules.columns.of(&Field::Score) == Asked::Off || self.rules.no_header;
        let found = if is_off { None } else { self.column("score")? };
        match found {
            Some(column) => Ok(vec![column]),
            None if is_needed => Err(self.missing(&Field::Score, "score")),
            None => Ok(Vec::new()),
        }
    }

    /// A column that may be there: as asked for, or of the field's name if its first rows fit.
    fn fitting(
        &self,
        field: &Field,
        left: &mut Vec<String>,
        fits: impl Fn(&str) -> Fits,
    ) -> Result<Option<usize>, ImportError> {
        let name = match self.rules.columns.of(field) {
            Asked::From(name) => {
                return self.column(name)?.map(Some).ok_or_else(|| self.missing(field, name));
            }
            Asked::Off => return Ok(None),
            Asked::No if self.rules.no_header => return Ok(None),
            Asked::No => field.name(),
        };
        let Some(column) = self.column(&name)? else { return Ok(None) };
        let found = self.names.get(column).map_or("", String::as_str);
        let unasked = field.unasked(self.sample.iter().filter_map(|(line, _, record)| {
            let text = String::from_utf8_lossy(record.get(column).unwrap_or_default());
            let text = text.trim();
            let is_blank = text.is_empty() || self.rules.is_blank(text);
            (!is_blank).then(|| (fits(text), (*line, text.to_owned())))
        }));
        match unasked {
            Unasked::LeftOut((line, text)) if !self.is_exported => {
                left.push(format!(
                    "{} is not read as {name}, because line {line} has {}; --column {name}={found} reads it all the same",
                    quoted(found),
                    quoted(&text)
                ));
                Ok(None)
            }
            Unasked::OtherTimes((line, text)) if !self.is_exported => {
                let why = self.rules.times.parse(&text).err().unwrap_or_default();
                Err(ImportError::OtherTimes { line, field: found.to_owned(), why })
            }
            _ => Ok(Some(column)),
        }
    }

    /// A column by its name, as it is written, or else whatever its case; or by its number.
    fn column(&self, name: &str) -> Result<Option<usize>, ImportError> {
        if self.rules.no_header {
            let number = name.parse::<usize>().ok().filter(|number| (1..=self.names.len()).contains(number));
            return Ok(number.map(|number| number - 1));
        }
        let name = &*one_line(name);
        let place_of = |is_it: &dyn Fn(&String) -> bool| {
            let mut places = (0..).zip(self.names).filter(|(_, found)| is_it(found)).map(|(place, _)| place);
            (places.next(), places.next().is_some())
        };
        let (exact, is_twice) = place_of(&|found| one_line(found) == name);
        if is_twice {
            return Err(ImportError::RepeatedColumn(name.to_owned()));
        }
        if exact.is_some() {
            return Ok(exact);
        }
        match place_of(&|found| one_line(found).eq_ignore_ascii_case(name)) {
            (_, true) => Err(ImportError::RepeatedColumn(name.to_owned())),
            (place, false) => Ok(place),
        }
    }

    fn missing(&self, field: &Field, name: &str) -> ImportError {
        if let Some(error) = self.other_separator(name) {
            return error;
        }
        if self.is_members_and_scores() {
            return ImportError::RedisForm(
                "without --csv, a line for each member and each score: names of several lines cannot be told apart",
            );
        }
        let found = self.sample.first().filter(|_| self.rules.no_header).map(|(_, _, first)| {
            let cell = |(number, cell): (usize, &[u8])| {
                format!("{} is {}", number, quoted(&String::from_utf8_lossy(cell)))
            };
            (1..).zip(first.iter()).take(COLUMNS_NAMED).map(cell).collect::<Vec<_>>().join(", ")
        });
        if let Some(found) = found {
            return ImportError::MissingNumber { field: field.name(), name: name.to_owned(), found };
        }
        let is_name = |cell: &[u8]| one_line(&String::from_utf8_lossy(cell)).eq_ignore_ascii_case(name);
        let header = self.sample.iter().find(|(_, _, row)| row.iter().any(is_name));
        if let Some((line, _, _)) = header {
            let (name, skipped) = (name.to_owned(), line - 1);
            return ImportError::LaterHeader { field: field.name(), name, line: *line, skipped };
        }
        let is_number = |name: &String| name.parse::<f64>().is_ok_and(f64::is_finite);
        if let Some(number) = self.names.iter().position(is_number).filter(|_| self.names.len() > 1) {
            let (score, member) = (number + 1, if number == 0 { 2 } else { 1 });
            let found = named(self.names.iter().map(String::as_str));
            return ImportError::NoHeader {
                field: field.name(),
                name: name.to_owned(),
                found,
                member,
                score,
            };
        }
        let others: &[&str] = match field {
            Field::Member => &MEMBER_NAMES,
            Field::Score => &SCORE_NAMES,
            Field::Board => &BOARD_NAMES,
            _ => &[],
        };
        let alike = |other: &&str| {
            self.names.iter().find(|found| found.replace([' ', '-'], "_").eq_ignore_ascii_case(other))
        };
        // As in "score (points)".
        let is_longer = |found: &&String| {
            let is_start = found.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
            is_start && found.get(name.len()..).is_some_and(|rest| rest.starts_with([' ', '_', '(']))
        };
        let longer = self.names.iter().find(is_longer);
        let perhaps = longer
            .or_else(|| others.iter().find_map(alike))
            .map(|found| format!("; perhaps --column {}", shell_word(&format!("{}={found}", field.name()))));
        ImportError::MissingColumn {
            field: field.name(),
            name: name.to_owned(),
            found: named(self.names.iter().map(String::as_str)),
            perhaps: perhaps.unwrap_or_default(),
        }
    }

    /// The cells of the first line, and a word for it.
    fn first_line(&self) -> (Vec<String>, &'static str) {
        match self.sample.first().filter(|_| self.rules.no_header) {
            Some((_, _, first)) => (
                first.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect(),
                "the first row",
            ),
            None => (self.names.to_vec(), "the file's header"),
        }
    }

    /// That the file has another separator, if it seems to.
    ///
    /// # Arguments
    /// `wanted`: the name of a column that is not found.
    fn other_separator(&self, wanted: &str) -> Option<ImportError> {
        let (cells, line) = self.first_line();
        if let [only] = cells.as_slice()
            && is_aligned(only)
            && self.sample.iter().all(|(_, _, row)| is_aligned(&String::from_utf8_lossy(row.as_slice())))
        {
            return Some(ImportError::Aligned(quoted(only)));
        }
        let others = SEPARATORS.iter().filter(|(mark, _, _)| *mark != self.delimiter);
        let (_, separator, option) = if let [only] = cells.as_slice() {
            if only.contains(self.delimiter) {
                return Some(ImportError::OneCell(shown(only)));
            }
            let count = |mark: char| only.matches(mark).count();
            let is_even = |mark: char| {
                let in_row = |(_, _, row): &(u64, u64, ByteRecord)| {
                    String::from_utf8_lossy(row.as_slice()).matches(mark).count() == count(mark)
                };
                !WITHIN_NAMES.contains(&mark) || self.sample.iter().all(in_row)
            };
            // As in `ann: 5`, of which a space would make a member `ann:`.
            let is_labelled = |line: &str| line.matches(':').count() == 1 && line.contains(": ");
            let are_labelled = is_labelled(only)
                && self
                    .sample
                    .iter()
                    .all(|(_, _, row)| is_labelled(&String::from_utf8_lossy(row.as_slice())));
            let found = others
                .filter(|(mark, _, _)| count(*mark) > 0 && is_even(*mark) && !(are_labelled && *mark == ' '));
            // Of those that stand as often the first.
            found.rev().max_by_key(|(mark, _, _)| (!WITHIN_NAMES.contains(mark), count(*mark)))?
        } else {
            let has_part = |mark: char| {
                let is_it = |part: &str| part.trim().trim_matches('"').eq_ignore_ascii_case(wanted);
                cells.iter().any(|cell| cell.contains(mark) && cell.split(mark).any(is_it))
            };
            let mut others = others.filter(|(mark, _, _)| !WITHIN_NAMES.contains(mark));
            others.find(|(mark, _, _)| !self.rules.no_header && has_part(*mark))?
        };
        let given = separator_words(self.delimiter);
        let columns =
            if cells.len() == 1 { "one column".to_owned() } else { format!("{} columns", cells.len()) };
        let found = format!("{line} has {columns}, {}", named(cells.iter().map(String::as_str)));
        Some(ImportError::Separator { found, given, separator, option })
    }

    /// Whether the lines are members and their scores in turn.
    fn is_members_and_scores(&self) -> bool {
        let header = self.names.first().filter(|_| !self.rules.no_header).map(|name| (1, name.clone()));
        let text = |record: &ByteRecord| {
            String::from_utf8_lossy(record.get(0).unwrap_or_default()).trim().to_owned()
        };
        let rows = self.sample.iter().map(|(_, _, record)| (record.len(), text(record)));
        let cells: Vec<(usize, String)> = header.into_iter().chain(rows).collect();
        let is_number = |(_, text): &(usize, String)| text.parse::<f64>().is_ok();
        self.names.len() == 1
            && cells.len() > 3
            && cells.iter().all(|(columns, _)| *columns == 1)
            && cells.iter().skip(1).step_by(2).all(is_number)
            && !cells.iter().step_by(2).all(is_number)
    }

    fn note(&self, columns: &Columns, told: &[String], left: &[String]) -> String {
        let Columns { board, member, scores, at, version, meta, op, updated_at, hidden, .. } = columns;
        let singles = [*board, Some(*member), *at, *version, *meta, *op, *updated_at, *hidden];
        let parts = columns.meta_parts.iter().chain(&columns.profile_parts).map(|(_, column)| *column);
        let used: Vec<usize> =
            singles.into_iter().flatten().chain(scores.iter().copied()).chain(parts).collect();
        let ignored = (0..).zip(self.names).filter(|(column, _)| !used.contains(column));
        let ignored: Vec<&str> = ignored.map(|(_, name)| name.as_str()).collect();
        let ignored = match ignored.len() {
            0 => String::new(),
            _ => format!("; columns that are not read: {}", named(ignored.into_iter())),
        };
        let left: Vec<String> = left.iter().map(|why| format!(". The column {why}")).collect();
        format!("reads {}{ignored}{}", told.join(", "), left.concat())
    }

    fn cell_names(&self, columns: &Columns) -> CellNames {
        let name = |column: Option<usize>| {
            column.and_then(|column| self.names.get(column)).cloned().unwrap_or_default()
        };
        CellNames {
            board: name(columns.board),
            member: name(Some(columns.member)),
            scores: columns.scores.iter().map(|column| name(Some(*column))).collect(),
            at: name(columns.at),
            version: name(columns.version),
            meta: name(columns.meta),
        }
    }
}

/// A name with one space for whatever is between its words, such as an end of line.
fn one_line(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names for a message, which are not all of them if there are many.
fn named<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(COLUMNS_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.take(COLUMNS_NAMED).map(shown).collect::<Vec<_>>().join(", ") + &more
}
