//! A row of JSON that is read field by field: `--column FIELD=PATH`, where a path goes into objects by the
//! names of fields, and into arrays by numbers from 0, with dots between them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::cli::import::ImportError;
use crate::cli::import::read::column_names::{Asked, Field, Fits, Unasked};
use crate::cli::import::read::entry::{CellNames, Cells, KeyCell, fits_meta, fits_version, row_op};
use crate::cli::import::read::json_hint::{are_alike, are_same, hint, path_of, within};
use crate::cli::import::read::json_paths::{Object, lookup, scalar};
use crate::cli::import::read::names::trimmed_name;
use crate::cli::import::read::numbers::Written;
use crate::cli::import::read::row::RejectedLine;
use crate::cli::import::read::rules::Rules;
use crate::cli::import::shell_word::shell_word;
use crate::job::{Op, RejectCode};
use crate::types::{quoted, shown};

/// Fields that a message names.
const FIELDS_NAMED: usize = 20;

/// Fields that may be a score.
const SCORES_NAMED: usize = 3;

/// Where each field is in a row. `None`: it is not read.
#[derive(Debug, Default)]
pub struct Fields {
    pub member: Option<String>,
    pub board: Option<String>,
    pub scores: Vec<String>,
    pub at: Option<String>,
    pub version: Option<String>,
    pub meta: Option<String>,
    op: Option<String>,
    hidden: Option<String>,
    pub meta_parts: Vec<(String, String)>,
    pub profile_parts: Vec<(String, String)>,
    /// Nobody asked for the score: it may be an array of keys, or the row itself.
    is_score_by_name: bool,
    /// The first rows have fields in common, so that each is a row and no group of them.
    are_alike: bool,
    /// The first rows have the same fields, all of them.
    are_same: bool,
    /// Where the rows are in the document.
    rows_at: Vec<String>,
}

impl Fields {
    /// # Arguments
    /// `sample`: the first rows, each with its line. A field that nobody asked for is read only if it fits.
    ///
    /// # Errors
    /// When times are written otherwise than they are read.
    pub fn find(rules: &Rules, sample: &[(u64, &str)]) -> Result<(Self, String), ImportError> {
        let mut left: Vec<String> = Vec::new();
        let of = |field: &Field| match rules.columns.of(field) {
            Asked::From(path) => Some((path.to_owned(), true)),
            Asked::Off => None,
            Asked::No => Some((field.name(), false)),
        };
        let is_there = |path: &str| sample.iter().any(|(_, text)| lookup(text, path).is_some());
        let mut fitting = |field: &Field, fits: &dyn Fn(&str) -> Fits| {
            let Some((path, is_asked)) = of(field) else { return Ok(None) };
            let unasked = field.unasked(sample.iter().filter_map(|(line, text)| {
                let value = lookup(text, &path).filter(|value| *value != "null")?;
                let text = scalar(value).map_or_else(|| Cow::Borrowed(value), |(text, _)| text);
                Some((fits(&text), (*line, text)))
            }));
            let name = field.name();
            match unasked {
                Unasked::LeftOut((line, text)) if !is_asked => {
                    left.push(format!(
                        ". The field {name} is not read, because line {line} has {}; --column {name}={path} reads it \
                         all the same",
                        shown(&text)
                    ));
                    Ok(None)
                }
                Unasked::OtherTimes((line, text)) if !is_asked => {
                    let why = if text.starts_with('{') {
                        format!("{} is an object{}", shown(&text), within("at", &path, &text))
                    } else {
                        rules.times.parse(&text).err().unwrap_or_default()
                    };
                    Err(ImportError::OtherTimes { line, field: path, why })
                }
                // Rows behind the sample may have it where none of the sample has.
                _ => Ok(Some(path)),
            }
        };
        let at = fitting(&Field::At, &|text| {
            // As MongoDB writes times.
            if text.starts_with('{') && text.contains("$date") {
                Fits::OtherTime
            } else {
                rules.times.fits(text)
            }
        })?;
        let version = if rules.version.is_some() {
            None
        } else {
            fitting(&Field::Version, &|text| fits_version(text).into())?
        };
        let meta = fitting(&Field::Meta, &|text| fits_meta(text).into())?;
        // What these ask for is done or refused, and not passed over.
        let [op, hidden] = [Field::Op, Field::Hidden].map(|field| of(&field).map(|(path, _)| path));
        if rules.times.format.is_some() && !sample.is_empty() && !at.as_deref().is_some_and(is_there) {
            return Err(ImportError::NoTimes);
        }
        let member = if rules.member_from_key && rules.columns.of(&Field::Member) == Asked::No {
            None
        } else {
            of(&Field::Member).map(|(path, _)| path)
        };
        let board = if rules.board.is_some() { None } else { of(&Field::Board).map(|(path, _)| path) };
        let scores: Vec<String> = rules.columns.scores().into_iter().map(str::to_owned).collect();
        let is_score_by_name = scores.is_empty() && rules.columns.of(&Field::Score) == Asked::No;
        let scores = if is_score_by_name { vec!["score".to_owned()] } else { scores };
        let rows_at = rules.rows_at.clone();
        let mut fields = Self {
            member,
            board,
            scores,
            at,
            version,
            meta,
            op,
            hidden,
            is_score_by_name,
            are_alike: are_alike(sample.iter().map(|(_, text)| *text)),
            are_same: are_same(sample.iter().map(|(_, text)| *text)),
            rows_at,
            ..Self::default()
        };
        for (field, path) in rules.columns.parts() {
            match field {
                Field::MetaPart(part) => fields.meta_parts.push((part.clone(), path.to_owned())),
                Field::ProfilePart(part) => fields.profile_parts.push((part.clone(), path.to_owned())),
                _ => {}
            }
        }
        let note = fields.note(rules, sample, &left.concat());
        Ok((fields, note))
    }

