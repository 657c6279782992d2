//! A row's fields as texts become its jobs, whatever kind of file they came from.
//!
//! Knows: what each field of a job is, and the options about values. Must not know: files and columns.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use smallvec::{SmallVec, smallvec};

use crate::cli::import::read::job_text::JobText;
use crate::cli::import::read::names::{has_fraction, is_no_value, not_a_name};
use crate::cli::import::read::numbers::{Numbers, Written};
use crate::cli::import::read::plain_numbers::Durations;
use crate::cli::import::read::row::{Followers, LastBoard, RejectedLine, Row, version_before};
use crate::cli::import::read::rules::Rules;
use crate::cli::import::read::slug::{Slugs, slug};
use crate::cli::import::read::times::InTurn;
use crate::job::{Op, RejectCode};
use crate::types::{BoardName, MAX_KEYS, MemberId, Number, Score, Timestamp, decimal, quoted};
use crate::wire::json_words;
use crate::wire::lenient::parse_number;

/// Why a row is refused that hides who may be there.
pub const ABSENT_HIDES: &str = "the row hides its member, who may be there, and --if-absent leaves those alone; import who is \
    hidden apart, without it";

/// One key of a score, as a file has it.
#[derive(Debug, Clone)]
pub struct KeyCell<'a> {
    pub text: Cow<'a, str>,
    pub written: Written,
}

/// What a row says. Empty texts are absent fields.
#[derive(Debug, Default)]
pub struct Cells<'a> {
    pub member: Cow<'a, str>,
    pub board: Option<Cow<'a, str>>,
    pub keys: SmallVec<[KeyCell<'a>; 2]>,
    pub at: Option<Cow<'a, str>>,
    pub version: Option<Cow<'a, str>>,
    /// JSON.
    pub meta: Option<Cow<'a, str>>,
    /// Fields of the metadata and of the profile, each with its value as JSON.
    pub meta_parts: Vec<(String, String)>,
    pub profile_parts: Vec<(String, String)>,
    /// The row's own operation.
    pub op: Option<Op>,
    /// Of an export, as those that follow.
    pub updated_at: Option<Cow<'a, str>>,
    pub is_hidden: bool,
    /// The row is of an export, and must be as that is written. The one cell of the score has all keys, with
    /// commas between them.
    pub is_exported: bool,
}

/// Under which names the fields are in the file, for messages.
#[derive(Debug, Clone, Default)]
pub struct CellNames {
    pub board: String,
    pub member: String,
    pub scores: Vec<String>,
    pub at: String,
    pub version: String,
    pub meta: String,
}

/// What a row became.
pub enum Built {
    Row(Row, Followers),
    /// Nothing, as `--blank` says.
    Blank(String),
}

/// What rows of all files of one pass share.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    slugs: Slugs,
    in_turn: InTurn,
}

/// Makes jobs of rows.
pub struct Builder {
    pub rules: Rules,
    pub names: CellNames,
    shared: Shared,
    last_board: LastBoard,
    /// How each key is written.
    numbers: Vec<Numbers>,
    /// Of each key, if it is a duration.
    durations: Vec<Option<Durations>>,
    /// Of the last row, if it is a whole number.
    pub first_key: Option<i64>,
    /// Some of the first members are numbers that are not whole.
    have_fractions: bool,
}

impl Builder {
    pub fn new(rules: Rules, names: CellNames, shared: Shared) -> Self {
        let numbers = (0..names.scores.len().max(1)).map(|key| rules.numbers_of(key)).collect();
        Self {
            rules,
            names,
            shared,
            last_board: LastBoard::default(),
            numbers,
            durations: Vec::new(),
            first_key: None,
            have_fractions: false,
        }
    }

    /// Looks what names of members are like.
    pub fn look_at_members(&mut self, mut sample: impl Iterator<Item = impl AsRef<str>>) {
        self.have_fractions = sample.any(|name| has_fraction(name.as_ref().trim()));
    }

