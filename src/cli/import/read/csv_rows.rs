//! Rows of a CSV file: a header that says which column is what, then one job per record.

use std::io::BufRead;

use serde_json::value::RawValue;
use smallvec::{SmallVec, smallvec};

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::read::csv_columns::{ColumnNames, Columns};
use crate::cli::import::read::csv_records::{Records, board_line};
use crate::cli::import::read::job_text::JobText;
use crate::cli::import::read::limits::MAX_COLUMNS;
use crate::cli::import::read::row::{Defaults, LastBoard, Parsed, RejectedLine, Row};
use crate::cli::import::read::scale::scaled;
use crate::cli::spreadsheet::unguarded;
use crate::job::{Op, RejectCode};
use crate::types::{BoardName, MAX_KEYS, Malformed, MemberId, Score, Timestamp, decimal, quoted};
use crate::wire::json_words;
use crate::wire::lenient::parse_integer;

/// Reads records as jobs.
pub struct CsvRows<R> {
    records: Records<R>,
    header: Vec<String>,
    columns: Columns,
    defaults: Defaults,
    last_board: LastBoard,
    /// What scores are multiplied by.
    scale: u32,
    /// The board of an export, until it was returned as the first row.
    board: Option<BoardLine>,
    /// Comes before the next record.
    repeat: Option<Row>,
    /// Whether names have an apostrophe where a spreadsheet would compute them.
    is_spreadsheet_safe: bool,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header, and what an export has before it.
    ///
    /// # Errors
    /// When it cannot be read, or lacks a column that is needed.
    pub fn open(mut reader: R, names: &ColumnNames, mut defaults: Defaults) -> Result<Self, ImportError> {
        let board = board_line(&mut reader)?;
        if board.is_some() {
            // The rows of an export are scores, and no increments.
            defaults.op.get_or_insert(Op::Set);
        }
        let mut records = Records::new(reader, u64::from(board.is_some()));
        if records.read()?.is_none() {
            return Err(ImportError::Empty);
        }
        if records.record.len() > MAX_COLUMNS {
            return Err(ImportError::ManyColumns(records.record.len()));
        }
        let name = |cell: &[u8]| String::from_utf8_lossy(cell).trim().to_owned();
        let header: Vec<_> = records.record.iter().map(name).collect();
        let columns = Columns::find(&header, names, &defaults)?;
        let last_board = LastBoard::default();
        let is_spreadsheet_safe = board.as_ref().is_some_and(|board| board.spreadsheet_safe);
        let (scale, repeat) = (1, None);
        Ok(Self { records, header, columns, defaults, last_board, scale, board, repeat, is_spreadsheet_safe })
    }

    /// # Arguments
    /// `is_safe`: whether names have an apostrophe where a spreadsheet would compute them, also if no first line
    /// says so.
    pub fn spreadsheet_safe(self, is_safe: bool) -> Self {
        Self { is_spreadsheet_safe: self.is_spreadsheet_safe || is_safe, ..self }
    }

    /// Multiplies every key of every score, which may be a decimal number then.
    pub fn scaled_by(self, scale: u32) -> Self {
        Self { scale, ..self }
    }

    /// Says which columns are not used, if any.
    pub fn ignored_note(&self) -> Option<String> {
        self.columns.ignored_note(&self.header)
    }

    /// A row of several lines may be several rows, because of a quotation mark that should not be there.
    fn with_last_line(&self, rejected: RejectedLine) -> RejectedLine {
        let last = self.records.last_line;
        if last == rejected.line {
            return rejected;
        }
        let detail = format!("{}; a quoted cell makes one row of the lines up to {last}", rejected.detail);
        RejectedLine { detail, ..rejected }
    }

