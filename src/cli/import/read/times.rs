//! Cells that are times: `--at-format` and `--at-zone`.
//!
//! Nothing is guessed: a time without a zone is refused unless the user names one, and so is a number without
//! its unit.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use foldhash::fast::FixedState;
use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::cli::import::read::column_names::Fits;
use crate::cli::import::read::exact::{Exact, SHORTENED, is_scientific};
use crate::types::{Timestamp, quoted};

/// Milliseconds of 1973-03-03: as milliseconds, any time of today in seconds is before that.
const MILLIS_MIN: i128 = 100_000_000_000;

/// Seconds of 1973-03-03: a date of digits and a day number of a spreadsheet are less.
const SECONDS_MIN: i128 = 100_000_000;
const DAY_NUMBER: &str = "a spreadsheet's number of a day is to be saved as a date, such as 2026-07-24";

/// How times are written.
#[derive(Debug, Clone, Default)]
pub struct Times {
    pub format: Option<AtFormat>,
    pub zone: Option<TimeZone>,
}

/// How many times are known at once; of others, rows are ordered by their members' ids.
const TIMES_KNOWN: usize = 1_000_000;

/// Rows that have the same time, such as a day: each is a microsecond after the one before it in all files of
/// one pass, so that their order is that of the rows.
#[derive(Debug, Clone, Default)]
pub struct InTurn(Rc<RefCell<HashMap<Timestamp, i64, FixedState>>>);

impl InTurn {
    pub fn next(&self, at: Timestamp) -> Timestamp {
        let mut times = self.0.borrow_mut();
        let known = times.len();
        let earlier = match times.get_mut(&at) {
            Some(earlier) => earlier,
            None if known < TIMES_KNOWN => times.entry(at).or_insert(-1),
            None => return at,
        };
        *earlier += 1;
        Timestamp::from_micros(at.as_micros() + *earlier).unwrap_or(at)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtFormat {
    /// Seconds since 1970, with a fraction or not.
    Unix,
    UnixMillis,
    /// As `strptime` has it.
    Pattern(String),
}

impl AtFormat {
    /// Reads `--at-format`.
    ///
    /// # Errors
    /// When it is no pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "unix" => return Ok(Self::Unix),
            "unix-ms" => return Ok(Self::UnixMillis),
            _ => {}
        }
        let sample = DateTime::constant(2026, 11, 20, 9, 59, 58, 0).to_zoned_datetime(TimeZone::UTC);
        let written = sample.ok().map(|sample| strtime::format(text, &sample));
        match written {
            Some(Ok(_)) if text.contains('%') => Ok(Self::Pattern(text.to_owned())),
            Some(Err(why)) => Err(format!("not a pattern of times: {why}")),
            _ => {
                Err("it must be unix, unix-ms, or a pattern such as %d.%m.%Y or %m/%d/%Y %H:%M:%S".to_owned())
            }
        }
    }
}

/// Reads `--at-zone`: `Europe/Berlin`, `+05:30`.
///
/// # Errors
/// When there is no such zone.
pub fn zone(text: &str) -> Result<TimeZone, String> {
    if let Some(offset) = offset(text) {
        return Ok(TimeZone::fixed(offset));
    }
    TimeZone::get(text).map_err(|_| {
        "it must be the name of a zone such as Europe/Berlin, or an offset such as +05:30".to_owned()
    })
}

fn offset(text: &str) -> Option<Offset> {
    if text == "Z" {
        return Some(Offset::UTC);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let fits = (0..=14).contains(&hours) && (0..60).contains(&minutes);
    fits.then(|| Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()).flatten()
}

/// Seconds since 1970, between 2001 and 2040.
const COUNTS: Range<i128> = 1_000_000_000..2_200_000_000;

/// Months as dates spell them, by the first three letters, in some languages.
const MONTHS: [&str; 20] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mär", "mai", "okt",
    "dez", "ene", "abr", "ago", "dic",
];