    /// Decides how durations are read, and tells it.
    ///
    /// # Arguments
    /// - `names`: of the columns of the keys.
    /// - `samples`: what the first rows have in each.
    pub fn look_at_durations(&mut self, names: &[String], samples: &[Vec<String>]) -> String {
        let has_others = names.len() > 1;
        let of_key = |((name, sample), numbers): ((&String, &Vec<String>), &Numbers)| {
            numbers.duration.map(|_| Durations::of(name, sample, numbers, has_others))
        };
        self.durations = names.iter().zip(samples).zip(&self.numbers).map(of_key).collect();
        self.durations.iter().flatten().map(Durations::note).collect()
    }

    /// The number of a text that could be a score, of which it is the first key.
    pub fn number(&self, text: &str, written: Written) -> Option<Number> {
        let number = self.numbers.first()?.number(text, written).ok();
        number.map(|(number, _)| number)
    }

    /// # Errors
    /// What is wrong with which of the fields, and the option that helps.
    pub fn build(&mut self, line: u64, cells: &Cells<'_>) -> Result<Built, RejectedLine> {
        self.first_key = None;
        let op = self.op(line, cells)?;
        let is_scored = op.is_none_or(Op::takes_score);
        if is_scored && let Some(blank) = self.blank(cells) {
            return Ok(Built::Blank(blank));
        }
        if let Some(why) = not_a_name(&cells.member, self.have_fractions).filter(|_| !cells.is_exported) {
            return Err(RejectedLine::new(line, RejectCode::BadMember, named(&self.names.member, &why)));
        }
        let member = MemberId::new(&*cells.member).map_err(|why| {
            let why = named(&self.names.member, &why.got(&cells.member));
            RejectedLine::new(line, RejectCode::BadMember, why)
        })?;
        let shared = self.board(line, cells)?;
        let board = &*shared;
        let mut followers = Followers::new();
        if !cells.profile_parts.is_empty() {
            let profile = object(&cells.profile_parts);
            let member = serde_json::to_string(member.as_str()).expect("every string can be JSON");
            let job = format!("{{\"op\":\"profile\",\"member\":{member},\"profile\":{profile}}}");
            let row = Row::new(line, job, &cells.member, Some(Op::Profile.name()), false, smallvec![]);
            followers.push(Row { is_repeat: true, ..row });
        }
        let boards = || smallvec![Arc::clone(&shared)];
        if cells.is_hidden && self.rules.if_absent {
            return Err(RejectedLine::new(line, RejectCode::Malformed, ABSENT_HIDES));
        }
        if cells.is_hidden {
            let hide =
                JobText { board, member: member.as_str(), op: Some(Op::Hide.name()), ..JobText::default() };
            let row = Row::new(line, hide.json(), member.as_str(), hide.op, false, boards());
            // Who is hidden need not have an entry.
            if cells.keys.iter().all(|key| key.text.is_empty()) {
                return Ok(Built::Row(row, followers));
            }
            followers.push(row.repeated(hide.json()));
        }
        let (score, no_integer) = if is_scored { self.score(line, cells)? } else { (None, None) };
        let is_exported = cells.is_exported;
        let mut at = self.time(line, &self.names.at, cells.at.as_deref(), is_exported)?;
        if !is_exported {
            at = at.map(|at| self.shared.in_turn.next(at));
        }
        let updated_at = self.time(line, "updated_at", cells.updated_at.as_deref(), is_exported)?;
        let version = self.version(line, cells)?;
        let meta = self.meta(line, cells)?;
        // An export of an entry that was updated after its score was reached.
        let updated_later = updated_at.filter(|updated_at| at.is_some_and(|at| at != *updated_at));
        let repeated_at = updated_later.filter(|_| op == Some(Op::Set) && version != Some(0));
        let first_version = if repeated_at.is_some() { version.map(version_before) } else { version };
        let (member, score, op) = (member.as_str(), score.as_ref(), op.map(Op::name));
        let job = JobText { board, member, score, op, version: first_version, at, meta: meta.as_deref() };
        let row = Row::new(line, job.json(), member, op, version.is_some(), boards());
        let row = Row { at, no_integer, ..row };
        if let Some(updated_at) = repeated_at {
            followers.push(row.repeated(JobText { at: Some(updated_at), version, meta: None, ..job }.json()));
        }
        let row = if at.is_none() && is_scored { row.without_time() } else { row };
        Ok(Built::Row(row, followers))
    }

