//! Durations as people and programs write them: `1:23.456`, `26:50:29`, `PT1M`, `1 day 2:03:04`; and
//! `--duration`, which says what they are counted in.
//!
//! Must not know: columns and rows, nor what a plain number counts (`plain_numbers`).

use clap::ValueEnum as _;

use crate::cli::import::read::exact::Exact;

/// What durations are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DurationUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
}

impl DurationUnit {
    pub fn per_second(self) -> u32 {
        match self {
            Self::S => 1,
            Self::Ms => 1_000,
            Self::Us => 1_000_000,
        }
    }

    /// As `--duration` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "s",
            Self::Ms => "ms",
            Self::Us => "us",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::S => "seconds",
            Self::Ms => "milliseconds",
            Self::Us => "microseconds",
        }
    }
}

/// One `--duration`: which keys are durations, and what they are counted in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationOf {
    pub unit: DurationUnit,
    /// The key's column, as `--column` has it. `None`: every key is one.
    pub column: Option<String>,
}

impl DurationOf {
    /// Reads `ms`, or `ms=Lap time`.
    ///
    /// # Errors
    /// When there is no such unit, or no name behind the sign.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (unit, column) = match text.split_once('=') {
            Some((unit, column)) => (unit, Some(column.trim().to_owned())),
            None => (text, None),
        };
        let unit = DurationUnit::from_str(unit, false).ok();
        match (unit, column) {
            (Some(unit), column) if column.as_deref() != Some("") => Ok(Self { unit, column }),
            _ => Err("it must be s, ms or us, or one of these for a column, as in ms=Lap".to_owned()),
        }
    }
}

pub fn looks_like_duration(text: &str) -> bool {
    let of_clock = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | ',' | '-' | '+');
    let is_clock = text.contains(':') && text.chars().all(of_clock);
    let is_iso =
        text.trim_start_matches('-').starts_with("PT") && text.contains(|c: char| c.is_ascii_digit());
    is_clock || is_iso || days_and_clock(text).is_some()
}

/// The seconds of a duration: `1:23.456`, `26:50:29`, `2:01:02:03` (days first), `PT1H2M3.5S`, `1h 2m 3s`, or
/// seconds alone.
///
/// # Errors
/// That it is none, and what one is like.
pub fn seconds_of(text: &str, decimal: char) -> Result<Exact, String> {
    const FORM: &str = "not a duration such as 1:23.456, 26:50:29, PT1M or 83.456";
    if text.starts_with('+') {
        return Err("a duration with a plus sign is a gap to another row, and no score".to_owned());
    }
    let (is_negative, unsigned) = match text.strip_prefix(['-', '−']) {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    let exact = if let Some((days, clock)) = days_and_clock(unsigned) {
        // Some programs mean by -1 day, 23:59:59 a second, and others nearly two days.
        if is_negative || clock.matches(':').count() != 2 {
            return Err("days before hours, minutes and seconds are read as in 1 day 2:03:04".to_owned());
        }
        clock_seconds(&format!("{days}:{clock}"), decimal)?
    } else if unsigned.contains(':') {
        clock_seconds(unsigned, decimal)?
    } else if unsigned.starts_with(['P', 'p']) || unsigned.ends_with(|c: char| c.is_ascii_alphabetic()) {
        spelled_seconds(unsigned, decimal).ok_or(FORM)?
    } else {
        Exact::parse(unsigned, decimal, None).filter(|exact| !exact.is_negative).ok_or(FORM)?
    };
    Ok(Exact { is_negative, ..exact })
}

/// `1 day 2:03:04`, `0 days 00:01:23.456000`, `1 day, 2:03:04`: the days, and the rest.
fn days_and_clock(text: &str) -> Option<(&str, &str)> {
    let (days, rest) = text.split_once(' ')?;
    let rest = rest.strip_prefix("days").or_else(|| rest.strip_prefix("day"))?;
    let clock = rest.strip_prefix(',').unwrap_or(rest).strip_prefix(' ')?;
    let is_number = !days.is_empty() && days.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && clock.contains(':')).then_some((days, clock))
}

