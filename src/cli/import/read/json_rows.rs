//! Rows of a JSON file: jobs, or objects of which the command line says what their fields are.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;
use std::io::BufRead;

use crate::cli::import::ImportError;
use crate::cli::import::read::encoding::readings;
use crate::cli::import::read::entry::{Builder, Built, Shared};
use crate::cli::import::read::json_advice::advice;
use crate::cli::import::read::json_fields::Fields;
use crate::cli::import::read::json_jobs::{JobLine, too_long};
use crate::cli::import::read::json_paths::{lookup, scalar};
use crate::cli::import::read::json_values::{Document, Found, Lines, Values, is_document};
use crate::cli::import::read::limits::MAX_JOB_BYTES;
use crate::cli::import::read::row::{Followers, LastBoard, Parsed, RejectedLine};
use crate::cli::import::read::rules::Rules;
use crate::cli::import::read::sums::{self, Doubt, Sums, is_of_sums};
use crate::cli::import::read::unrepeated::Unrepeated;
use crate::job::RejectCode;

/// The first rows, which decide about fields that nobody asked for.
const SAMPLE_ROWS: usize = 100;

/// Reads values as jobs.
pub struct JsonRows<R> {
    values: Values<R>,
    buffer: Vec<u8>,
    /// Values that were read ahead.
    ahead: VecDeque<(Found, Vec<u8>)>,
    failure: Option<ImportError>,
    rules: Rules,
    from_line: u64,
    last_board: LastBoard,
    /// Where rows are read field by field.
    mapped: Option<(Fields, Builder)>,
    note: Option<String>,
    /// What comes before the next row, the first one last.
    followers: Followers,
    /// Why the first line that cannot be read cannot be, if no line before it describes a board. Rows of an
    /// export behind it would go to another board than theirs, or to other windows.
    undescribed: Option<String>,
    is_described: bool,
    /// Whom lines of the file hide on all boards.
    hidden_everywhere: HashSet<String>,
    /// Of the rows so far that are read field by field.
    sums: Sums,
}

impl<R: BufRead> JsonRows<R> {
    /// # Arguments
    /// `head`: how the file begins.
    ///
    /// # Errors
    /// When an option is about a field that the first rows do not have.
    pub fn open(
        reader: R,
        head: &[u8],
        rules: &Rules,
        shared: Shared,
        from_line: u64,
    ) -> Result<Self, ImportError> {
        let is_placed = !rules.rows_at.is_empty() || rules.member_from_key;
        let values = if is_placed || is_document(head) {
            Values::Document(Document::new(reader, rules.rows_at.clone(), rules.member_from_key))
        } else {
            Values::Lines(Lines::new(reader))
        };
        let mut rows = Self {
            values,
            buffer: Vec::new(),
            ahead: VecDeque::new(),
            failure: None,
            rules: rules.clone(),
            from_line,
            last_board: LastBoard::default(),
            mapped: None,
            note: None,
            followers: Followers::new(),
            undescribed: None,
            is_described: false,
            hidden_everywhere: HashSet::new(),
            sums: Sums::default(),
        };
        if rules.maps_json() {
            rows.look_ahead();
            let texts: Vec<(u64, String)> = rows
                .ahead
                .iter()
                .filter_map(|(found, text)| {
                    Some((found.line, std::str::from_utf8(text).ok()?.trim().to_owned()))
                })
                .collect();
            let sample: Vec<(u64, &str)> = texts.iter().map(|(line, text)| (*line, text.as_str())).collect();
            let (fields, mut note) = Fields::find(rules, &sample)?;
            let mut builder = Builder::new(rules.clone(), fields.cell_names(), shared);
            let name = |(found, (_, text)): (&(Found, Vec<u8>), &(u64, &str))| match &fields.member {
                None => found.0.key.clone(),
                Some(path) => lookup(text, path).and_then(scalar).map(|(name, _)| name.into_owned()),
            };
            builder.look_at_members(rows.ahead.iter().zip(&sample).filter_map(name));
            if !rules.durations.is_empty() {
                let keys_of = |(line, text): (u64, &str)| -> Option<Vec<String>> {
                    let cells = fields.cells(line, text, Some(String::new()), rules, false).ok()?;
                    Some(cells.keys.iter().map(|key| key.text.to_string()).collect())
                };
                let keys: Vec<Vec<String>> = sample.iter().copied().filter_map(keys_of).collect();
                let texts = |key: usize| keys.iter().filter_map(|keys| keys.get(key).cloned()).collect();
                let names = fields.score_names();
                let samples: Vec<Vec<String>> = (0..names.len()).map(texts).collect();
                note += &builder.look_at_durations(&names, &samples);
            }
            if let Some(group) = rows.values.first_group() {
                let _ = write!(
                    note,
                    "; of the groups around the rows, no field is read: --rows-at {group} reads the first alone"
                );
            }
            rows.mapped = Some((fields, builder));
            rows.note = Some(note);
        } else {
            rows.look_ahead();
            rows.note = rows.hidden_note();
        }
        Ok(rows)
    }