    /// `--op` holds for every row.
    fn op(&self, line: u64, cells: &Cells<'_>) -> Result<Option<Op>, RejectedLine> {
        match (self.rules.op, cells.op) {
            (Some(given), None) => Ok(Some(given)),
            (Some(given), Some(own)) if own.takes_score() => Ok(Some(given)),
            (None, own) if own.is_none_or(Op::takes_score) => Ok(own),
            (_, own) => Err(RejectedLine::new(
                line,
                RejectCode::Malformed,
                format!(
                    "the row's op is {}, which no option is about; import such rows apart, as lines of JSON that are jobs",
                    own.map_or("absent", Op::name)
                ),
            )),
        }
    }

    /// The text that `--blank` has in place of a score, or of a member where there is no value.
    fn blank(&self, cells: &Cells<'_>) -> Option<String> {
        let keys = cells.keys.iter().map(|key| &*key.text);
        let member = Some(&*cells.member).filter(|member| !cells.is_exported && is_no_value(member));
        let mut texts = keys.chain(member);
        texts.find(|text| self.rules.is_blank(text)).map(|text| text.trim().to_owned())
    }

    fn board(&mut self, line: u64, cells: &Cells<'_>) -> Result<Arc<str>, RejectedLine> {
        let malformed = |why: String| RejectedLine::new(line, RejectCode::Malformed, why);
        let own = match (&self.rules.board, &cells.board) {
            (Some(given), _) => return Ok(self.last_board.share(given.as_str())),
            (None, Some(own)) => own,
            (None, None) => {
                return Err(malformed("the row names no board, and --board is not given".to_owned()));
            }
        };
        let column = &self.names.board;
        if !self.rules.slug {
            if self.last_board.is(own) {
                return Ok(self.last_board.share(own));
            }
            BoardName::new(own).map_err(|why| {
                let made = slug(own);
                let advice = made.map(|made| format!("; --slug makes {made} of it")).unwrap_or_default();
                malformed(named(column, &format!("{}{advice}", why.got(own))))
            })?;
            return Ok(self.last_board.share(own));
        }
        let made = self.shared.slugs.make(own).map_err(|why| malformed(named(column, &why)))?;
        Ok(self.last_board.share(&made))
    }

    /// The score, and why it is none of a board of integers, if so.
    fn score(
        &mut self,
        line: u64,
        cells: &Cells<'_>,
    ) -> Result<(Option<Score>, Option<Box<str>>), RejectedLine> {
        let bad = |why: String| RejectedLine::new(line, RejectCode::BadScore, why);
        let mut no_integer = None;
        let mut keys = SmallVec::<[Number; MAX_KEYS]>::new();
        for (index, cell) in cells.keys.iter().enumerate() {
            let name = self.names.scores.get(index).map_or("score", String::as_str);
            // Of an array of keys that is one field, the last one is as all further ones.
            let numbers = self.numbers.get(index).or(self.numbers.last()).unwrap_or(&self.rules.numbers);
            let durations = self.durations.get(index).or(self.durations.last()).and_then(Option::as_ref);
            if let Some(why) = durations.and_then(|durations| durations.refusal(&cell.text, numbers)) {
                return Err(bad(named(name, &why)));
            }
            if cells.is_exported {
                let why = || named(name, &saved("a score", &cell.text));
                for key in cell.text.split(',') {
                    let number = parse_number(key).map_err(|_| bad(why()))?;
                    // The export of a board of integers has no other numbers.
                    if number.integer().is_err() {
                        no_integer = no_integer.or_else(|| Some(why().into_boxed_str()));
                    }
                    keys.push(number);
                }
            } else {
                let found = numbers.number(&cell.text, cell.written);
                let (number, why) = found.map_err(|why| bad(named(name, &why)))?;
                no_integer = no_integer.or(why.map(|why| named(name, &why).into_boxed_str()));
                keys.push(number);
            }
        }
        self.first_key = keys.first().and_then(|key| key.integer().ok());
        let score = Score::of_numbers(&keys).map_err(|why| bad(format!("{why}; got {}", keys.len())))?;
        Ok((Some(score), no_integer))
    }

