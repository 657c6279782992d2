//! Plain numbers among durations: `--duration` reads `83.456` as seconds, and `83456` may be milliseconds.
//! What a plain number counts is told by the name of its column or by other rows of it, or else the number is
//! refused.

use crate::cli::import::read::durations::DurationUnit;
use crate::cli::import::read::exact::Exact;
use crate::cli::import::read::numbers::Numbers;
use crate::types::quoted;

/// What the name of a column says that its numbers count: how many nanoseconds, and the word for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    nanos: u64,
    word: &'static str,
}

const SECONDS: Counted = Counted { nanos: 1_000_000_000, word: "seconds" };

/// Words in the names of columns, wherever they stand.
const ANYWHERE: [(&[&str], Counted); 3] = [
    (
        &["ms", "msec", "msecs", "milli", "millis", "millisec", "millisecs", "millisecond", "milliseconds"],
        Counted { nanos: 1_000_000, word: "milliseconds" },
    ),
    (
        &["µs", "μs", "usec", "usecs", "micro", "micros", "microsecond", "microseconds"],
        Counted { nanos: 1_000, word: "microseconds" },
    ),
    (
        &["ns", "nsec", "nano", "nanos", "nanosecond", "nanoseconds"],
        Counted { nanos: 1, word: "nanoseconds" },
    ),
];

/// Words that say so at the end of a name, and may be something else elsewhere: the second lap, the min lap,
/// the US record.
const AT_END: [(&[&str], Counted); 5] = [
    (&["us"], Counted { nanos: 1_000, word: "microseconds" }),
    (&["s", "sec", "secs", "second", "seconds", "secondes", "segundos", "sekunden", "secondi"], SECONDS),
    (
        &["min", "mins", "minute", "minutes", "minuten", "minutos", "minuti"],
        Counted { nanos: 60_000_000_000, word: "minutes" },
    ),
    (
        &["h", "hr", "hrs", "hour", "hours", "stunden", "heures", "horas"],
        Counted { nanos: 3_600_000_000_000, word: "hours" },
    ),
    (&["days", "tage", "jours", "dias"], Counted { nanos: 86_400_000_000_000, word: "days" }),
];

impl Counted {
    /// `lap_ms`, `lapMs`, `LAP MS`, `Time (ms)`, `timems`, `elapsed.milliseconds`.
    fn of_name(name: &str) -> Option<Self> {
        let words = words(name);
        let of = |word: &str, lists: &[(&[&str], Self)]| {
            lists.iter().find(|(names, _)| names.contains(&word)).map(|(_, counted)| *counted)
        };
        let is_joined = |word: &String| {
            let stem = word.strip_suffix("ms").or_else(|| word.strip_suffix("millis"));
            stem.is_some_and(|stem| {
                ["time", "lap", "duration", "elapsed", "zeit"].iter().any(|end| stem.ends_with(end))
            })
        };
        let joined = || words.iter().find(|word| is_joined(word)).and_then(|_| of("ms", &ANYWHERE));
        let anywhere = words.iter().find_map(|word| of(word, &ANYWHERE)).or_else(joined);
        anywhere.or_else(|| words.last().and_then(|word| of(word, &AT_END)))
    }
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_start = c.is_uppercase() && was_lower;
        if (is_start || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// How durations of a column are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations {
    name: String,
    /// Why plain numbers are refused. `None`: they are seconds.
    refused_plain: Option<String>,
    has_plain: bool,
    /// Its name says that hours and minutes are what `1:23` is.
    is_hours_first: bool,
    /// The score has other keys, which may be durations where this one is none.
    has_others: bool,
}

impl Durations {
    /// # Arguments
    /// - `name`: of the column.
    /// - `sample`: what the first rows have in it.
    /// - `has_others`: whether the score has other keys.
    pub fn of(name: &str, sample: &[String], numbers: &Numbers, has_others: bool) -> Self {
        let marks = |c: char| if c == ':' || c.is_ascii_alphabetic() { c.to_ascii_lowercase() } else { ' ' };
        let form: String = name.chars().map(marks).collect();
        Self {
            name: name.to_owned(),
            refused_plain: refused_plain(name, sample, numbers),
            has_plain: sample.iter().any(|text| numbers.plain_number(text).is_some()),
            is_hours_first: form.contains("h:m") && !form.contains("m:s"),
            has_others,
        }
    }

    /// Why a cell is not read.
    pub fn refusal(&self, text: &str, numbers: &Numbers) -> Option<String> {
        if self.is_hours_first && text.matches(':').count() == 1 {
            return Some(format!(
                "{} would be minutes and seconds, and the column is called as if it had hours and minutes: those are \
                 read as in 1:23:00 or 1h 23m",
                quoted(text)
            ));
        }
        let why = self.refused_plain.as_ref()?;
        let is_refused = numbers.plain_number(text).is_some_and(|number| !number.is_zero());
        let others = if self.has_others {
            let unit = numbers.duration.map_or("", DurationUnit::name);
            format!("; if only other keys are durations, --duration {unit}=NAME names each of these")
        } else {
            String::new()
        };
        is_refused.then(|| format!("{} is a plain number. {why}{others}", quoted(text)))
    }

