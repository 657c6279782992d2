//! Rows out of a file, a pipe or a Redis, each as the job that it becomes.
//!
//! Must not know: where jobs are sent, or what the service answers.

mod csv_columns;
mod csv_records;
mod csv_rows;
mod csv_text;
mod input;
mod job_text;
pub mod limits;
mod ndjson_rows;
mod redis_rows;
pub mod row;
mod scale;

pub use csv_columns::ColumnNames;
pub use csv_rows::CsvRows;
pub use csv_text::BadQuotes;
pub use input::{Input, is_stdin};
pub use limits::{MAX_BODY_BYTES, MAX_CELLS, MAX_COLUMNS, MAX_ROW_BYTES};
pub use ndjson_rows::NdjsonRows;
pub use redis_rows::{RedisRows, RedisSource};
pub use row::{Defaults, Parsed, RejectedLine, Row, Rows};