    fn time(
        &self,
        line: u64,
        name: &str,
        text: Option<&str>,
        is_exported: bool,
    ) -> Result<Option<Timestamp>, RejectedLine> {
        let is_there = |text: &&str| !text.is_empty() && !self.rules.is_blank(text);
        let Some(text) = text.filter(is_there) else { return Ok(None) };
        let parsed = if is_exported {
            Timestamp::parse(text).map_err(|_| saved("a time", text))
        } else {
            self.rules.times.parse(text)
        };
        parsed.map(Some).map_err(|why| {
            let advice = if is_exported { "" } else { "; --column at= leaves times out" };
            RejectedLine::new(line, RejectCode::Malformed, format!("{}{advice}", named(name, &why)))
        })
    }

    fn version(&self, line: u64, cells: &Cells<'_>) -> Result<Option<u64>, RejectedLine> {
        if let Some(given) = self.rules.version {
            return Ok(Some(given));
        }
        let Some(text) = cells.version.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
        decimal::<u64>(text).map(Some).ok_or_else(|| {
            let why = format!(
                "a version must be an unsigned 64-bit integer; got {}; --column version= leaves it out",
                quoted(text)
            );
            RejectedLine::new(line, RejectCode::Malformed, named(&self.names.version, &why))
        })
    }

    fn meta<'a>(&self, line: u64, cells: &'a Cells<'_>) -> Result<Option<Cow<'a, str>>, RejectedLine> {
        if !cells.meta_parts.is_empty() {
            return Ok(Some(Cow::Owned(object(&cells.meta_parts))));
        }
        let Some(text) = cells.meta.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
        let parsed = serde_json::from_str::<&RawValue>(text);
        parsed.map(|json| Some(Cow::Borrowed(json.get()))).map_err(|why| {
            let why = json_words(text.as_bytes(), &why);
            let why = format!(
                "meta must be a JSON object; got {}: {why}; --column meta= leaves it out, and --column meta.x=NAME \
                 makes a field x of a column",
                quoted(text)
            );
            RejectedLine::new(line, RejectCode::Malformed, named(&self.names.meta, &why))
        })
    }
}

/// The operation that a row names. What another word asks for would not be done, so the row is refused.
///
/// # Arguments
/// `given`: of `--op`, which holds for every row.
///
/// # Errors
/// That it is none of a job's, and the way out.
pub fn row_op(name: &str, given: Option<Op>) -> Result<Option<Op>, String> {
    let found = Op::ALL.into_iter().find(|op| op.name() == name);
    if found.is_some() || given.is_some() || name.is_empty() {
        return Ok(found);
    }
    Err(format!(
        "the row's op is {}, and an operation is one of {}; --op NAME is that of every row, and --column op= leaves it out",
        quoted(name),
        Op::ALL.map(Op::name).join(", ")
    ))
}

/// Whether a text could be of a field, for columns that nobody has asked for.
pub fn fits_version(text: &str) -> bool {
    text.is_empty() || decimal::<u64>(text).is_some()
}

pub fn fits_meta(text: &str) -> bool {
    text.is_empty() || text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Of a cell of an export that an export does not have.
fn saved(what: &str, text: &str) -> String {
    format!(
        "{} is not {what} as an export has it: another program may have saved the file, such as a spreadsheet, and \
         changed more; import it as ranktree has written it",
        quoted(text)
    )
}

fn named(column: &str, why: &str) -> String {
    if column.is_empty() { why.to_owned() } else { format!("column {}: {why}", quoted(column)) }
}

/// A JSON object.
fn object(parts: &[(String, String)]) -> String {
    let field = |(name, value): &(String, String)| {
        let name = serde_json::to_string(name).expect("every string can be JSON");
        format!("{name}:{value}")
    };
    format!("{{{}}}", parts.iter().map(field).collect::<Vec<_>>().join(","))
}