fn clock_seconds(text: &str, decimal: char) -> Result<Exact, String> {
    let wrong =
        || "not a duration such as 1:23.456 (minutes and seconds) or 26:50:29 (hours first)".to_owned();
    let parts: Vec<&str> = text.split(':').collect();
    let (last, leading) = parts.split_last().ok_or_else(wrong)?;
    let (seconds, fraction) = last.split_once(decimal).unwrap_or((last, ""));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(seconds) || (last.contains(decimal) && !is_digits(fraction)) || leading.len() > 3 {
        return Err(wrong());
    }
    // Of days, hours, minutes, seconds, those that are there: the last is seconds.
    let units: [i128; 4] = [86_400, 3_600, 60, 1];
    let units = units.iter().skip(3 - leading.len());
    let mut total = 0_i128;
    for (index, (part, unit)) in leading.iter().chain([&seconds]).zip(units).enumerate() {
        if !is_digits(part) || part.len() > 12 {
            return Err(wrong());
        }
        let number: i128 = part.parse().map_err(|_| wrong())?;
        let most = if *unit == 3_600 { 24 } else { 60 };
        if index > 0 && (number >= most || part.len() > 2) {
            return Err(format!("{part} is too many where minutes or seconds end at 59, and hours at 23"));
        }
        total += number * unit;
    }
    Ok(Exact { is_negative: false, whole: total, fraction: fraction.trim_end_matches('0').to_owned() })
}

/// `PT1H2M3.5S`, `1h2m3.5s`, `250ms`.
fn spelled_seconds(text: &str, decimal: char) -> Option<Exact> {
    let text = text.to_ascii_lowercase();
    let is_iso = text.starts_with('p');
    let mut rest = text.strip_prefix('p').unwrap_or(&text);
    let mut is_of_day = is_iso;
    let mut total = Exact { is_negative: false, whole: 0, fraction: String::new() };
    let mut least = u32::MAX;
    let mut count = 0;
    loop {
        rest = rest.trim_start();
        if is_of_day && let Some(after) = rest.strip_prefix('t') {
            (rest, is_of_day) = (after, false);
            continue;
        }
        if rest.is_empty() {
            return (count > 0).then_some(total);
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != decimal)?;
        let (number, unit) = rest.split_at_checked(digits)?;
        let end =
            unit.trim_start().find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.trim_start().len());
        // Of ISO 8601, units are one letter each.
        let (unit, after) = unit.trim_start().split_at_checked(if is_iso { end.min(1) } else { end })?;
        let seconds: i128 = match unit {
            "d" | "day" | "days" => 86_400,
            "h" | "hour" | "hours" if !is_of_day => 3_600,
            "m" | "min" | "mins" | "minute" | "minutes" if !is_of_day => 60,
            "s" | "sec" | "secs" | "second" | "seconds" if !is_of_day => 1,
            "ms" if !is_iso => 0,
            _ => return None,
        };
        let order = u32::try_from(seconds).ok()?;
        if order >= least {
            return None;
        }
        least = order;
        let exact = Exact::parse(number, decimal, None)?;
        let is_last = after.trim().is_empty();
        if !exact.fraction.is_empty() && !is_last {
            return None;
        }
        if seconds == 0 {
            if exact.whole > 999 && total.whole > 0 {
                return None;
            }
            let digits = format!("{:03}{}", exact.whole % 1_000, exact.fraction);
            total.whole += exact.whole / 1_000;
            digits.trim_end_matches('0').clone_into(&mut total.fraction);
        } else {
            total.whole = total.whole.checked_add(exact.whole.checked_mul(seconds)?)?;
            // A part of a minute, such as that of 12.5 min, is a number of seconds with as many places.
            let places = exact.fraction.len();
            let part =
                if places == 0 { 0 } else { exact.fraction.parse::<i128>().ok()?.checked_mul(seconds)? };
            let one = 10_i128.checked_pow(u32::try_from(places).ok()?)?;
            total.whole = total.whole.checked_add(part / one)?;
            total.fraction = if places == 0 { String::new() } else { format!("{:0places$}", part % one) };
            total.fraction.truncate(total.fraction.trim_end_matches('0').len());
        }
        rest = after;
        count += 1;
    }
}
