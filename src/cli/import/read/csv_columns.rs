//! Which column of a CSV file is what: its header, and `--column FIELD=NAME`.

use crate::cli::import::ImportError;
use crate::cli::import::read::row::Defaults;
use crate::job::Op;
use crate::types::shown;

/// Columns that a message names.
const COLUMNS_NAMED: usize = 20;

/// What other programs put between columns.
const SEPARATORS: [(char, &str); 3] = [('\t', "tabs"), (';', "semicolons"), ('|', "vertical bars")];

const FIELDS: [&str; 6] = ["board", "member", "score", "at", "version", "meta"];

/// Under which name each field is looked for in the header.
#[derive(Debug, Clone, Default)]
pub struct ColumnNames(Vec<(&'static str, String)>);

impl ColumnNames {
    /// Reads `--column FIELD=NAME`; fields that are not mentioned have their own name.
    ///
    /// # Errors
    /// When an argument is not of that form.
    pub fn from_arguments(arguments: &[String]) -> Result<Self, ImportError> {
        let parse = |argument: &String| {
            let (field, name) = argument.split_once('=')?;
            let field = FIELDS.into_iter().find(|known| *known == field.trim())?;
            Some((field, name.trim().to_owned())).filter(|(_, name)| !name.is_empty())
        };
        let named = |argument| parse(argument).ok_or_else(|| ImportError::ColumnArgument(argument.clone()));
        arguments.iter().map(named).collect::<Result<_, _>>().map(Self)
    }

    fn given(&self, field: &'static str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| *known == field).map(|(_, name)| name.as_str())
    }
}

/// Where each field is in a record.
pub struct Columns {
    pub board: Option<usize>,
    pub member: usize,
    pub score: Option<usize>,
    pub at: Option<usize>,
    pub version: Option<usize>,
    pub meta: Option<usize>,
    /// Of an export only.
    pub updated_at: Option<usize>,
    /// Of an export only.
    pub hidden: Option<usize>,
}

impl Columns {
    /// # Errors
    /// When the header lacks a column that is needed, or names one twice.
    pub fn find(header: &[String], names: &ColumnNames, defaults: &Defaults) -> Result<Self, ImportError> {
        let missing = |field, name: &str| {
            if let [only] = header
                && let Some((_, separator)) = SEPARATORS.iter().find(|(mark, _)| only.contains(*mark))
            {
                return ImportError::Separator { found: shown(only), separator };
            }
            let named: Vec<String> = header.iter().take(COLUMNS_NAMED).map(|name| shown(name)).collect();
            let more = header.len().saturating_sub(named.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            ImportError::MissingColumn { field, name: name.to_owned(), found: named.join(", ") + &more }
        };
        let find = |field| match names.given(field) {
            Some(name) => find_column(header, name)?.ok_or_else(|| missing(field, name)).map(Some),
            None => find_column(header, field),
        };
        let is_exported = find_column(header, "position")?.is_some();
        let columns = Self {
            // With --board, the column decides nothing and need not be there.
            board: if defaults.board.is_some() { None } else { find("board")? },
            member: find("member")?.ok_or_else(|| missing("member", "member"))?,
            score: find("score")?,
            at: find("at")?,
            version: find("version")?,
            meta: find("meta")?,
            updated_at: if is_exported { find_column(header, "updated_at")? } else { None },
            hidden: if is_exported { find_column(header, "hidden")? } else { None },
        };
        if columns.board.is_none() && defaults.board.is_none() {
            return Err(missing("board", "board"));
        }
        if columns.score.is_none() && defaults.op.is_none_or(Op::takes_score) {
            return Err(missing("score", "score"));
        }
        Ok(columns)
    }

    /// Says which columns are not used, if any.
    pub fn ignored_note(&self, header: &[String]) -> Option<String> {
        let Self { board, member, score, at, version, meta, updated_at, hidden } = *self;
        let used = [board, Some(member), score, at, version, meta, updated_at, hidden];
        let ignored = header.iter().enumerate().filter(|(index, _)| !used.contains(&Some(*index)));
        let ignored: Vec<_> = ignored.map(|(_, name)| name).collect();
        let named: Vec<_> = ignored.iter().take(COLUMNS_NAMED).map(|name| shown(name)).collect();
        let more = ignored.len().saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!ignored.is_empty()).then(|| format!("columns that are not used: {}{more}", named.join(", ")))
    }
}

/// Case does not matter in column names.
fn find_column(header: &[String], name: &str) -> Result<Option<usize>, ImportError> {
    let mut places = (0..).zip(header).filter(|(_, found)| found.eq_ignore_ascii_case(name));
    let place = places.next().map(|(index, _)| index);
    if places.next().is_some() { Err(ImportError::RepeatedColumn(name.to_owned())) } else { Ok(place) }
}
