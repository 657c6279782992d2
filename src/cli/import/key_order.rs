//! Whether columns stand in the order of the keys of a board: the first `--column score=` is of the first
//! key, whatever it is called.

use crate::cli::import::ImportError;
use crate::cli::import::send::KeyFacts;

/// # Arguments
/// - `keys`: of the board.
/// - `columns`: of the keys, as `--column` names them.
///
/// # Errors
/// When a column is called as another key than the one that is to be read from it.
pub fn check_key_order(board: &str, keys: &[KeyFacts], columns: &[String]) -> Result<(), ImportError> {
    if keys.len() != columns.len() {
        return Ok(());
    }
    // Of a path, the field that it ends in.
    let field = |column: &str| column.rsplit('.').next().unwrap_or_default().trim().to_lowercase();
    let is_called = |key: &KeyFacts, column: &str| key.name.to_lowercase() == field(column);
    for (index, (column, own)) in columns.iter().zip(keys).enumerate() {
        let other = keys.iter().position(|key| is_called(key, column));
        if let Some(other) = other.filter(|_| !is_called(own, column)) {
            let (board, column) = (board.to_owned(), column.clone());
            return Err(ImportError::CrossedKeys { board, column, key: index + 1, other: other + 1 });
        }
    }
    Ok(())
}