    /// Says which fields are read, if rows are read field by field.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// That rows are hidden as they say, if one of the first does that is of no export.
    fn hidden_note(&self) -> Option<String> {
        let texts = self
            .ahead
            .iter()
            .filter_map(|(found, text)| Some((found.line, std::str::from_utf8(text).ok()?.trim())));
        let mut hides = None;
        for (line, text) in texts.filter(|(_, text)| text.starts_with('{')) {
            let job = self.job(line, text);
            let Ok(peek) = job.peek() else { continue };
            if peek.is_board() || peek.is_listed() {
                return None;
            }
            hides = hides.or(peek.is_hidden().then_some(line));
        }
        hides.map(|line| {
            format!("hides members whose rows have \"hidden\": true, as line {line} has; --column hidden= shows them")
        })
    }

    /// Reads the next rows; whether these are all.
    fn look_ahead(&mut self) -> bool {
        let mut bytes = 0;
        while self.ahead.len() < SAMPLE_ROWS && bytes < MAX_JOB_BYTES {
            let mut text = Vec::new();
            match self.values.next(&mut text) {
                Ok(Some(found)) => {
                    bytes += text.len();
                    self.ahead.push_back((found, text));
                }
                Ok(None) => return self.failure.is_none(),
                Err(error) => {
                    self.failure = Some(error);
                    return false;
                }
            }
        }
        false
    }

    fn next_value(&mut self) -> Result<Option<Found>, ImportError> {
        if let Some((found, text)) = self.ahead.pop_front() {
            self.buffer = text;
            return Ok(Some(found));
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.values.next(&mut self.buffer),
        }
    }

    /// As [`JsonRows::parse`], unless the rows of an export come without their board.
    fn parse_behind_board(&mut self, found: Found) -> Result<Parsed, ImportError> {
        let buffer = std::mem::take(&mut self.buffer);
        let parsed = self.parse(found, &buffer);
        self.buffer = buffer;
        let parsed = parsed?;
        match &parsed {
            Parsed::Board(_) => self.is_described = true,
            Parsed::Rejected(line) if !self.is_described && self.undescribed.is_none() => {
                self.undescribed = Some(line.detail.clone());
            }
            Parsed::Row(_) if self.undescribed.is_some() && !self.is_described && self.is_exported() => {
                if let Some(why) = self.undescribed.take() {
                    return Err(ImportError::BoardLine(why));
                }
            }
            Parsed::Row(_) | Parsed::Rejected(_) | Parsed::Blank(_) => {}
        }
        Ok(parsed)
    }

    /// Whether the row is one that an export has written.
    fn is_exported(&self) -> bool {
        let text = std::str::from_utf8(&self.buffer).unwrap_or_default().trim();
        self.job(0, text).peek().is_ok_and(|peek| peek.is_exported())
    }

    /// The line as one that may be a job.
    fn job<'a>(&'a self, line: u64, text: &'a str) -> JobLine<'a> {
        JobLine { line, text, rules: &self.rules, is_described: self.is_described }
    }

    /// # Arguments
    /// `buffer`: what was read.
    fn parse(&mut self, found: Found, buffer: &[u8]) -> Result<Parsed, ImportError> {
        let Found { line, key, too_long: longer } = found;
        if let Some(within) = longer {
            let rejected = too_long(line);
            return Ok(Parsed::Rejected(RejectedLine { detail: rejected.detail + &within, ..rejected }));
        }
        let Ok(text) = std::str::from_utf8(buffer) else {
            let why = format!("not a job object: the line is not UTF-8; {}", readings(buffer));
            return Ok(Parsed::Rejected(RejectedLine::new(line, RejectCode::Malformed, why)));
        };
        let text = text.trim();
        // Few rows are about that, and reading one again takes as long as reading it once.
        let mut hidden = None;
        if text.starts_with('{') && (text.contains("hid") || text.contains("\\u")) {
            let mut last_board = std::mem::take(&mut self.last_board);
            let job = self.job(line, text);
            hidden = job.hidden(&mut last_board);
            let everywhere = self.hides(&job).filter(|(_, on)| on.is_none()).map(|(member, _)| member);
            self.last_board = last_board;
            self.hidden_everywhere.extend(everywhere);
        }
        let is_behind =
            hidden.as_ref().is_some_and(|(member, board, _)| self.is_hidden_behind(member, board));
        if self.mapped.is_some() && !(text.starts_with('{') && self.is_job(line, text)?) {
            return Ok(self.parse_fields(line, text, key, is_behind));
        }
        let mut last_board = std::mem::take(&mut self.last_board);
        let parsed = self.job(line, text).parse(&mut last_board);
        self.last_board = last_board;
        Ok(match parsed {
            Ok((parsed, repeat)) => {
                self.followers.extend(hidden.filter(|_| !is_behind).map(|(_, _, hide)| hide));
                self.followers.extend(repeat);
                parsed
            }
            Err(rejected) => Parsed::Rejected(advised(rejected, text)),
        })
    }