/// Whether a text is a time by all appearances, however it is written.
pub fn looks_like_time(text: &str) -> bool {
    if is_scientific(text) {
        let whole = Exact::parse(&text.replace(',', "."), '.', None).map_or(0, |exact| exact.whole);
        return COUNTS.contains(&whole) || (COUNTS.start * 1_000..COUNTS.end * 1_000).contains(&whole);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !whole.is_empty() && is_digits(whole) && is_digits(fraction) {
        // A count since 1970, between 2001 and 2040, or a date of digits.
        let is_count = matches!(whole.len(), 10 | 13 | 16) && ("10".."22").contains(&whole);
        return is_count || fraction.is_empty() && whole.len() == 8 && date_of_digits(whole);
    }
    let groups: Vec<&str> =
        text.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
    let is_year = |group: &&&str| group.len() == 4 && ("1000".."2999").contains(&**group);
    if text.contains(char::is_alphabetic) && groups.iter().any(|group| is_year(&group)) {
        let mut words = text.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase);
        if words.any(|word| MONTHS.iter().any(|month| word.starts_with(month))) {
            return true;
        }
    }
    let date = text.split([' ', 'T', ',']).next().unwrap_or_default();
    let parts: Vec<&str> = date.split(['-', '/', '.']).collect();
    let [first, second, third] = parts.as_slice() else { return false };
    let is_short = |part: &&str, most: u8| part.parse::<u8>().is_ok_and(|part| (1..=most).contains(&part));
    let is_last_year = is_year(&third) || third.len() == 2 && is_digits(third);
    let are_short =
        is_short(first, 31) && is_short(second, 31) && (is_short(first, 12) || is_short(second, 12));
    is_year(&first) && is_short(second, 12) && is_short(third, 31) || are_short && is_last_year
}

fn date_of_digits(text: &str) -> bool {
    let part =
        |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<u16>().ok()).unwrap_or(0);
    (1900..2100).contains(&part(0, 4)) && (1..=12).contains(&part(4, 6)) && (1..=31).contains(&part(6, 8))
}

impl Times {
    pub fn is_plain(&self) -> bool {
        self.format.is_none() && self.zone.is_none()
    }

    /// Whether a cell is such a time, for a column that nobody has asked for.
    pub fn fits(&self, text: &str) -> Fits {
        // How times are written was said of times that are to be read.
        if !self.is_plain() || self.parse(text).is_ok() {
            return Fits::Yes;
        }
        if looks_like_time(text) { Fits::OtherTime } else { Fits::No }
    }

    /// # Errors
    /// What is wrong with it, and the option that helps.
    pub fn parse(&self, text: &str) -> Result<Timestamp, String> {
        match &self.format {
            None => self.parse_plain(text),
            Some(AtFormat::Unix | AtFormat::UnixMillis) if is_scientific(text) => {
                Err(format!("{} {SHORTENED}", quoted(text)))
            }
            Some(AtFormat::Unix) => unix(text),
            Some(AtFormat::UnixMillis) => unix_millis(text),
            Some(AtFormat::Pattern(pattern)) => self.parse_pattern(pattern, text),
        }
    }

    /// RFC 3339; or a date, or a date and a time, in the zone. A date is its midnight.
    fn parse_plain(&self, text: &str) -> Result<Timestamp, String> {
        if let Ok(time) = Timestamp::parse(text) {
            return Ok(time);
        }
        let told = quoted(text);
        if is_scientific(text) {
            return Err(format!("{told} {SHORTENED}"));
        }
        if let Ok(instant) = text.parse::<jiff::Timestamp>() {
            return in_range(instant, &told);
        }
        let is_number =
            text.starts_with(|c: char| c.is_ascii_digit()) && Exact::parse(text, '.', None).is_some();
        if is_number {
            let how = match text.split('.').next().map_or(0, str::len) {
                ..8 => DAY_NUMBER.to_owned(),
                8 => "--at-format %Y%m%d reads it as a date".to_owned(),
                9..=11 => "--at-format unix reads it as a count since 1970".to_owned(),
                _ => "--at-format unix-ms reads it as a count since 1970".to_owned(),
            };
            return Err(format!("{told} is no time by itself; {how}"));
        }
        if text.len() == "2026-07-24".len()
            && let Ok(date) = text.parse::<Date>()
        {
            return self.in_zone(date.to_datetime(jiff::civil::Time::midnight()), text);
        }
        match (text.parse::<DateTime>(), &self.zone) {
            (Ok(time), Some(_)) => self.in_zone(time, text),
            (Ok(_), None) => Err(format!(
                "{told} has no time zone; --at-zone names it, such as --at-zone UTC or Europe/Berlin"
            )),
            (Err(_), _) => Err(format!(
                "{told} is not a time such as 2026-11-20T09:59:58Z or 2026-11-20; --at-format says how it is \
                 written, such as --at-format \"%d.%m.%Y %H:%M\""
            )),
        }
    }