    /// The row, and the one that is to follow it.
    fn parse(&mut self, line: u64) -> Result<(Row, Option<Row>), RejectedLine> {
        let refuse = |code, why: Malformed, text: &str| RejectedLine::new(line, code, why.got(text));
        let malformed = |why: String| RejectedLine::new(line, RejectCode::Malformed, why);
        let record = &self.records.record;
        let (found, expected) = (record.len(), self.header.len());
        if found != expected {
            return Err(malformed(format!("the header has {expected} columns, and this row has {found}")));
        }
        let Columns { board, member, score, at, version, meta, updated_at } = self.columns;
        let cell = |column: usize| {
            let bytes = record.get(column).unwrap_or_default();
            let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            std::str::from_utf8(bytes).map_err(|_| malformed("the row is not UTF-8".to_owned()))
        };
        // An empty cell is an absent field.
        let optional = |column: Option<usize>| match column {
            Some(column) => cell(column).map(|text| Some(text.trim()).filter(|text| !text.is_empty())),
            None => Ok(None),
        };

        let member = cell(member)?;
        let member = if self.is_spreadsheet_safe { unguarded(member) } else { member };
        let member = MemberId::new(member).map_err(|why| refuse(RejectCode::BadMember, why, member))?;
        let board = match (&self.defaults.board, optional(board)?) {
            (Some(given), _) => given.as_str(),
            (None, Some(name)) if self.last_board.is(name) => name,
            (None, Some(name)) => {
                BoardName::new(name).map_err(|why| refuse(RejectCode::Malformed, why, name))?;
                name
            }
            (None, None) => {
                return Err(malformed("the row names no board, and --board is not given".to_owned()));
            }
        };
        let score = if self.defaults.op.is_none_or(Op::takes_score) {
            let text = optional(score)?.unwrap_or_default();
            Some(
                match self.scale {
                    1 => parse_score(text),
                    scale => parse_scaled(text, scale),
                }
                .map_err(|why| RejectedLine::new(line, RejectCode::BadScore, why))?,
            )
        } else {
            None
        };
        let time = |column: Option<usize>| {
            let parse = |text| parse_time(text).map_err(|why| refuse(RejectCode::Malformed, why, text));
            optional(column)?.map(parse).transpose()
        };
        let (at, updated_at) = (time(at)?, time(updated_at)?);
        let no_version =
            |text| malformed(format!("a version must be an unsigned 64-bit integer; got {}", quoted(text)));
        let version = optional(version)?.map(|text| decimal::<u64>(text).ok_or_else(|| no_version(text)));
        let version = version.transpose()?;

        let meta = optional(meta)?.map(|text| {
            serde_json::from_str::<&RawValue>(text).map_err(|why| {
                let why = json_words(text.as_bytes(), &why);
                malformed(format!("meta must be a JSON object; got {}: {why}", quoted(text)))
            })
        });
        let meta = meta.transpose()?;

        let op = self.defaults.op.map(Op::name);
        let meta = meta.map(RawValue::get);
        let job = JobText { board, member: member.as_str(), score: score.as_ref(), op, version, at, meta };
        let boards = smallvec![self.last_board.share(board)];
        let row = Row::new(line, job.json(), member.as_str(), op, version.is_some(), boards);
        // An export of an entry that was updated after its score was reached.
        let repeat = match (at, updated_at) {
            (Some(at), Some(updated_at))
                if at != updated_at && version.is_none() && self.defaults.op == Some(Op::Set) =>
            {
                Some(row.repeated(JobText { at: Some(updated_at), meta: None, ..job }.json()))
            }
            _ => None,
        };
        Ok((row, repeat))
    }
}

