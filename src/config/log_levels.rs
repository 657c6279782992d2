//! What `RANKTREE_LOG` may say. A mistake in it is refused: the subscriber would take a level that it does
//! not know for the name of a module, and log nothing else.
//!
//! Must not know: how lines are written, which `main` sets up before anything else runs.

use crate::types::quoted;

/// What is logged unless `RANKTREE_LOG` says otherwise. What the NATS client says of its connections is said
/// by `queue::nats`, with the cause and less often.
const DEFAULT: &str = "info,async_nats=off";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The variable of the levels.
pub(super) const VARIABLE: &str = "RANKTREE_LOG";

/// The levels of the log, as the subscriber takes them.
///
/// # Errors
/// In words, when the environment names a level that does not exist.
pub fn log_levels() -> Result<String, String> {
    let variable = std::env::var_os(VARIABLE).map(|text| text.to_string_lossy().into_owned());
    levels(variable.as_deref()).map(str::to_owned)
}

/// # Arguments
/// `variable`: what the variable holds, if it is there. An empty one is none.
fn levels(variable: Option<&str>) -> Result<&str, String> {
    let Some(text) = variable.filter(|text| !text.trim().is_empty()) else { return Ok(DEFAULT) };
    match text.split(',').map(str::trim).find(|part| !part.is_empty() && !is_directive(part)) {
        None => Ok(text),
        Some(wrong) => Err(format!(
            "RANKTREE_LOG: {} is not valid: it must be a level ({}), or MODULE=LEVEL, such as \
             ranktree::queue=debug, or several of these joined by commas",
            quoted(wrong),
            LEVELS.join(", "),
        )),
    }
}

fn is_directive(part: &str) -> bool {
    let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
    // Filters by spans and fields are for developers. A module without a level means all of it.
    LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level.trim()))
        || part.contains('[')
        || part == "ranktree"
        || part.starts_with("ranktree::") && !part.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_does_not_exist_is_refused() {
        for wrong in ["debgu", "loud", "info,loud", "ranktree::queue=debgu", "debug=ranktree", "async_nats"] {
            let said = levels(Some(wrong)).expect_err(wrong);
            assert!(
                said.starts_with("RANKTREE_LOG: ") && said.contains("error, warn, info, debug"),
                "{said}"
            );
        }
    }

    #[test]
    fn levels_and_modules_are_taken_and_an_empty_variable_is_none() {
        for empty in [None, Some(""), Some(" ")] {
            assert_eq!(levels(empty), Ok(DEFAULT));
        }
        let good =
            ["debug", "WARN", "off", "info,ranktree::queue=debug", "info, async_nats=off", "ranktree::queue"];
        for good in good {
            assert_eq!(levels(Some(good)), Ok(good));
        }
    }
}