    /// Whether the line is read as a job, among others that are read field by field.
    ///
    /// # Errors
    /// When it is of an export, whose scores options would change.
    fn is_job(&self, line: u64, text: &str) -> Result<bool, ImportError> {
        let job = self.job(line, text);
        let Ok(peek) = job.peek() else { return Ok(false) };
        if (peek.is_board() || peek.is_exported()) && !self.rules.has_plain_numbers() {
            return Err(ImportError::ScaledExport);
        }
        Ok(peek.is_board() || job.has_no_fields())
    }

    /// # Arguments
    /// - `key`: the row's name in the object of rows.
    /// - `is_hidden_behind`: the row that hides its member is the next line, and is not made here.
    fn parse_fields(&mut self, line: u64, text: &str, key: Option<String>, is_hidden_behind: bool) -> Parsed {
        let malformed = |why: String| Parsed::Rejected(RejectedLine::new(line, RejectCode::Malformed, why));
        if let Err(why) = serde_json::from_str::<Unrepeated>(text) {
            let repeated = why.is_data().then(|| why.to_string());
            let repeated = repeated.as_deref().and_then(|why| why.split(" at line ").next());
            return malformed(repeated.map_or_else(
                || format!("not JSON: {}{}", crate::wire::json_words(text.as_bytes(), &why), not_json(text)),
                str::to_owned,
            ));
        }
        let is_listed = || self.job(line, text).peek().is_ok_and(|peek| peek.is_exported());
        let is_exported = self.is_described || text.starts_with('{') && is_listed();
        let Some((fields, builder)) = &mut self.mapped else {
            return malformed("no field is read".to_owned());
        };
        let mut sum = None;
        let built = fields.cells(line, text, key, &self.rules, is_exported).and_then(|mut cells| {
            cells.is_hidden &= !is_hidden_behind || self.rules.if_absent;
            sum = (!is_exported && is_of_sums(&cells.member)).then(|| cells.member.to_string());
            builder.build(line, &cells)
        });
        let score = builder.first_key;
        match built {
            Ok(Built::Row(row, followers)) => {
                let refused = sum.and_then(|name| Some(sums::refusal(&name, self.sum(&name, score)?)));
                self.sums.pass(score, refused.is_none());
                if let Some(why) = refused {
                    return Parsed::Rejected(RejectedLine::new(line, RejectCode::BadMember, why));
                }
                self.followers = followers;
                Parsed::Row(row)
            }
            Ok(Built::Blank(blank)) => Parsed::Blank(blank),
            Err(rejected) => Parsed::Rejected(of_group(rejected, self.values.first_group())),
        }
    }