impl<R: BufRead> Iterator for CsvRows<R> {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(board) = self.board.take() {
            return Some(Ok(Parsed::Board(board.with_name(self.defaults.board.as_ref()))));
        }
        if let Some(repeat) = self.repeat.take() {
            return Some(Ok(Parsed::Row(repeat)));
        }
        match self.records.read() {
            Ok(Some(line)) => match self.parse(line) {
                Ok((row, repeat)) => {
                    self.repeat = repeat;
                    Some(Ok(Parsed::Row(row)))
                }
                Err(rejected) => Some(Ok(Parsed::Rejected(self.with_last_line(rejected)))),
            },
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// `1200`, or `1200,90000` for several keys.
fn parse_score(text: &str) -> Result<Score, String> {
    let keys = text.split(',').map(|key| parse_integer(key.trim()));
    let keys: SmallVec<[i64; MAX_KEYS]> = keys.collect::<Result<_, _>>()?;
    Score::new(&keys).map_err(|why| why.got(text))
}

/// The same with decimal numbers, each multiplied.
fn parse_scaled(text: &str, scale: u32) -> Result<Score, String> {
    let keys = text.split(',').map(|key| scaled(key.trim(), scale));
    Score::new(&keys.collect::<Result<Vec<i64>, _>>()?).map_err(|why| why.to_string())
}

/// RFC 3339, or a date, which is its midnight in UTC.
fn parse_time(text: &str) -> Result<Timestamp, Malformed> {
    let is_date = text.len() == "2026-07-24".len();
    if is_date { Timestamp::parse(&format!("{text}T00:00:00Z")) } else { Timestamp::parse(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str, columns: &[&str], defaults: Defaults) -> Result<Vec<Parsed>, ImportError> {
        let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
        CsvRows::open(text.as_bytes(), &ColumnNames::from_arguments(&columns)?, defaults)?.collect()
    }

    /// Jobs and rejects, each with its line.
    fn told(parsed: Vec<Parsed>) -> Vec<(u64, String)> {
        let tell = |parsed| match parsed {
            Parsed::Row(row) => (row.line, row.job),
            Parsed::Rejected(line) => (line.line, line.code),
            Parsed::Board(board) => (0, board.json()),
        };
        parsed.into_iter().map(tell).collect()
    }

    fn check(text: &str, expect: &[(u64, &str)]) {
        let told = told(open(text, &[], Defaults::default()).expect("the header is good"));
        let told: Vec<_> = told.iter().map(|(line, said)| (*line, said.as_str())).collect();
        assert_eq!(told, expect, "{text:?}");
    }

    #[test]
    fn scores_are_multiplied_key_by_key() {
        let rows = "board,member,score\na,p,12.5\na,p,\"3,0.25\"\na,p,1.255\na,p,fast\n";
        let rows = CsvRows::open(rows.as_bytes(), &ColumnNames::default(), Defaults::default());
        let rows = rows.expect("the header is good").scaled_by(100).collect::<Result<_, _>>();
        let job = |score: &str| format!("{{\"board\":\"a\",\"member\":\"p\",\"score\":{score}}}");
        let expect = [
            (2, job("1250")),
            (3, job("[300,25]")),
            (4, "bad_score".to_owned()),
            (5, "bad_score".to_owned()),
        ];
        assert_eq!(told(rows.expect("it can be read")), expect);
    }

    #[test]
    fn good_rows_become_jobs() {
        let arena = "{\"board\":\"arena\",\"member\":\"p42\",\"score\":1200}";
        check("board,member,score\narena,p42,1200\n", &[(2, arena)]);
        check("board,member,score\r\narena,p42,1200", &[(2, arena)]);
        check("\"Score\", Member ,BOARD,rank\n 1200 ,p42,arena,1\n", &[(2, arena)]);
        check("board,member,score,at,version\narena,p42,1200,,\n", &[(2, arena)]);
        check("board,member,score\n", &[]);
        check(
            "board,member,score,at\narena,a/b.c d,\"-9223372036854775808, 9223372036854775807\",2026-07-24\n",
            &[(
                2,
                "{\"board\":\"arena\",\"member\":\"a/b.c d\",\
                 \"score\":[-9223372036854775808,9223372036854775807],\"at\":\"2026-07-24T00:00:00Z\"}",
            )],
        );
        check(
            "at,version,board,member,score\n2026-11-20T18:59:58+09:00,18446744073709551615,arena,\"a \"\"b\"\"\",0\n",
            &[(
                2,
                "{\"board\":\"arena\",\"member\":\"a \\\"b\\\"\",\"score\":0,\
                 \"version\":18446744073709551615,\"at\":\"2026-11-20T09:59:58Z\"}",
            )],
        );
    }

    #[test]
    fn an_export_says_first_what_the_board_is_and_its_rows_set() {
        let board = "{\"board\":\"arena\",\"definition\":{\"policy\":\"incr\"}}";
        let job = "{\"board\":\"arena\",\"member\":\"m\",\"score\":5,\"op\":\"set\"}";
        for end in ["\n", "\r\n"] {
            let text = format!("#ranktree {board}{end}board,member,score{end}arena,m,5{end}arena,m,x");
            check(&text, &[(0, board), (3, job), (4, "bad_score")]);
        }
        // A header may begin with the same character.
        let row = "{\"board\":\"arena\",\"member\":\"m\",\"score\":5}";
        check("#,board,member,score\n1,arena,m,5", &[(2, row)]);
        let error = open("#ranktree {}\nboard,member,score\n", &[], Defaults::default());
        let error = error.expect_err("it says nothing").to_string();
        assert!(error.starts_with("the first line does not describe a board: "), "{error}");
    }

    #[test]
    fn apostrophes_of_a_file_for_spreadsheets_are_taken_away() {
        let job = |member: &str| format!("{{\"board\":\"b\",\"member\":\"{member}\",\"score\":1}}");
        let rows = "board,member,score\nb,'=1+1,1\nb,''x,1\nb,'m,1\nb,-1,1\n";
        let read = |is_safe| {
            let rows = CsvRows::open(rows.as_bytes(), &ColumnNames::default(), Defaults::default());
            let rows = rows.expect("the header is good").spreadsheet_safe(is_safe);
            told(rows.collect::<Result<_, _>>().expect("readable"))
        };
        let members = |members: [&str; 4]| (2..).zip(members.map(job)).collect::<Vec<_>>();
        assert_eq!(read(true), members(["=1+1", "'x", "'m", "-1"]));
        assert_eq!(read(false), members(["'=1+1", "''x", "'m", "-1"]));
        let text =
            format!("#ranktree {{\"board\":\"b\",\"spreadsheet_safe\":true,\"definition\":{{}}}}\n{rows}");
        let told = told(open(&text, &[], Defaults::default()).expect("the header is good"));
        let job = job("=1+1").replace("}", ",\"op\":\"set\"}");
        assert_eq!(told.get(1), Some(&(3, job)), "the first line says so");
    }

    #[test]
    fn bad_rows_are_rejected_one_by_one_under_their_line() {
        let job = |member: &str| format!("{{\"board\":\"b\",\"member\":\"{member}\",\"score\":1}}");
        let (first, last) = (job("first"), job("last"));
        for (row, code) in [
            ("b,m,1.5", "bad_score"),
            ("b,m,", "bad_score"),
            ("b,m,9223372036854775808", "bad_score"),
            ("b,m,\"1,2,3,4,5,6,7,8,9\"", "bad_score"),
            ("b,m,NaN", "bad_score"),
            ("b,m,+1", "bad_score"),
            ("b,m,\"1,+2\"", "bad_score"),
            ("b,,1", "bad_member"),
            ("b,\"a\tb\",1", "bad_member"),
            ("no spaces,m,1", "malformed"),
            (",m,1", "malformed"),
            ("b,m", "malformed"),
            ("b,m,1,2", "malformed"),
        ] {
            check(
                &format!("board,member,score\nb,first,1\n{row}\nb,last,1\n"),
                &[(2, &first), (3, code), (4, &last)],
            );
        }
        for (at, version) in [("yesterday", "1"), ("2026-13-01", "1"), ("", "-1"), ("", "+1"), ("", "1.0")] {
            check(&format!("board,member,score,at,version\nb,m,1,{at},{version}\n"), &[(2, "malformed")]);
        }
    }

    #[test]
    fn lines_are_counted_as_an_editor_counts_them() {
        check(
            "\n\nboard,member,score\n\n\nb,m,x\n\r\nb,m,x\n\"b\",\"a\nb\",1\nb,m,x",
            &[(6, "bad_score"), (8, "bad_score"), (9, "bad_member"), (11, "bad_score")],
        );
    }

    #[test]
    fn a_quotation_mark_that_is_not_closed_ends_the_import() {
        for (text, line) in [
            ("board,member,score,note\nb,m,1,x\nb,n,2,\"x\nb,o,3,x\n", 3),
            ("board,member,score\nb,m,\"2", 2),
            ("board,\"member,score\nb,m,2", 1),
            ("#ranktree {\"board\":\"b\",\"definition\":{}}\nboard,member,score\nb,m,\"2", 3),
        ] {
            let error = open(text, &[], Defaults::default()).expect_err(text).to_string();
            let expect = format!("line {line}: the quotation mark that opens a cell here is not closed");
            assert!(error.starts_with(&expect), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_rows_before_a_bad_quotation_mark_are_read() {
        let text = "board,member,score\nb,m,1\nb,n,\"2\nb,o,3\n";
        let rows = CsvRows::open(text.as_bytes(), &ColumnNames::default(), Defaults::default());
        let mut rows = rows.expect("the header is good");
        let first = rows.next().expect("a row").expect("it is whole");
        assert!(matches!(first, Parsed::Row(row) if row.line == 2));
        assert!(matches!(rows.next(), Some(Err(ImportError::Quotes(_)))));
    }

    #[test]
    fn a_rejected_row_says_which_lines_it_has() {
        let parsed = open("board,member,score\nb,\"m\nn\no\",1\n", &[], Defaults::default());
        let parsed = parsed.expect("it is closed");
        let [Parsed::Rejected(row)] = parsed.as_slice() else { panic!("rejected, and not {parsed:?}") };
        assert_eq!(row.line, 2);
        assert!(row.detail.ends_with("one row of the lines up to 4"), "{}", row.detail);
    }

    #[test]
    fn a_row_that_is_not_utf_8_is_rejected() {
        let text = b"board,member,score\nb,\xff,1\nb,m,1\n".as_slice();
        let rows =
            CsvRows::open(text, &ColumnNames::default(), Defaults::default()).expect("the header is good");
        let codes = told(rows.collect::<Result<_, _>>().expect("readable"));
        assert_eq!(codes.first().map(|(line, code)| (*line, code.as_str())), Some((2, "malformed")));
        assert_eq!(codes.len(), 2);
    }

    #[test]
    fn columns_may_have_other_names_and_the_command_line_fills_in() {
        let defaults = Defaults { board: BoardName::new("kills").ok(), op: Some(Op::Incr) };
        let text = "date,who,points,score\n2026-07-24,p42,3,x\n";
        let parsed = open(text, &["at=date", "member=Who", "score=points"], defaults).expect("well-formed");
        let [Parsed::Row(row)] = parsed.as_slice() else { panic!("one row, and not {parsed:?}") };
        assert_eq!(
            row.job,
            "{\"board\":\"kills\",\"member\":\"p42\",\"score\":3,\"op\":\"incr\",\"at\":\"2026-07-24T00:00:00Z\"}"
        );
        assert!(row.adds, "an increment without a version counts twice when sent twice");
    }

    #[test]
    fn operations_without_a_score_need_no_column_for_it() {
        let defaults = Defaults { board: None, op: Some(Op::Remove) };
        let parsed = open("board,member\narena,p42\n", &[], defaults).expect("well-formed");
        assert_eq!(
            told(parsed),
            [(2, "{\"board\":\"arena\",\"member\":\"p42\",\"op\":\"remove\"}".to_owned())]
        );
    }

    #[test]
    fn an_unfit_header_is_refused_before_any_row() {
        for (text, columns, expect) in [
            ("", vec![], "the file is empty"),
            ("\n\r\n", vec![], "the file is empty"),
            ("a,b\n", vec![], "the file's header has no column \"member\"; it has: a, b."),
            ("member,score\n", vec![], "the file's header has no column \"board\""),
            (
                "member;score\nm;1\n",
                vec![],
                "the file's header has one column, member;score: columns must be",
            ),
            ("board\tmember\tscore\n", vec![], "the file's header has one column, "),
            ("board,member\n", vec![], "the file's header has no column \"score\""),
            ("board,member,score\n", vec!["at=date"], "the file's header has no column \"date\""),
            ("board,member,score,Member\n", vec![], "the file's header names the column \"member\" twice"),
            ("board,member,score\n", vec!["when=date"], "--column must be FIELD=NAME"),
            ("board,member,score\n", vec!["at="], "--column must be FIELD=NAME"),
        ] {
            let error = open(text, &columns, Defaults::default()).expect_err(text).to_string();
            assert!(error.starts_with(expect), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_file_of_too_many_columns_is_refused() {
        let more = |columns: usize| format!("board,member,score{}\n", ",".repeat(columns - 3));
        let header = |columns| open(&more(columns), &[], Defaults::default()).map(|rows| rows.len());
        assert!(header(MAX_COLUMNS).is_ok_and(|rows| rows == 0));
        let refused = header(MAX_COLUMNS + 1).expect_err("one too many").to_string();
        assert!(
            refused.starts_with("the file's header has 4097 columns, and an import reads 4096"),
            "{refused}"
        );
        let refused = header(15_000_000).expect_err("far too many").to_string();
        assert!(
            refused.starts_with("line 1: the row that begins here has more than 65536 cells"),
            "{refused}"
        );
        // A row of more columns than the header is rejected alone, and one of far more ends the import.
        let wide =
            |columns: usize| format!("board,member,score\nb,m,1\nb,m,1{}\nb,n,1\n", ",".repeat(columns));
        let rows = open(&wide(10_000), &[], Defaults::default()).expect("it is read to its end");
        assert_eq!(told(rows).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4]);
        let refused = open(&wide(500_000), &[], Defaults::default()).expect_err("far too many").to_string();
        assert!(refused.starts_with("line 3: the row that begins here has more than"), "{refused}");
    }

    #[test]
    fn columns_without_a_use_are_named() {
        let note = |text: &str| {
            CsvRows::open(text.as_bytes(), &ColumnNames::default(), Defaults::default())
                .expect("the header is good")
                .ignored_note()
        };
        assert_eq!(note("board,member,score,at,version\n"), None);
        assert_eq!(
            note("date,board,member,score,rank\n").as_deref(),
            Some("columns that are not used: date, rank")
        );
    }
}
