//! How long what is sent may be, and how much of a file is taken for a row. A file may come from anybody, and
//! packed a thousandth of its size: nothing of it takes memory beyond these.

/// The largest body that the service takes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The largest job that fits a body of its own, between its brackets.
pub const MAX_JOB_BYTES: usize = MAX_BODY_BYTES - 2;
/// The longest row of a CSV file that is read, and may be rejected. A few times what any job may have, as
/// quotation marks and columns that are not used take room, too.
pub const MAX_ROW_BYTES: usize = 16 * MAX_JOB_BYTES;
/// The most columns of a CSV file. Six are used; the widest tables of other programs have some hundreds.
pub const MAX_COLUMNS: usize = 4_096;
/// The most cells of a row that is read, and may be rejected because it has more than the header. The reader
/// behind keeps where each cell ends.
pub const MAX_CELLS: usize = 16 * MAX_COLUMNS;
/// How far to look for what a file is.
pub const SNIFFED_BYTES: usize = 64 * 1024;