    fn parse_pattern(&self, pattern: &str, text: &str) -> Result<Timestamp, String> {
        let told = quoted(text);
        let parsed = strtime::parse(pattern, text)
            .map_err(|why| format!("{told} is not a time as --at-format {pattern:?} has it: {why}"))?;
        if parsed.offset().is_some()
            && let Ok(instant) = parsed.to_timestamp()
        {
            return in_range(instant, &told);
        }
        let date = parsed
            .to_date()
            .map_err(|why| format!("{told}: --at-format {pattern:?} makes no date: {why}"))?;
        let time = match parsed.to_time() {
            Ok(time) => time,
            // A pattern without hours is a date, which is its midnight.
            Err(_) if parsed.hour().is_none() => jiff::civil::Time::midnight(),
            Err(why) => return Err(format!("{told}: --at-format {pattern:?} makes no time: {why}")),
        };
        if parsed.hour().is_some() && self.zone.is_none() {
            return Err(format!(
                "{told} has no time zone; --at-zone names it, such as --at-zone UTC or Europe/Berlin"
            ));
        }
        self.in_zone(date.to_datetime(time), text)
    }

    /// Where clocks are put forward or back, a time that is not there, or is there twice, is refused.
    fn in_zone(&self, time: DateTime, text: &str) -> Result<Timestamp, String> {
        let told = quoted(text);
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        let found = zone.to_ambiguous_timestamp(time);
        let name = zone.iana_name().unwrap_or("the zone");
        match found.offset() {
            AmbiguousOffset::Unambiguous { .. } => {}
            AmbiguousOffset::Gap { .. } => {
                return Err(format!("{told} is no time in {name}: clocks are put forward over it"));
            }
            AmbiguousOffset::Fold { before, after } => {
                return Err(format!(
                    "{told} is there twice in {name}, where clocks are put back: write which, as {time}{before} or \
                     {time}{after}"
                ));
            }
        }
        let instant = found.unambiguous().map_err(|why| format!("{told} is no time: {why}"))?;
        in_range(instant, &told)
    }
}

fn in_range(instant: jiff::Timestamp, told: &str) -> Result<Timestamp, String> {
    let micros = instant.as_microsecond();
    Timestamp::from_micros(micros).map_err(|_| match micros {
        ..0 => format!("{told} is before 1970, and times begin there"),
        0.. => format!("{told} is after April 2262, and times end there"),
    })
}

fn unix(text: &str) -> Result<Timestamp, String> {
    let told = quoted(text);
    let exact = Exact::parse(text, '.', None).ok_or_else(|| format!("{told} is not a number of seconds"))?;
    if exact.whole < SECONDS_MIN {
        let date = if exact.whole > 19_000_000 { ", as is a date of digits: --at-format %Y%m%d" } else { "" };
        return Err(format!(
            "{told} seconds since 1970 are before 1973, so these are probably none: {DAY_NUMBER}{date}"
        ));
    }
    // Input is cut to the microsecond.
    let fraction = exact.fraction.get(..6).unwrap_or(&exact.fraction).to_owned();
    let micros = Exact { fraction, ..exact.clone() }.times(1_000_000, false);
    micros.ok().and_then(|micros| Timestamp::from_micros(micros).ok()).ok_or_else(|| {
        let millis = exact.whole > MILLIS_MIN && exact.fraction.is_empty();
        let hint = if millis { "; as milliseconds it may be: --at-format unix-ms" } else { "" };
        format!("{told} seconds since 1970 are not between 1970 and April 2262, as times must be{hint}")
    })
}