    /// For the first look at a file: that plain numbers are seconds, if there are any.
    pub fn note(&self) -> String {
        if self.has_plain && self.refused_plain.is_none() {
            format!("; plain numbers of {} are seconds", quoted(&self.name))
        } else {
            String::new()
        }
    }
}

fn refused_plain(name: &str, sample: &[String], numbers: &Numbers) -> Option<String> {
    let unit = numbers.duration?;
    let counts = numbers.duration_nanos();
    let scale = |nanos: u64| match nanos / counts {
        1 => format!("leave --duration away, which takes them as {} already", unit.words()),
        factor @ 2.. => format!("--scale {factor} in place of --duration reads them"),
        0 => "leave --duration away, and scores count the same as the column".to_owned(),
    };
    let are_seconds = || format!("if they are seconds, {}", scale(SECONDS.nanos));
    match Counted::of_name(name) {
        Some(SECONDS) => None,
        Some(counted) => Some(format!(
            "--duration reads plain numbers as seconds, and the column is called as if it counted {}: {}; {}",
            counted.word,
            scale(counted.nanos),
            are_seconds()
        )),
        // As they are, whatever they count.
        None if unit == DurationUnit::S => None,
        None => {
            let tells = |text: &String| {
                let number = numbers.plain_number(text);
                // What has a fraction of its unit would be refused as such, but for --round.
                let is_fraction = |number: Exact| !number.fraction.is_empty() && !numbers.is_rounded;
                number.map_or_else(|| numbers.is_duration(text), is_fraction)
            };
            (!sample.iter().any(tells)).then(|| {
                format!(
                    "neither the name of the column nor a first row such as 1:23.456 says whether plain numbers are \
                     seconds: {}; if they are {}, leave --duration away; or write units, as in 59s",
                    are_seconds(),
                    unit.words()
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_say_what_they_count() {
        for (names, expect) in [
            (
                &[
                    "lap_ms",
                    "lapMs",
                    "LAP MS",
                    "Time (ms)",
                    "timems",
                    "milliseconds",
                    "timeInMillis",
                    "ms_total",
                ][..],
                Some("milliseconds"),
            ),
            (&["time_us", "elapsed µs", "micros"], Some("microseconds")),
            (&["durationNanos", "t_ns"], Some("nanoseconds")),
            (&["time_s", "Seconds", "Time (s)", "lap.sec"], Some("seconds")),
            (&["Minutes", "time_min", "Zeit in Minuten"], Some("minutes")),
            (&["hours", "Zeit (h)"], Some("hours")),
            (
                &[
                    "score",
                    "time",
                    "teams",
                    "items",
                    "second_lap",
                    "min lap",
                    "US record",
                    "results",
                    "class",
                    "1",
                    "",
                ],
                None,
            ),
        ] {
            for name in names {
                assert_eq!(Counted::of_name(name).map(|counted| counted.word), expect, "{name}");
            }
        }
    }

    #[test]
    fn plain_numbers_are_seconds_only_where_something_says_so() {
        use DurationUnit::{Ms, S, Us};
        let refused = |name: &str, unit, sample: &[&str]| {
            let numbers = Numbers { duration: Some(unit), ..Numbers::default() };
            let sample: Vec<String> = sample.iter().map(ToString::to_string).collect();
            refused_plain(name, &sample, &numbers)
        };
        for (name, unit, sample, expect) in [
            (
                "lap_ms",
                Ms,
                &["83456", "1:23.456"][..],
                "leave --duration away, which takes them as milliseconds",
            ),
            ("lap_ms", S, &["83456"], "leave --duration away, and scores count the same as the column"),
            ("lap_ms", Us, &["83.5"], "--scale 1000 in place of --duration reads them"),
            ("lap_ms", Us, &["83.5"], "if they are seconds, --scale 1000000 in place of --duration"),
            ("Minutes", S, &["12"], "--scale 60 in place of --duration reads them"),
            ("time", Ms, &["83456", "DNF", ""], "if they are seconds, --scale 1000 in place of --duration"),
            ("time", Ms, &["83456"], "if they are milliseconds, leave --duration away"),
            ("1", Us, &["83456"], "neither the name of the column"),
        ] {
            let told = refused(name, unit, sample).expect(name);
            assert!(told.contains(expect), "{name}: {told}");
        }
        for (name, unit, sample) in [
            ("time", Ms, &["59", "1:23.456"][..]),
            ("time", Ms, &["59.9"]),
            ("time", Ms, &["59", "1m"]),
            ("time", S, &["59"]),
            ("time_s", Ms, &["59"]),
        ] {
            assert_eq!(refused(name, unit, sample), None, "{name}");
        }
    }

    #[test]
    fn hours_and_minutes_are_not_taken_for_minutes_and_seconds() {
        let numbers = Numbers { duration: Some(DurationUnit::S), ..Numbers::default() };
        for (name, text, is_refused) in [
            ("Time (hh:mm)", "1:23", true),
            ("H:MM", "1:23", true),
            ("Time (hh:mm)", "1:23:00", false),
            ("Time (h:mm:ss)", "1:23", false),
            ("mm:ss", "1:23", false),
            ("time", "1:23", false),
        ] {
            let found = Durations::of(name, &[], &numbers, false).refusal(text, &numbers);
            assert_eq!(found.is_some(), is_refused, "{name}: {found:?}");
        }
    }
}