    /// Which field is read from where, and which is not.
    ///
    /// # Arguments
    /// `left`: why fields are not read that could be.
    fn note(&self, rules: &Rules, sample: &[(u64, &str)], left: &str) -> String {
        let is_there = |path: &str| sample.iter().any(|(_, text)| lookup(text, path).is_some());
        let mut told = Vec::new();
        let mut tell = |field: &str, path: Option<&String>| {
            told.extend(path.map(|path| format!("{field} from {}", quoted(path))));
        };
        if self.member.is_none() && rules.member_from_key {
            tell("member", Some(&"the name of each row".to_owned()));
        }
        tell("member", self.member.as_ref());
        tell("board", self.board.as_ref());
        self.scores.iter().for_each(|path| tell("score", Some(path)));
        for (field, path) in [
            (Field::At, &self.at),
            (Field::Version, &self.version),
            (Field::Meta, &self.meta),
            (Field::Op, &self.op),
            (Field::Hidden, &self.hidden),
        ] {
            let is_asked = rules.columns.of(&field) != Asked::No;
            tell(&field.name(), path.as_ref().filter(|path| is_asked || is_there(path)));
        }
        self.meta_parts.iter().for_each(|(part, path)| tell(&format!("meta.{part}"), Some(path)));
        self.profile_parts.iter().for_each(|(part, path)| tell(&format!("profile.{part}"), Some(path)));
        let unread = self.unread(sample);
        let unread = if unread.is_empty() {
            String::new()
        } else {
            format!("; fields that are not read: {}", unread.join(", "))
        };
        format!("reads {}{unread}{}", told.join(", "), left)
    }

