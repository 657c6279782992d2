//! `--window` and `--read-window`: the instance that a board is read by.

use crate::query::WindowChoice;
use crate::types::quoted;

/// # Errors
/// In words, when the text names neither a window nor an instance.
pub fn window_argument(text: &str) -> Result<WindowChoice, String> {
    WindowChoice::of_name(text).ok_or_else(|| {
        format!(
            "the window must be all, hour, day, week, month or season, or the name of an instance such as \
             2026-11-20T09, 2026-11-20, 2026-W47, 2026-11 or s7; got {}",
            quoted(text)
        )
    })
}