    /// What a row that is called as sums are has of the others, if it is one.
    fn sum(&mut self, name: &str, score: Option<i64>) -> Option<&'static str> {
        let doubt = self.sums.doubt(name, score)?;
        if let Doubt::Is(what) = doubt {
            return Some(what);
        }
        let is_whole = self.look_ahead();
        let rest = || self.ahead.iter().filter_map(|(found, text)| self.scored(found, text));
        let is_last = is_whole && rest().all(|(name, _)| is_of_sums(&name));
        match doubt {
            Doubt::IfLast(what) => is_last.then_some(what),
            _ if is_last => Some(sums::LAST_NAMED),
            _ => Sums::begins(name, score, rest(), is_whole).then_some(sums::FIRST),
        }
    }

    /// The member of a row that has one, and a score: that too, if it is a whole number.
    fn scored(&self, found: &Found, text: &[u8]) -> Option<(String, Option<i64>)> {
        let (fields, builder) = self.mapped.as_ref()?;
        let text = std::str::from_utf8(text).ok()?.trim();
        let cells = fields.cells(found.line, text, found.key.clone(), &self.rules, false).ok()?;
        let key = cells.keys.first()?;
        let score = builder.number(&key.text, key.written)?;
        Some((cells.member.into_owned(), score.integer().ok()))
    }

    /// Whether the member of an entry is hidden by the line behind it, as an export writes it, or by one
    /// before. Of rows that were cut out of an export that line may be lost.
    fn is_hidden_behind(&mut self, member: &str, board: &str) -> bool {
        if self.hidden_everywhere.contains(member) {
            return true;
        }
        if self.ahead.is_empty() && self.failure.is_none() {
            let mut text = Vec::new();
            match self.values.next(&mut text) {
                Ok(found) => self.ahead.extend(found.map(|found| (found, text))),
                Err(error) => self.failure = Some(error),
            }
        }
        let text =
            self.ahead.front().and_then(|(_, text)| std::str::from_utf8(text).ok()).unwrap_or_default();
        let next = self.hides(&self.job(0, text.trim()));
        next.is_some_and(|(hidden, on)| hidden == member && on.is_none_or(|on| on == board))
    }

    /// Who is hidden by a line, if it is passed on as it is.
    fn hides(&self, job: &JobLine<'_>) -> Option<(String, Option<String>)> {
        if self.mapped.is_some() && !job.has_no_fields() { None } else { job.hides() }
    }
}

fn at_line(mut parsed: Parsed, is_shared: bool) -> Parsed {
    match &mut parsed {
        Parsed::Row(row) => row.place.is_shared = is_shared,
        Parsed::Rejected(line) => line.place.is_shared = is_shared,
        Parsed::Board(_) | Parsed::Blank(_) => {}
    }
    parsed
}

/// The same with the options that may help.
fn advised(rejected: RejectedLine, text: &str) -> RejectedLine {
    let code = RejectCode::ALL.into_iter().find(|code| code.name() == rejected.code);
    let advice = code.map(|code| advice(text, code, &rejected.detail)).unwrap_or_default();
    let advice = if advice.is_empty() && rejected.detail.contains("JSON") {
        not_json(text).to_owned()
    } else {
        advice
    };
    RejectedLine { detail: rejected.detail + &advice, ..rejected }
}

/// What helps a row that is no JSON: some programs write so what is not a number, or several rows on a line.
fn not_json(text: &str) -> &'static str {
    if text.contains("NaN") || text.contains("Infinity") {
        "; NaN and Infinity are none of JSON's: as null, which pandas writes by itself, --blank \"\" leaves such rows out"
    } else if text.contains("}{") || text.contains("} {") {
        "; where a line has several values, jq -c . FILE | ranktree import - makes a line of each"
    } else {
        ""
    }
}

/// The same with what reads a group by itself, if a field may be one of the group around the row.
fn of_group(rejected: RejectedLine, first_group: Option<String>) -> RejectedLine {
    let is_missing = ["no field", "names no board"].iter().any(|words| rejected.detail.contains(words));
    let Some(group) = first_group.filter(|_| is_missing) else { return rejected };
    let detail = format!(
        "{}; fields of the group around a row are not read: --rows-at {group} reads the first group alone, for \
         --board NAME",
        rejected.detail
    );
    RejectedLine { detail, ..rejected }
}

impl<R: BufRead> Iterator for JsonRows<R> {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(follower) = self.followers.pop() {
            return Some(Ok(at_line(Parsed::Row(follower), self.values.is_document())));
        }
        loop {
            return match self.next_value() {
                // What a board is holds for the rows behind it, and so does which row of a time is the first.
                Ok(Some(found))
                    if found.line < self.from_line
                        && self.mapped.as_ref().is_none_or(|(fields, _)| fields.at.is_none())
                        && !self.buffer.starts_with(b"{\"board\":") =>
                {
                    continue;
                }
                Ok(Some(found)) => {
                    let line = found.line;
                    match self.parse_behind_board(found) {
                        Ok(Parsed::Row(_) | Parsed::Rejected(_) | Parsed::Blank(_))
                            if line < self.from_line =>
                        {
                            self.followers.clear();
                            continue;
                        }
                        parsed => {
                            let is_shared = self.values.is_document();
                            Some(parsed.map(|parsed| at_line(parsed, is_shared)))
                        }
                    }
                }
                Ok(None) => None,
                Err(error) => Some(Err(error)),
            };
        }
    }
}

#[cfg(test)]
#[path = "json_rows_tests.rs"]
mod tests;