    /// Fields of the first rows that nothing is read of.
    fn unread(&self, sample: &[(u64, &str)]) -> Vec<String> {
        let Self { member, board, at, version, meta, op, hidden, .. } = self;
        let singles = [member, board, at, version, meta, op, hidden].into_iter().flatten();
        let parts = self.meta_parts.iter().chain(&self.profile_parts).map(|(_, path)| path);
        let paths: Vec<&String> = singles.chain(parts).chain(&self.scores).collect();
        let is_read = |name: &str| {
            let is_on_path = |path: &&String| {
                path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            paths.iter().any(is_on_path)
        };
        let mut unread: Vec<String> = Vec::new();
        for (_, text) in sample {
            let fields: Object<'_> = serde_json::from_str(text).unwrap_or_default();
            for name in fields.keys().map(|name| shown(name)) {
                if unread.len() < FIELDS_NAMED && !is_read(&name) && !unread.contains(&name) {
                    unread.push(name);
                }
            }
        }
        unread
    }

    /// What the numbers of the keys are called, for whoever asks what they count.
    pub fn score_names(&self) -> Vec<String> {
        let around = self.rows_at.last().filter(|_| self.is_score_by_name);
        let name = |path: &String| around.into_iter().chain([path]).cloned().collect::<Vec<_>>().join(".");
        self.scores.iter().map(name).collect()
    }

    pub fn cell_names(&self) -> CellNames {
        let name = |path: &Option<String>| path.clone().unwrap_or_default();
        CellNames {
            board: name(&self.board),
            member: name(&self.member),
            scores: self.scores.clone(),
            at: name(&self.at),
            version: name(&self.version),
            meta: name(&self.meta),
        }
    }

    /// # Arguments
    /// - `key`: the row's name in the object of rows.
    /// - `is_exported`: an export has each name as it is, with spaces around it.
    ///
    /// # Errors
    /// When a field that is needed is not there, or is an object where it should be a text or a number.
    pub fn cells<'a>(
        &self,
        line: u64,
        text: &'a str,
        key: Option<String>,
        rules: &Rules,
        is_exported: bool,
    ) -> Result<Cells<'a>, RejectedLine> {
        let malformed = |why: String| RejectedLine::new(line, RejectCode::Malformed, why);
        let plain = |field: &str, path: &str| match lookup(text, path) {
            None | Some("null") => Ok(None),
            Some(value) => {
                let scalar = scalar(value).ok_or_else(|| {
                    let within = within(field, path, value);
                    malformed(format!(
                        "field {}: {} is no text and no number{within}",
                        quoted(path),
                        shown(value)
                    ))
                });
                scalar.map(|(text, written)| Some((trimmed(text), written)))
            }
        };
        let optional = |field: &str, path: Option<&str>| match path {
            Some(path) => {
                plain(field, path).map(|found| found.map(|(text, _)| text).filter(|text| !text.is_empty()))
            }
            None => Ok(None),
        };
        let name = key.clone();
        let member = match (&self.member, key) {
            (None, Some(key)) => Cow::Owned(trimmed_name(&key).to_owned()),
            (path, _) => {
                let path = path.as_deref().unwrap_or("member");
                let found = plain("member", path)?
                    .ok_or_else(|| malformed(self.missing(text, path, "member", None)))?;
                let as_it_is = lookup(text, path).and_then(scalar).filter(|_| is_exported);
                as_it_is.map_or_else(|| of_name(found.0), |(text, _)| text)
            }
        };
        let meta = match self.meta.as_deref().and_then(|path| lookup(text, path)) {
            None | Some("null") => None,
            Some(value) if value.starts_with('{') => Some(Cow::Borrowed(value)),
            Some(value) => Some(scalar(value).map_or(Cow::Borrowed(value), |(text, _)| text)),
        };
        let op = own_op(text, self.op.as_deref(), rules).map_err(malformed)?;
        let is_scored = rules.op.or(op).is_none_or(Op::takes_score);
        let mut cells = Cells {
            member,
            board: optional("board", self.board.as_deref())?,
            at: optional("at", self.at.as_deref())?,
            version: optional("version", self.version.as_deref())?,
            meta,
            meta_parts: parts(text, &self.meta_parts),
            profile_parts: parts(text, &self.profile_parts),
            is_hidden: is_hidden(text, self.hidden.as_deref()).map_err(malformed)?,
            op,
            updated_at: optional("updated_at", Some("updated_at").filter(|_| is_exported))?,
            is_exported,
            ..Cells::default()
        };
        if is_scored {
            self.keys(line, text, &mut cells, rules, name.as_deref())?;
        }
        Ok(cells)
    }

    fn keys<'a>(
        &self,
        line: u64,
        text: &'a str,
        cells: &mut Cells<'a>,
        rules: &Rules,
        name: Option<&str>,
    ) -> Result<(), RejectedLine> {
        let bad = |why: String| RejectedLine::new(line, RejectCode::BadScore, why);
        // A row that is no object or array is a score by itself.
        if self.is_score_by_name && !text.starts_with(['{', '[']) {
            if text == "null" {
                cells.keys.push(KeyCell { text: Cow::Borrowed(""), written: Written::Text });
                return Ok(());
            }
            let key = scalar(text).ok_or_else(|| bad(format!("{} is no number", shown(text))))?;
            cells.keys.push(KeyCell { text: trimmed(key.0), written: key.1 });
            return Ok(());
        }
        for path in &self.scores {
            // A row that lacks its score has none, as one with an empty cell.
            let absent = if rules.blanks.iter().any(String::is_empty) { Some("null") } else { None };
            let value = lookup(text, path).or(absent).ok_or_else(|| {
                let blank = "; --blank \"\" leaves out rows without it";
                bad(self.missing(text, path, "score", name) + blank)
            })?;
            let mut items = vec![value];
            if self.is_score_by_name && value.starts_with('[') {
                let all: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
                items = all.into_iter().map(RawValue::get).collect();
            }
            for item in items {
                if item == "null" {
                    cells.keys.push(KeyCell { text: Cow::Borrowed(""), written: Written::Text });
                    continue;
                }
                let key = scalar(item);
                let key = key.ok_or_else(|| {
                    bad(format!(
                        "field {}: {} is no number{}",
                        quoted(path),
                        shown(item),
                        within("score", path, item)
                    ))
                })?;
                cells.keys.push(KeyCell { text: trimmed(key.0), written: key.1 });
            }
        }
        Ok(())
    }

    /// Which fields of a row that is one of several by their names could be its score.
    fn numbers_in(&self, field: &str, fields: &Object<'_>) -> Vec<String> {
        let numbers = fields.iter().filter(|(_, value)| is_number(value)).map(|(name, _)| name.to_string());
        let are_rows = self.are_alike && (self.are_same || !may_be_group(fields));
        if field == "score" && are_rows && self.member.is_none() {
            numbers.take(SCORES_NAMED).collect()
        } else {
            Vec::new()
        }
    }

    /// That a row has no such field, and where rows may be instead.
    ///
    /// # Arguments
    /// `name`: of the row, in an object of rows. Each may be a group of them.
    fn missing(&self, text: &str, path: &str, field: &str, name: Option<&str>) -> String {
        let Ok(fields) = serde_json::from_str::<Object<'_>>(text) else {
            return format!(
                "the row is {}, which has no field {}; --column {field}=NUMBER reads an array, from 0",
                shown(text),
                quoted(path)
            );
        };
        if lookup(text, path) == Some("null") {
            return format!("the field {} is null, and every row needs its {field}", quoted(path));
        }
        let names: Vec<String> = fields.keys().take(FIELDS_NAMED).map(|name| shown(name)).collect();
        let within: Vec<String> =
            self.rows_at.iter().map(String::as_str).chain(name).map(str::to_owned).collect();
        let is_row = name.is_some() && self.are_alike && !may_be_group(&fields);
        let hint = if is_row { None } else { hint(text, &within, name.is_some()) };
        let alone =
            name.map(|name| format!(", which reads what is in {} alone", quoted(name))).unwrap_or_default();
        let hint = hint.map(|hint| format!("; the rows may be within: {hint}{alone}")).unwrap_or_default();
        let inner = path_of(text, path).into_iter().chain(self.numbers_in(field, &fields));
        let inner: Vec<String> =
            inner.map(|path| format!("--column {}", shell_word(&format!("{field}={path}")))).collect();
        let member = name.filter(|_| may_be_group(&fields));
        let member = member.map(|name| format!(", if {} is a member", quoted(name))).unwrap_or_default();
        let inner = if inner.is_empty() {
            String::new()
        } else {
            format!("; perhaps {}{member}", inner.join(", or "))
        };
        format!(
            "the row has no field {}; it has: {}. --column {field}=NAME names the field{inner}{hint}",
            quoted(path),
            names.join(", ")
        )
    }
}

fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// Whether a row with a name may as well be a group of members and their scores.
fn may_be_group(fields: &Object<'_>) -> bool {
    !fields.is_empty() && fields.values().all(|value| is_number(value))
}

/// Whether a row says that its member is hidden, who would be shown without this.
fn is_hidden(text: &str, path: Option<&str>) -> Result<bool, String> {
    let value = path.filter(|_| text.starts_with('{')).and_then(|path| lookup(text, path));
    match value.map(|value| (value, scalar(value))) {
        None | Some(("false" | "null" | "0", _)) => Ok(false),
        Some(("true", _)) => Ok(true),
        Some((_, Some((word, _)))) if word.eq_ignore_ascii_case("true") => Ok(true),
        Some((_, Some((word, _)))) if word.is_empty() || word.eq_ignore_ascii_case("false") => Ok(false),
        Some((value, _)) => Err(format!(
            "the field \"hidden\" must be true or false, as in an export; got {}; --column hidden= leaves it out",
            shown(value)
        )),
    }
}

fn of_name(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(trimmed_name(text)),
        Cow::Owned(text) => Cow::Owned(trimmed_name(&text).to_owned()),
    }
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

fn parts(text: &str, parts: &[(String, String)]) -> Vec<(String, String)> {
    let part = |(name, path): &(String, String)| {
        let value = lookup(text, path).filter(|value| *value != "null")?;
        Some((name.clone(), value.to_owned()))
    };
    parts.iter().filter_map(part).collect()
}

/// The row's own operation.
fn own_op(text: &str, path: Option<&str>, rules: &Rules) -> Result<Option<Op>, String> {
    if text.starts_with('{')
        && lookup(text, "scores").is_some_and(|scores| scores.starts_with('{'))
        && lookup(text, "member").is_some()
        && lookup(text, "score").is_none()
    {
        return Err(
            "the row has scores, which name boards: it is a job, and is imported without options about fields; or \
             --column score=scores.NAME reads one of them"
                .to_owned(),
        );
    }
    let value = path.and_then(|path| lookup(text, path)).filter(|value| *value != "null");
    let Some(value) = value else { return Ok(None) };
    let name = scalar(value).map_or(Cow::Borrowed(value), |(name, _)| name);
    row_op(&name, rules.op)
}
