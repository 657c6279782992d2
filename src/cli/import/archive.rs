//! The board that an import makes for the rows of one instance: it has the instance's window alone, and the
//! same instance in it.
//!
//! A job enters every open instance of its board that its time falls in, so that rows of a season would also
//! change `all` of a board that has both. A board of its own has nothing that they could change. Pure.

use serde_json::{Map, Value, json};

use crate::board::{MAX_DURATION_MICROS, MAX_KEEP, OPEN_INSTANCES_MAX};
use crate::cli::board_line::ExportedInstance;
use crate::types::Timestamp;
use crate::window::{Instance, Window, length_text};

const SECOND: i64 = 1_000_000;
/// The shortest that regular seasons can be.
const SEASON_MIN: i64 = 60 * SECOND;

/// The definition of such a board.
///
/// # Arguments
/// - `definition`: of the board that the rows were on, as JSON.
/// - `now`: when they are imported; the instance must be open then.
///
/// # Errors
/// In words, when no board can have the instance.
pub fn archive(definition: &str, rows_of: ExportedInstance, now: Timestamp) -> Result<String, String> {
    let ExportedInstance { instance, span } = rows_of;
    let parsed: Result<Map<String, Value>, _> = serde_json::from_str(definition);
    let mut fields = parsed.map_err(|why| format!("the file's definition is none: {why}"))?;
    let Some(ends) = ends_in_archive(rows_of) else {
        return Err(format!(
            "{instance} has not ended, and nothing tells when a season that an operator opened will end. Import \
             it once the next one has begun"
        ));
    };
    let shortest = if let Some(shortest) = instance.window.shortest() {
        fields.insert("season".to_owned(), Value::Null);
        shortest
    } else {
        let every = ends - span.begin.as_micros();
        fields.insert("season".to_owned(), seasons(instance, span.begin, every)?);
        every
    };
    let grace = shortest.saturating_mul(OPEN_INSTANCES_MAX).min(MAX_DURATION_MICROS);
    if ends.saturating_add(grace) <= now.as_micros() {
        let (window, most) = (instance.window.name(), length_text(grace));
        return Err(format!(
            "{instance} ended more than {most} ago, and the window {window} can be open no longer than that. \
             Define a board with the window all, and import with --rows-only"
        ));
    }
    fields.insert("windows".to_owned(), json!([instance.window.name()]));
    fields.insert("grace".to_owned(), json!(length_text(grace)));
    fields.insert("keep".to_owned(), json!(MAX_KEEP));
    // The instance stays open, so that its entries would leave.
    fields.insert("entry_ttl".to_owned(), Value::Null);
    // It is about the window all.
    fields.shift_remove("movement");
    Ok(Value::Object(fields).to_string())
}

/// When the instance ends on such a board, in microseconds. Seasons are whole seconds there, and a minute at
/// least; those that an operator opened need not be. `None`: no end is known.
pub fn ends_in_archive(rows_of: ExportedInstance) -> Option<i64> {
    let begin = rows_of.span.begin.as_micros();
    let length = rows_of.span.end?.as_micros() - begin;
    if rows_of.instance.window != Window::Season {
        return Some(begin + length);
    }
    Some(begin + ((length + SECOND - 1) / SECOND * SECOND).max(SEASON_MIN))
}

/// Regular seasons, of which the one of this number begins then.
fn seasons(instance: Instance, begin: Timestamp, every: i64) -> Result<Value, String> {
    let before = every.checked_mul(instance.number - 1);
    let starts = before.and_then(|before| Timestamp::from_micros(begin.as_micros() - before).ok());
    let starts = starts.ok_or_else(|| {
        format!(
            "{instance} is so long that a first season of that length would begin before 1970. Define a board \
             with the window all, and import with --rows-only"
        )
    })?;
    Ok(json!({"starts": starts.to_string(), "every": length_text(every)}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Span;

    const BOARD: &str = r#"{"keys":[{"name":"points","order":"desc"}],"policy":"incr","ties":"last",
        "windows":["all","week","season"],"season":"manual","utc_offset":"+05:30","keep":3,"grace":"1h",
        "entry_ttl":"30d","capacity":null,"movement":true}"#;

    fn made(name: &str, begin: &str, end: Option<&str>) -> Result<Value, String> {
        let time = |text| Timestamp::parse(text).expect("a time");
        let instance = Instance::of_name(name).expect("an instance");
        let rows_of = ExportedInstance { instance, span: Span { begin: time(begin), end: end.map(time) } };
        let made = archive(BOARD, rows_of, time("2026-11-20T00:00:00Z"))?;
        Ok(serde_json::from_str(&made).expect("JSON"))
    }

    #[test]
    fn a_board_of_its_own_has_the_window_of_the_instance_alone_and_ranks_alike() {
        let week = made("2026-W46", "2026-11-08T18:30:00Z", Some("2026-11-15T18:30:00Z"));
        let week = week.expect("a good instance");
        for (field, expect) in [
            ("windows", json!(["week"])),
            ("season", Value::Null),
            ("policy", json!("incr")),
            ("ties", json!("last")),
            ("utc_offset", json!("+05:30")),
            ("grace", json!("36500d")),
            ("keep", json!(1_000)),
            ("entry_ttl", Value::Null),
        ] {
            assert_eq!(week[field], expect, "{field}");
        }
        assert_eq!(week.get("movement"), None);
        let hour = made("2026-11-19T09", "2026-11-19T03:30:00Z", Some("2026-11-19T04:30:00Z"));
        assert_eq!(hour.expect("a good instance")["grace"], json!("10000h"));
        let why = made("2024-11-19T09", "2024-11-19T03:30:00Z", Some("2024-11-19T04:30:00Z"));
        assert!(why.expect_err("too long ago").contains("--rows-only"));
    }

    #[test]
    fn a_season_that_was_opened_becomes_a_regular_one_of_its_number_and_beginning() {
        let third = made("s3", "2026-09-30T10:00:00.25Z", Some("2026-10-10T10:00:00.5Z"));
        let third = third.expect("it has ended");
        // Ten days and a second: the season ends a little later than it did, and so has all of its rows.
        assert_eq!(third["season"], json!({"starts": "2026-09-10T09:59:58.25Z", "every": "864001s"}));
        let short = made("s1", "2026-11-19T10:00:00Z", Some("2026-11-19T10:00:05Z")).expect("it has ended");
        assert_eq!(short["season"], json!({"starts": "2026-11-19T10:00:00Z", "every": "1m"}));
        let why = made("s1", "2026-11-12T10:00:00Z", Some("2026-11-12T10:00:05Z")).expect_err("too long ago");
        assert!(why.contains("more than 10000m ago"), "{why}");
        let open = made("s3", "2026-09-30T10:00:00Z", None).expect_err("it has no end");
        assert!(open.contains("s3 has not ended"), "{open}");
        let long = made("s99", "2020-01-01T00:00:00Z", Some("2025-01-01T00:00:00Z")).expect_err("1530");
        assert!(long.contains("before 1970"), "{long}");
    }
}
