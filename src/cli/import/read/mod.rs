//! Rows out of files, pipes or a Redis, each as the job that it becomes.
//!
//! - `input`: bytes of files and pipes, unpacked; `encoding`: as UTF-8
//! - `csv_*`, `json_*`, `redis_*`: rows out of texts, each with its line
//! - `column_names`, `csv_columns`, `json_fields`: which column is what
//! - `entry`: a row's cells as jobs, by `names`, `numbers`, `durations`, `times` and `slug`
//! - `sums`: rows of totals among the others
//! - `files`: all files of an import, one after the other
//! - `kept`: rows between their check and their sending
//!
//! Must not know: where jobs are sent, or what the service answers.

mod column_names;
mod csv_cells;
mod csv_columns;
mod csv_head;
mod csv_names;
mod csv_records;
mod csv_rows;
mod csv_separators;
mod csv_text;
mod durations;
mod encoding;
mod entry;
mod exact;
mod files;
mod foreign;
mod input;
mod job_text;
mod json_advice;
mod json_fields;
mod json_hint;
mod json_jobs;
mod json_outline;
mod json_paths;
mod json_rows;
mod json_values;
mod kept;
pub mod limits;
mod names;
mod numbers;
mod plain_numbers;
mod redis_cells;
mod redis_entry;
mod redis_log;
mod redis_rows;
pub mod row;
mod rules;
mod slug;
mod sums;
mod times;
mod unrepeated;

pub use column_names::{Asked, ColumnNames, Field};
pub use csv_text::BadQuotes;
pub use durations::DurationOf;
pub use encoding::encoding;
pub use files::{FileRows, Reading};
pub use input::{Grown, InputFile};
pub use json_advice::advice;
pub use kept::{Keeper, KeptRows};
pub use limits::{MAX_BODY_BYTES, MAX_CELLS, MAX_COLUMNS, MAX_ROW_BYTES};
pub use numbers::Numbers;
pub use redis_rows::{RedisRows, RedisSource};
pub use row::{Parsed, Place, RejectedLine, Row, Rows};
pub use rules::Rules;
pub use times::{AtFormat, Times, zone};
