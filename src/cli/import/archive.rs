//! The board that an import makes for the rows of one instance: it has the instance's window alone, and the
//! same instance in it.
//!
//! A job enters every open instance of its board that its time falls in, so that rows of a season would also
//! change `all` of a board that has both. A board of its own has nothing that they could change. Pure.

use serde_json::{Map, Value, json};

use crate::board::{Definition, MAX_DURATION_MICROS, MAX_KEEP, OPEN_INSTANCES_MAX};
use crate::cli::board_line::ExportedInstance;
use crate::http::offset_minutes;
use crate::types::Timestamp;
use crate::window::{Calendar, Instance, Seasons, Span, Window, length_text};

const SECOND: i64 = 1_000_000;
/// The shortest that regular seasons can be.
const SEASON_MIN: i64 = 60 * SECOND;
/// The shortest that an instance is kept which somebody took the trouble to import.
const KEPT_MIN: i64 = 30 * 24 * 60 * 60 * SECOND;

/// Such a board.
#[derive(Debug)]
pub struct Archive {
    /// As JSON.
    pub definition: String,
    /// When the instance goes, with all of its entries. `None`: later than times go.
    pub drops_at: Option<Timestamp>,
}

/// The definition of such a board, and until when it has the instance.
///
/// # Arguments
/// - `definition`: of the board that the rows were on, as JSON.
/// - `now`: when they are imported; the instance must be open then.
///
/// # Errors
/// In words, when no board can have the instance, or none for long.
pub fn archive(definition: &str, rows_of: ExportedInstance, now: Timestamp) -> Result<Archive, String> {
    let ExportedInstance { instance, span } = rows_of;
    let parsed: Result<Map<String, Value>, _> = serde_json::from_str(definition);
    let mut fields = parsed.map_err(|why| format!("the file's definition is none: {why}"))?;
    let offset = fields.get("utc_offset").and_then(Value::as_str).map_or(Some(0), offset_minutes);
    let offset = offset.ok_or("the file's definition has a utc_offset that is none")?;
    check_span(rows_of, offset)?;
    let Some(ends) = ends_in_archive(rows_of) else {
        return Err(format!(
            "{instance} has not ended, and nothing tells when a season that an operator opened will end. Import \
             it once the next one has begun"
        ));
    };
    let mut regular = None;
    let shortest = if let Some(shortest) = instance.window.shortest() {
        fields.insert("season".to_owned(), Value::Null);
        shortest
    } else {
        let every = ends - span.begin.as_micros();
        let starts = first_season(instance, span.begin, every)?;
        fields
            .insert("season".to_owned(), json!({"starts": starts.to_string(), "every": length_text(every)}));
        regular = Some(Seasons::regular(starts, every));
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
    let drops_at = drops_at(rows_of, regular, offset, grace);
    let kept_until = now.as_micros().saturating_add(KEPT_MIN);
    if let Some(drops_at) = drops_at.filter(|drops_at| drops_at.as_micros() < kept_until) {
        let (window, least) = (instance.window.name(), length_text(KEPT_MIN));
        return Err(format!(
            "{instance} would be dropped with all of its entries at {drops_at}, in less than {least}: a board \
             keeps at most {MAX_KEEP} newer instances of its window {window}. Define a board with the window \
             all, and import with --rows-only"
        ));
    }
    fields.insert("windows".to_owned(), json!([instance.window.name()]));
    fields.insert("grace".to_owned(), json!(length_text(grace)));
    fields.insert("keep".to_owned(), json!(MAX_KEEP));
    // The instance stays open, so that its entries would leave.
    fields.insert("entry_ttl".to_owned(), Value::Null);
    // The board that it is from may end, and this is kept.
    fields.shift_remove("expires_at");
    fields.shift_remove("expires_after");
    // It is about the window all.
    fields.shift_remove("movement");
    Ok(Archive { definition: Value::Object(fields).to_string(), drops_at })
}

/// Whether the instance is from when to when the file says, so that its rows go into it and no other.
fn check_span(ExportedInstance { instance, span }: ExportedInstance, offset: i16) -> Result<(), String> {
    let told = |span: Span| {
        let end = span.end.map(|end| format!(" to {end}")).unwrap_or_default();
        format!("from {}{end}", span.begin)
    };
    if span.end.is_some_and(|end| end <= span.begin) {
        return Err(format!(
            "{instance} does not end after it begins: the file says that it is {}",
            told(span)
        ));
    }
    if instance.window == Window::Season {
        // The board's seasons are made so that it is then.
        return Ok(());
    }
    let found = Calendar { utc_offset_minutes: offset, seasons: None }.span(instance);
    if found == Some(span) {
        return Ok(());
    }
    let found = found.map_or_else(|| "at no time that can be written".to_owned(), told);
    Err(format!(
        "the file says that {instance} is {}, but by the utc_offset of its definition it is {found}. Its first \
         line is not as an export writes it",
        told(span)
    ))
}

/// When such a board drops the instance. `None`: later than times go.
///
/// # Arguments
/// `offset`: of its calendar from UTC, in minutes.
fn drops_at(
    rows_of: ExportedInstance,
    seasons: Option<Seasons>,
    offset: i16,
    grace: i64,
) -> Option<Timestamp> {
    let instance = rows_of.instance;
    let board = Definition {
        windows: vec![instance.window],
        seasons,
        utc_offset_minutes: offset,
        keep: MAX_KEEP,
        grace_micros: grace,
        ..Definition::default()
    };
    board.drops_at(instance)
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

/// When the first of regular seasons begins, of which the one of this number begins then.
fn first_season(instance: Instance, begin: Timestamp, every: i64) -> Result<Timestamp, String> {
    let before = every.checked_mul(instance.number - 1);
    let starts = before.and_then(|before| Timestamp::from_micros(begin.as_micros() - before).ok());
    starts.ok_or_else(|| {
        format!(
            "{instance} is so long that a first season of that length would begin before 1970. Define a board \
             with the window all, and import with --rows-only"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: &str = r#"{"keys":[{"name":"points","order":"desc"}],"policy":"incr","ties":"last",
        "windows":["all","week","season"],"season":"manual","utc_offset":"+05:30","keep":3,"grace":"1h",
        "entry_ttl":"30d","capacity":null,"movement":true}"#;

    fn made(name: &str, begin: &str, end: Option<&str>) -> Result<Value, String> {
        let made = archive_of(name, begin, end)?;
        Ok(serde_json::from_str(&made.definition).expect("JSON"))
    }

    fn archive_of(name: &str, begin: &str, end: Option<&str>) -> Result<Archive, String> {
        let time = |text| Timestamp::parse(text).expect("a time");
        let instance = Instance::of_name(name).expect("an instance");
        let rows_of = ExportedInstance { instance, span: Span { begin: time(begin), end: end.map(time) } };
        archive(BOARD, rows_of, time("2026-11-20T00:00:00Z"))
    }

    #[test]
    fn it_tells_when_the_instance_will_be_dropped_and_is_none_if_that_is_soon() {
        for (name, begin, end, expect) in [
            // 1,000 hours and the grace of 10,000 after its end.
            ("2026-11-19T09", "2026-11-19T03:30:00Z", "2026-11-19T04:30:00Z", Some("2028-02-20T12:30:00Z")),
            // 1,000 months later, and 36,500 days, as midnight is in +05:30.
            ("2026-10", "2026-09-30T18:30:00Z", "2026-10-31T18:30:00Z", Some("2210-02-04T18:30:00Z")),
            ("s3", "2026-11-19T10:00:00Z", "2026-11-19T10:10:00Z", Some("2027-02-03T19:30:00Z")),
            ("s1", "2026-09-01T00:00:00Z", "2026-11-01T00:00:00Z", None),
        ] {
            let made = archive_of(name, begin, Some(end)).expect("a good instance");
            assert_eq!(made.drops_at.map(|at| at.to_string()), expect.map(str::to_owned), "{name}");
        }
        // 11,000 minutes are 7.6 days.
        let why = archive_of("s1", "2026-11-19T10:00:00Z", Some("2026-11-19T10:00:05Z"));
        let why = why.expect_err("too short");
        let told = "s1 would be dropped with all of its entries at 2026-11-27T01:21:00Z, in less than 30d";
        assert!(why.starts_with(told) && why.contains("--rows-only"), "{why}");
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
    fn an_instance_that_is_at_another_time_than_the_file_says_is_refused() {
        for (name, begin, end, words) in [
            // As it is in UTC, and the board is not.
            (
                "2026-W46",
                "2026-11-09T00:00:00Z",
                "2026-11-16T00:00:00Z",
                "it is from 2026-11-08T18:30:00Z to 2026-11-15T18:30:00Z",
            ),
            ("2026-W46", "2026-11-01T18:30:00Z", "2026-11-08T18:30:00Z", "not as an export writes it"),
            ("2026-10", "2026-09-30T18:30:00Z", "2026-11-30T18:30:00Z", "to 2026-10-31T18:30:00Z"),
            ("s3", "2026-11-10T00:00:00Z", "2026-11-09T00:00:00Z", "does not end after it begins"),
            ("s3", "2026-11-10T00:00:00Z", "2026-11-10T00:00:00Z", "does not end after it begins"),
        ] {
            let why = archive_of(name, begin, Some(end)).expect_err("it is at another time");
            assert!(why.contains(words), "{name}: {why}");
        }
        let why = archive_of("2026-W46", "2026-11-08T18:30:00Z", None).expect_err("a week has an end");
        assert!(why.contains("not as an export writes it"), "{why}");
    }

    #[test]
    fn a_season_that_was_opened_becomes_a_regular_one_of_its_number_and_beginning() {
        let third = made("s3", "2026-09-30T10:00:00.25Z", Some("2026-10-10T10:00:00.5Z"));
        let third = third.expect("it has ended");
        // Ten days and a second: the season ends a little later than it did, and so has all of its rows.
        assert_eq!(third["season"], json!({"starts": "2026-09-10T09:59:58.25Z", "every": "864001s"}));
        let why = made("s1", "2026-11-12T10:00:00Z", Some("2026-11-12T10:00:05Z")).expect_err("too long ago");
        assert!(why.contains("more than 10000m ago"), "{why}");
        let open = made("s3", "2026-09-30T10:00:00Z", None).expect_err("it has no end");
        assert!(open.contains("s3 has not ended"), "{open}");
        let long = made("s99", "2020-01-01T00:00:00Z", Some("2025-01-01T00:00:00Z")).expect_err("1530");
        assert!(long.contains("before 1970"), "{long}");
    }
}
