//! Spans of time as an operator writes them.

use std::time::Duration;

/// Reads `500ms`, `60s`, `5m`, `1h`.
///
/// # Errors
/// When the text is no duration, or a negative one.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write it like 60s or 5m");
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}
