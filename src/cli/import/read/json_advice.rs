//! What helps a job that is refused as it is written: the option that reads the field in question.
//!
//! Rows that are jobs are passed on as they are, so that the service's rules hold for them. With an option
//! about fields they are read field by field, and then the same forms are taken as in a CSV.

use serde_json::value::RawValue;

use crate::cli::import::read::json_hint::{by_columns, hint, within};
use crate::cli::import::read::json_paths::{lookup, scalar};
use crate::cli::import::read::numbers::Numbers;
use crate::cli::import::read::slug::slug;
use crate::cli::import::read::times::Times;
use crate::job::RejectCode;
use crate::types::{BoardName, Timestamp};

/// Behind the words of a refusal, with what separates them. Empty: no option helps.
pub fn advice(text: &str, code: RejectCode, why: &str) -> String {
    let found = match code {
        RejectCode::BadScore => of_score(text),
        RejectCode::BadMember => of_member(text),
        RejectCode::Malformed => of_board(text)
            .or_else(|| of_time(text))
            .or_else(|| of_version(text))
            .or_else(|| of_scores(text))
            .or_else(|| of_names(text, why)),
        _ => None,
    };
    found.map(|found| format!("; {found}")).unwrap_or_default()
}

fn of_score(text: &str) -> Option<String> {
    let Some(score) = lookup(text, "score") else { return of_scores(text) };
    let keys: Vec<&str> = if score.starts_with('[') {
        let keys: Vec<&RawValue> = serde_json::from_str(score).ok()?;
        keys.into_iter().map(RawValue::get).collect()
    } else {
        vec![score]
    };
    let numbers = Numbers::default();
    let mut is_text = false;
    for key in keys {
        if key == "null" {
            return Some("--blank \"\" leaves such rows out".to_owned());
        }
        let (text, written) = scalar(key)?;
        is_text |= key.starts_with('"');
        match numbers.number(&text, written) {
            Ok((_, None)) => {}
            Ok((_, Some(why))) | Err(why) => return Some(why),
        }
    }
    is_text.then(|| "--column score=score reads texts that are numbers, too".to_owned())
}

/// Jobs of several boards have no options about fields.
fn of_scores(text: &str) -> Option<String> {
    let scores = lookup(text, "scores").filter(|scores| scores.starts_with(['{', '[']))?;
    let how = "--board NAME --column score=scores.NAME reads one of them, with every option about numbers";
    (scores.starts_with('{') && lookup(text, "score").is_none()).then(|| how.to_owned())
}

fn of_member(text: &str) -> Option<String> {
    let member = lookup(text, "member")?;
    let is_number = member.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    is_number.then(|| "--column member=member reads numbers as names".to_owned())
}

fn of_board(text: &str) -> Option<String> {
    let (board, _) = scalar(lookup(text, "board")?)?;
    BoardName::new(&board).err()?;
    Some(match slug(&board) {
        Some(made) => format!("--slug makes {made} of it"),
        None => "--board NAME sends every row to one board".to_owned(),
    })
}

fn of_time(text: &str) -> Option<String> {
    let at = lookup(text, "at").filter(|at| *at != "null")?;
    if at.starts_with('{') {
        return Some(within("at", "at", at).trim_start_matches("; ").to_owned());
    }
    let (told, _) = scalar(at)?;
    if at.starts_with('"') && Timestamp::parse(&told).is_ok() {
        return None;
    }
    let times = Times::default().parse(&told);
    Some(
        times.map_or_else(|why| why, |_| "--column at=at reads dates, too, as their midnight UTC".to_owned()),
    )
}

fn of_version(text: &str) -> Option<String> {
    let version = lookup(text, "version")?;
    let is_one = version.trim_matches('"').parse::<u64>().is_ok();
    (!is_one).then(|| "--column version= leaves it out".to_owned())
}

fn of_names(text: &str, why: &str) -> Option<String> {
    if why.contains("member is missing") {
        if let Some(columns) = by_columns(text) {
            return Some(columns.to_owned());
        }
        let place = hint(text, &[], false)
            .map(|hint| format!("; the rows may be within: {hint}"))
            .unwrap_or_default();
        let how = "--column member=NAME --column score=NAME reads the fields of rows that are no jobs";
        return Some(format!("{how}{place}"));
    }
    let is_unknown = why.contains("no field named");
    is_unknown.then(|| "--column score=score reads the fields that it names, and no others".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_that_reads_a_field_is_told_as_for_a_csv() {
        use RejectCode::{BadMember, BadScore, Malformed};
        let of = |field: &str| format!("{{\"board\":\"b\",\"member\":\"m\",{field}}}");
        for (text, code, expect) in [
            (of(r#""score":"1,234""#), BadScore, "has a comma: --thousands \",\" if it separates thousands"),
            (of(r#""score":12.5"#), BadScore, "--scale 10 keeps its 1 places"),
            (of(r#""score":[1,"2.25"]"#), BadScore, "--scale 100 keeps its 2 places"),
            (of(r#""score":"1:23.456""#), BadScore, "looks like a duration: --duration ms"),
            (of(r#""score":"1.000""#), BadScore, "--decimal . or --thousands . says which"),
            (of(r#""score":"1e3""#), BadScore, "--column score=score reads texts that are numbers"),
            (of(r#""score":null"#), BadScore, "--blank \"\""),
            (of(r#""score":"DNF""#), BadScore, "--blank \"DNF\""),
            (of(r#""score":5,"at":1784894400"#), Malformed, "--at-format unix reads it"),
            (of(r#""score":5,"at":"2026-07-24 10:00:00""#), Malformed, "--at-zone names it"),
            (of(r#""score":5,"at":"24.07.2026""#), Malformed, "--at-format says how it is written"),
            (of(r#""score":5,"at":"2026-07-24""#), Malformed, "--column at=at reads dates"),
            (
                of(r#""score":5,"at":{"$date":"2026-07-24T10:00:00Z"}"#),
                Malformed,
                "--column 'at=at.$date' reads",
            ),
            (of(r#""score":5,"version":"x""#), Malformed, "--column version= leaves it out"),
            (
                r#"{"board":"Summer Cup","member":"m","score":5}"#.to_owned(),
                Malformed,
                "--slug makes summer-cup",
            ),
            (r#"{"board":"b","member":7,"score":5}"#.to_owned(), BadMember, "--column member=member"),
            (r#"{"member":"m","scores":{"x":1.5}}"#.to_owned(), BadScore, "--column score=scores.NAME"),
        ] {
            let told = advice(&text, code, "");
            assert!(told.contains(expect), "{text}: {told}");
        }
        assert_eq!(advice(&of(r#""score":5,"op":"x""#), Malformed, "op is none"), "");
    }
}
