//! What the command line says about how rows are read: the same for every file of an import, and for every
//! row, or the row is refused.

use crate::cli::import::read::column_names::ColumnNames;
use crate::cli::import::read::durations::DurationOf;
use crate::cli::import::read::numbers::Numbers;
use crate::cli::import::read::times::Times;
use crate::job::Op;
use crate::types::BoardName;

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Rules {
    /// The board of every row, whatever board the row names.
    pub board: Option<BoardName>,
    /// The operation of every row, whatever the row names.
    pub op: Option<Op>,
    /// That operation is `create`, because rows are for members who have no entry.
    pub if_absent: bool,
    /// The version of every row.
    pub version: Option<u64>,
    pub columns: ColumnNames,
    /// How keys are written that are no durations.
    pub numbers: Numbers,
    /// Which keys are durations.
    pub durations: Vec<DurationOf>,
    pub times: Times,
    /// Rows whose score is one of these are left out.
    pub blanks: Vec<String>,
    /// Makes names of boards of what the rows have.
    pub slug: bool,
    pub spreadsheet_safe: bool,
    /// Between the cells of a CSV.
    pub delimiter: Option<u8>,
    /// Quotation marks in a CSV are characters.
    pub no_quotes: bool,
    /// The first line of a CSV is a row, and columns have numbers.
    pub no_header: bool,
    /// Lines before the header of a CSV.
    pub skip_lines: u64,
    /// Names of fields, from the outermost in: where the rows of a JSON document are.
    pub rows_at: Vec<String>,
    /// The rows of a JSON document are an object, whose names are the members.
    pub member_from_key: bool,
}

impl Rules {
    /// Whether scores are as they are, and no option is about how they are written.
    pub fn has_plain_numbers(&self) -> bool {
        self.numbers.is_plain() && self.durations.is_empty()
    }

    /// Whether a text stands where there is no value, as `--blank` says.
    pub fn is_blank(&self, text: &str) -> bool {
        self.blanks.iter().any(|blank| blank.trim() == text.trim())
    }

    /// How a key of the score is written, by its number from 0.
    pub fn numbers_of(&self, key: usize) -> Numbers {
        let column = self.columns.scores().get(key).copied().unwrap_or("score");
        let is_of = |of: &&DurationOf| of.column.as_deref().is_none_or(|name| name == column);
        match self.durations.iter().find(is_of) {
            Some(of) => {
                Numbers { duration: Some(of.unit), scale: 1, thousands: None, ..self.numbers.clone() }
            }
            None => self.numbers.clone(),
        }
    }

    /// What the command line has that says what every row does.
    pub fn op_flag(&self) -> String {
        let op = self.op.map_or("", Op::name);
        if self.if_absent { "--if-absent".to_owned() } else { format!("--op {op}") }
    }

    /// An option that says nothing of a sorted set of Redis.
    pub fn not_of_redis(&self) -> Option<&'static str> {
        let options = [
            (!self.columns.is_empty(), "--column"),
            (self.delimiter.is_some(), "--delimiter"),
            (self.no_quotes, "--no-quotes"),
            (self.no_header, "--no-header"),
            (self.skip_lines > 0, "--skip-lines"),
            (!self.times.is_plain(), "--at-format or --at-zone"),
            (!self.blanks.is_empty(), "--blank"),
            (self.slug, "--slug"),
            (!self.rows_at.is_empty(), "--rows-at"),
            (self.member_from_key, "--member-from-key"),
            (!self.durations.is_empty(), "--duration"),
        ];
        options.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// Whether rows of JSON are to be read field by field, and not as the jobs that they are.
    pub fn maps_json(&self) -> bool {
        let Self { columns, times, blanks, slug, rows_at, member_from_key, .. } = self;
        let is_plain = self.has_plain_numbers() && times.is_plain();
        !is_plain
            || !columns.is_empty()
            || !blanks.is_empty()
            || *slug
            || !rows_at.is_empty()
            || *member_from_key
    }
}
