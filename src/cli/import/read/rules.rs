//! What the command line says about how rows are read: the same for every file of an import, and for every
//! row, or the row is refused.

use crate::cli::import::read::column_names::ColumnNames;
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
    /// The version of every row.
    pub version: Option<u64>,
    pub columns: ColumnNames,
    pub numbers: Numbers,
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
            (self.numbers.duration.is_some(), "--duration"),
        ];
        options.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// Whether rows of JSON are to be read field by field, and not as the jobs that they are.
    pub fn maps_json(&self) -> bool {
        let Self { columns, numbers, times, blanks, slug, rows_at, member_from_key, .. } = self;
        let is_plain = numbers.is_plain() && times.is_plain();
        !is_plain
            || !columns.is_empty()
            || !blanks.is_empty()
            || *slug
            || !rows_at.is_empty()
            || *member_from_key
    }
}