fn unix_millis(text: &str) -> Result<Timestamp, String> {
    let told = quoted(text);
    let exact =
        Exact::parse(text, '.', None).ok_or_else(|| format!("{told} is not a number of milliseconds"))?;
    if exact.whole < MILLIS_MIN {
        return Err(format!(
            "{told} milliseconds since 1970 are before 1973, so these are probably seconds: --at-format unix"
        ));
    }
    let micros = exact.times(1_000, false).ok().and_then(|micros| Timestamp::from_micros(micros).ok());
    micros.ok_or_else(|| {
        format!("{told} milliseconds since 1970 are not between 1970 and April 2262, as times must be")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(format: &str, at_zone: &str) -> Times {
        let format = (!format.is_empty()).then(|| AtFormat::parse(format).expect("a format"));
        let zone = (!at_zone.is_empty()).then(|| zone(at_zone).expect("a zone"));
        Times { format, zone }
    }

    #[test]
    fn times_are_read_as_the_options_say() {
        for (format, zone, text, expect) in [
            ("", "", "2026-11-20T18:59:58+09:00", "2026-11-20T09:59:58Z"),
            ("", "", "2026-07-24", "2026-07-24T00:00:00Z"),
            ("", "Europe/Berlin", "2026-07-24", "2026-07-23T22:00:00Z"),
            ("", "Europe/Berlin", "2026-07-24 10:00:00", "2026-07-24T08:00:00Z"),
            ("", "Europe/Berlin", "2026-12-24T10:00", "2026-12-24T09:00:00Z"),
            ("", "+05:30", "2026-07-24 10:00:00", "2026-07-24T04:30:00Z"),
            ("", "Europe/Berlin", "2026-03-29 03:00", "2026-03-29T01:00:00Z"),
            ("%d.%m.%Y", "", "24.07.2026", "2026-07-24T00:00:00Z"),
            ("%m/%d/%Y %I:%M %p", "America/New_York", "07/24/2026 01:30 PM", "2026-07-24T17:30:00Z"),
            ("%d/%b/%Y:%H:%M:%S %z", "", "24/Jul/2026:10:00:00 +0200", "2026-07-24T08:00:00Z"),
            ("unix", "", "1784894400", "2026-07-24T12:00:00Z"),
            ("unix", "", "1784894400.25", "2026-07-24T12:00:00.25Z"),
            ("unix-ms", "", "1784894400250", "2026-07-24T12:00:00.25Z"),
        ] {
            let read = times(format, zone).parse(text).map(|time| time.to_string());
            assert_eq!(read.as_deref(), Ok(expect), "{text} by {format:?} in {zone:?}");
        }
    }

    #[test]
    fn what_is_no_such_time_is_refused_with_the_option_that_helps() {
        for (format, zone, text, expect) in [
            ("", "", "1784894400", "--at-format unix reads"),
            ("", "", "1784894400250", "--at-format unix-ms reads"),
            ("", "", "2026-07-24 10:00:00", "has no time zone; --at-zone"),
            ("", "", "24.07.2026", "--at-format says how it is written"),
            ("", "", "yesterday", "--at-format"),
            ("", "", "2026-13-01", "--at-format"),
            ("", "", "1969-12-31T23:59:59Z", "is before 1970, and times begin there"),
            ("", "", "1901-07-24", "is before 1970"),
            ("%d.%m.%Y", "", "24.07.1969", "is before 1970"),
            ("%d.%m.%Y", "", "07/24/2026", "is not a time as --at-format \"%d.%m.%Y\" has it"),
            ("%d.%m.%Y %H:%M", "", "24.07.2026 10:00", "has no time zone"),
            ("unix", "", "1784894400250", "--at-format unix-ms"),
            ("unix", "", "soon", "is not a number of seconds"),
            ("unix", "", "46227", "a spreadsheet's number of a day"),
            ("unix", "", "20260724", "--at-format %Y%m%d"),
            ("", "", "46227", "a spreadsheet's number of a day"),
            ("", "", "20260724", "--at-format %Y%m%d reads it"),
            ("", "Europe/Berlin", "2026-03-29 02:30", "is no time in Europe/Berlin"),
            ("", "Europe/Berlin", "2026-10-25 02:30", "is there twice in Europe/Berlin"),
            ("%d.%m.%Y %H:%M", "America/New_York", "08.03.2026 02:30", "is no time in America/New_York"),
            ("unix-ms", "", "1784894400", "probably seconds: --at-format unix"),
            ("unix-ms", "", "1.78489E+12", "has shortened"),
            ("unix-ms", "", "1,78489E+12", "has shortened"),
            ("unix-ms", "", "1.784894400250e12", "has shortened"),
            ("unix", "", "1.78489E+09", "has shortened"),
            ("unix", "", "1.78489e9", "has shortened"),
            ("", "", "1.78489E+12", "has shortened"),
        ] {
            let told = times(format, zone).parse(text).expect_err(text);
            assert!(told.contains(expect), "{text}: {told}");
        }
        for bad in ["%K", "dd.mm.yyyy", ""] {
            assert!(AtFormat::parse(bad).is_err(), "{bad}");
        }
        for bad in ["Europe/Atlantis", "+25:00", ""] {
            assert!(super::zone(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_of_other_forms_are_told_from_what_is_none() {
        for text in [
            "2026-07-24 10:00:00",
            "2026-07-24T10:00",
            "24.07.2026",
            "3.7.26",
            "7/24/2026",
            "7/4/2026 3:04 PM",
            "Jun 12 1998",
            "24. Juli 2026",
            "Friday, July 24, 2026 3:04 PM",
            "1784894400",
            "1784894400.5",
            "1784894400250",
            "20260724",
            "1901-07-24",
            "12-Mar-2026",
            "1.78489E+12",
            "1.78489e9",
        ] {
            assert!(looks_like_time(text), "{text}");
        }
        for text in [
            "",
            "x",
            "5",
            "46227",
            "1.2.3",
            "1:23.456",
            "98765432",
            "9784894400",
            "Marvin",
            "may",
            "1.2",
            "10-5",
        ] {
            assert!(!looks_like_time(text), "{text}");
        }
    }
}
