//! Numbers and durations as files have them, and what is told of those that are refused.

use super::*;

fn numbers(decimal: char, thousands: Option<char>, scale: u32) -> Numbers {
    Numbers { decimal, thousands, scale, ..Numbers::default() }
}

fn check(numbers: &Numbers, text: &str, expect: Option<i64>) {
    assert_eq!(numbers.key(text, Written::Text).ok(), expect, "{text:?} by {numbers:?}");
}

#[test]
fn whole_numbers_are_read_however_they_are_written() {
    for (text, expect) in [
        ("1200", Some(1_200)),
        ("-7", Some(-7)),
        ("−7", Some(-7)),
        ("+7", Some(7)),
        ("007", Some(7)),
        ("-0", Some(0)),
        ("42.0", Some(42)),
        ("42.0000", Some(42)),
        ("0.000", Some(0)),
        ("1234.000", Some(1_234)),
        ("42.000", None),
        ("1e3", Some(1_000)),
        ("1.5E3", Some(1_500)),
        ("12000e-3", Some(12)),
        ("0e999999999999", Some(0)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("1e19", None),
        ("1e400", None),
        ("42.5", None),
        ("1e-1", None),
        ("42.", None),
        (".5", None),
        ("1,234", None),
        ("1 234", None),
        ("--1", None),
        ("1e", None),
        ("0x10", None),
        ("NaN", None),
        ("inf", None),
        ("1.23457E+17", None),
        ("1.2E+17", Some(120_000_000_000_000_000)),
        ("", None),
    ] {
        check(&Numbers::default(), text, expect);
    }
    let rounded = Numbers { is_rounded: true, ..Numbers::default() };
    check(&rounded, "1.23457E+17", Some(123_457_000_000_000_000));
    let given = Numbers { is_decimal_given: true, ..Numbers::default() };
    check(&given, "42.000", Some(42));
    check(&numbers('.', None, 1_000), "42.000", Some(42_000));
    assert_eq!(Numbers::default().key("42.000", Written::JsonNumber), Ok(42));
}

#[test]
fn decimals_become_whole_numbers_exactly_or_are_refused() {
    for (text, scale, expect) in [
        ("1200", 100, Some(120_000)),
        ("3.25", 100, Some(325)),
        ("-0.07", 100, Some(-7)),
        ("0.1", 10, Some(1)),
        ("12.3400000000000000000000000000000000000000000", 100, Some(1_234)),
        // A double would be 90071992547409.92 here.
        ("90071992547409.93", 100, Some(9_007_199_254_740_993)),
        ("92233720368547758.07", 100, Some(i64::MAX)),
        ("-92233720368547758.08", 100, Some(i64::MIN)),
        ("92233720368547758.08", 100, None),
        ("99999999999999999999999999999999999999999", 1, None),
        ("3.255", 100, None),
        ("3.25", 10, None),
        ("1e3", 100, Some(100_000)),
        ("3.", 100, None),
        ("-", 100, None),
        ("1.2.3", 100, None),
        ("12,5", 100, None),
    ] {
        check(&numbers('.', None, scale), text, expect);
    }
}

#[test]
fn separators_mean_what_the_options_say_and_nothing_else() {
    for (decimal, thousands, scale, text, expect) in [
        ('.', Some(','), 1, "1,234", Some(1_234)),
        ('.', Some(','), 1, "-1,234,567", Some(-1_234_567)),
        ('.', Some(','), 1, "12,34,567", Some(1_234_567)),
        ('.', Some(','), 1, "1234", Some(1_234)),
        ('.', Some(','), 100, "1,234.5", Some(123_450)),
        ('.', Some(','), 1, "1,23", None),
        ('.', Some(','), 1, "0,123", None),
        (',', Some('.'), 1, "000.123", None),
        ('.', Some(','), 1, "1234,567", None),
        ('.', Some(','), 1, ",123", None),
        ('.', Some(','), 1, "1,,234", None),
        (',', None, 10, "12,5", Some(125)),
        (',', None, 1, "1.234", None),
        (',', Some('.'), 10, "1.234,5", Some(12_345)),
        ('.', Some(' '), 1, "1 234 567", Some(1_234_567)),
        ('.', Some(' '), 1, "1\u{a0}234\u{202f}567", Some(1_234_567)),
        ('.', Some('\''), 1, "1’234", Some(1_234)),
        ('.', Some('_'), 1, "1_000", Some(1_000)),
    ] {
        check(&numbers(decimal, thousands, scale), text, expect);
    }
    // A number of JSON has its own point, whatever texts have.
    let german = numbers(',', Some('.'), 10);
    assert_eq!(german.key("1.5", Written::JsonNumber), Ok(15));
}

#[test]
fn fractions_are_rounded_only_where_that_was_asked_for() {
    for (text, scale, expect) in [
        ("1.4", 1, 1),
        ("1.5", 1, 2),
        ("-1.5", 1, -2),
        ("-1.4", 1, -1),
        ("0.3333333333333333333333333333333333333333", 100, 33),
        ("2.49999999999999999999999999999999999999", 1, 2),
        ("7", 1, 7),
        ("-0.2", 1, 0),
    ] {
        let rounded = Numbers { is_rounded: true, scale, ..Numbers::default() };
        assert_eq!(rounded.key(text, Written::Text), Ok(expect), "{text} times {scale}");
    }
}

#[test]
fn durations_are_counted_in_their_unit() {
    use DurationUnit::{Ms, S, Us};
    for (unit, text, expect) in [
        (Ms, "1:23.456", Some(83_456)),
        (S, "26:50:29", Some(96_629)),
        (S, "1:02:03:04", Some(93_784)),
        (S, "PT1M", Some(60)),
        (S, "1 day 2:03:04", Some(93_784)),
        (S, "1 day, 2:03:04", Some(93_784)),
        (Ms, "0 days 00:01:23.456000", Some(83_456)),
        (S, "2 days 0:00:00", Some(172_800)),
        (S, "1 day 2:03", None),
        (S, "-1 day 2:03:04", None),
        (S, "1 day 25:03:04", None),
        (S, "1 days", Some(86_400)),
        (Ms, "PT1H2M3.5S", Some(3_723_500)),
        (S, "P1DT2H", Some(93_600)),
        (Ms, "83.456", Some(83_456)),
        (S, "83", Some(83)),
        (Us, "0:00.000001", Some(1)),
        (Ms, "1m 2.25s", Some(62_250)),
        (Ms, "250ms", Some(250)),
        (S, "2h", Some(7_200)),
        (S, "-0:05", Some(-5)),
        (Ms, "1:5.5", Some(65_500)),
        (S, "1:23.456", None),
        (S, "1:60", None),
        (S, "1:234", None),
        (S, "1:70:00", None),
        (S, "1:", None),
        (S, ":30", None),
        (S, "P1M", None),
        (S, "1s 2m", None),
        (S, "+5.123", None),
        (S, "fast", None),
        (S, "1,234", None),
    ] {
        check(&Numbers { duration: Some(unit), ..Numbers::default() }, text, expect);
    }
    let german = Numbers { duration: Some(Ms), decimal: ',', ..Numbers::default() };
    check(&german, "1:23,456", Some(83_456));
    let rounded = Numbers { duration: Some(S), is_rounded: true, ..Numbers::default() };
    check(&rounded, "1:23.5", Some(84));
}

#[test]
fn a_refusal_names_the_separator_and_the_option_that_helps() {
    let comma = "has a comma: --thousands \",\" if it separates thousands; --decimal \",\" if it is the decimal point";
    for (numbers, text, expect) in [
        (Numbers::default(), "1,234", comma),
        (Numbers::default(), "1,234", "(--column score=A --column score=B)"),
        (Numbers::default(), "1,234,567", "has a comma: --thousands \",\""),
        (Numbers::default(), "12,5", "has a comma: --decimal \",\" if it is the decimal point"),
        (numbers('.', None, 100), "12,5", "has a comma: --decimal \",\" if it is the decimal point"),
        (Numbers::default(), "1 234", "has a space: --thousands \" \""),
        (Numbers::default(), "1\u{a0}234", "has a space: --thousands \" \""),
        (
            Numbers::default(),
            "1.234,5",
            "has a point and a comma: --thousands \".\" --decimal \",\" reads it",
        ),
        (
            Numbers::default(),
            "1 234 567,5",
            "has a space and a comma: --thousands \" \" --decimal \",\" reads it",
        ),
        (numbers('.', Some(','), 1), "0,123", "--decimal \",\" in place of --thousands"),
        (Numbers::default(), "7.65612E+16", "--round takes the six digits that are left"),
        (Numbers::default(), "1'234", "has an apostrophe: --thousands \"'\""),
        (Numbers::default(), "1.234.567", "has a point: --thousands \".\""),
        (numbers(',', None, 1), "1.234", "has a point: --thousands \".\""),
        (Numbers::default(), "3;4", "--column score=A --column score=B"),
        (Numbers::default(), "12.34", "--scale 100 keeps its 2 places after the \".\", and --round rounds"),
        (Numbers::default(), "1.234", "or --thousands \".\" if it separates thousands"),
        (numbers('.', None, 10), "12.34", "times 10 is not a whole number; a larger --scale keeps more"),
        (Numbers::default(), "1:23.456", "looks like a duration: --duration ms"),
        (Numbers::default(), "PT1M", "looks like a duration: --duration ms"),
        (Numbers::default(), "DNF", "\"DNF\" is not a number; --blank \"DNF\" leaves such rows out"),
        (Numbers::default(), "-", "--blank \"-\" leaves such rows out"),
        (Numbers::default(), "", "the score is empty; --blank \"\""),
        (Numbers::default(), "12 pts", "take away what is there but \"12\""),
        (Numbers::default(), "$8,694", "take away what is there but \"8,694\""),
        (Numbers::default(), "$8,694", "in this column alone"),
        (Numbers::default(), "98.7%", "take the sign away in this column if 98.7 is to be the score"),
        (Numbers::default(), "5pts", "write it without what stands behind it"),
        (Numbers::default(), "1.2k", "a multiple such as 1.2k as 1200"),
        (Numbers::default(), "E", "write 0 in its place, and if it is no score, --blank \"E\""),
        (Numbers::default(), "2  / 35", "is not a number such as 1200 or -3.25"),
        (
            Numbers { duration: Some(DurationUnit::S), ..Numbers::default() },
            "DNF",
            "--blank \"DNF\" leaves such rows",
        ),
        (
            Numbers { duration: Some(DurationUnit::S), ..Numbers::default() },
            "1'23\"456",
            "write it as in 1:23.456",
        ),
        (
            Numbers { duration: Some(DurationUnit::S), ..Numbers::default() },
            "1:23.4 min",
            "write it as in 1:23.456",
        ),
        (Numbers::default(), "１２３", "has digits or fractions of another kind"),
        (Numbers::default(), "1½", "has digits or fractions of another kind"),
        (Numbers::default(), "- 2.468", "is not a number such as 1200 or -3.25"),
        (Numbers::default(), "5k", "is not a number such as 1200 or -3.25"),
        (Numbers::default(), "12.Jan", "is not a number such as 1200 or -3.25"),
        (Numbers::default(), "42.000", "--decimal . or --thousands . says which"),
        (Numbers::default(), "12a3", "is not a number such as 1200 or -3.25"),
        (
            Numbers::default(),
            "1.2345678901",
            "has 10 places after the \".\": --scale 1000000000 --round keeps 9",
        ),
        (numbers('.', None, 1_000_000_000), "1.2345678901", "is not a whole number; --round rounds"),
        (Numbers::default(), "1e30", "is outside the signed 64-bit range"),
        (
            Numbers { duration: Some(DurationUnit::S), ..Numbers::default() },
            "1:23.456",
            "--duration ms keeps more",
        ),
        (Numbers { duration: Some(DurationUnit::S), ..Numbers::default() }, "+5.1", "a gap to another row"),
    ] {
        let told = numbers.key(text, Written::Text).expect_err(text);
        assert!(told.contains(expect), "{text:?}: {told}");
    }
    let lost = Numbers::default().number("1e-400", Written::Text);
    assert!(lost.is_err(), "a double has no such number but 0: {lost:?}");
}
