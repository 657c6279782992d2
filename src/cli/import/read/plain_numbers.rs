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
    /// `None`: that depends.
    nanos: Option<u64>,
    word: &'static str,
}

const SECONDS: Counted = Counted::new(1_000_000_000, "seconds");
const MINUTES: Counted = Counted::new(60_000_000_000, "minutes");

/// Words in the names of columns, wherever they stand. Of several, the finest counts: `1:23` is in minutes
/// and seconds.
const ANYWHERE: [(&[&str], Counted); 10] = [
    (&["ns", "nsec", "nano", "nanos", "nanosecond", "nanoseconds"], Counted::new(1, "nanoseconds")),
    (
        &["µs", "μs", "usec", "usecs", "micro", "micros", "microsecond", "microseconds"],
        Counted::new(1_000, "microseconds"),
    ),
    (
        &["ms", "msec", "msecs", "milli", "millis", "millisec", "millisecs", "millisecond", "milliseconds"],
        Counted::new(1_000_000, "milliseconds"),
    ),
    (
        &["cs", "csec", "centis", "centiseconds", "hundredths", "hundertstel"],
        Counted::new(10_000_000, "hundredths of a second"),
    ),
    (&["ds", "tenths", "deciseconds", "zehntel"], Counted::new(100_000_000, "tenths of a second")),
    (&["frames", "frame", "ticks", "tick", "fps"], Counted { nanos: None, word: "frames or ticks" }),
    (&["seconds", "secs", "secondes", "segundos", "sekunden", "secondi"], SECONDS),
    (&["min", "mins", "minute", "minutes", "minuten", "minutos", "minuti"], MINUTES),
    (
        &[
            "h", "hr", "hrs", "hour", "hours", "std", "stunde", "stunden", "heure", "heures", "horas", "ore",
            "uren",
        ],
        Counted::new(3_600_000_000_000, "hours"),
    ),
    (&["days", "tage", "jours", "dias", "giorni"], Counted::new(86_400_000_000_000, "days")),
];

/// Words that say so at the end of a name, and may be something else elsewhere: the second lap, the US
/// record.
const AT_END: [(&[&str], Counted); 2] =
    [(&["us"], Counted::new(1_000, "microseconds")), (&["s", "sec", "second"], SECONDS)];

/// Long words that say so behind another one as well, as in `playtimeminutes`.
const JOINED: [&str; 6] = ["hours", "stunden", "minutes", "minuten", "seconds", "sekunden"];

impl Counted {
    const fn new(nanos: u64, word: &'static str) -> Self {
        Self { nanos: Some(nanos), word }
    }

    /// `lap_ms`, `lapMs`, `LAP MS`, `Time (ms)`, `timems`, `elapsed.milliseconds`, `Hours Played`.
    fn of_name(name: &str) -> Option<Self> {
        match clock_in(name).as_deref().and_then(<[char]>::last) {
            // Nothing of numbers without colons.
            Some('s') => return None,
            Some('m') => return Some(MINUTES),
            _ => {}
        }
        // What depends is finer than all that is known.
        Self::all_of_name(name).into_iter().min_by_key(|counted| counted.nanos)
    }

    /// What a name has that counts minutes at least, the largest of it, as hours: `1:23` may be hours and
    /// minutes there. What says itself what the parts of a clock are counts nothing.
    fn longest_of_name(name: &str) -> Option<Self> {
        let all = Self::all_of_name(name);
        let is_long = all.iter().all(|counted| counted.nanos >= MINUTES.nanos);
        all.into_iter().filter(|_| is_long && clock_in(name).is_none()).max_by_key(|counted| counted.nanos)
    }

    fn all_of_name(name: &str) -> Vec<Self> {
        let words = words(name);
        let of = |word: &str, lists: &[(&[&str], Self)]| {
            lists.iter().find(|(names, _)| names.contains(&word)).map(|(_, counted)| *counted)
        };
        let at_end = words.last().and_then(|word| of(word, &AT_END));
        let joined = |word: &str| {
            let stem = word.strip_suffix("ms").or_else(|| word.strip_suffix("millis"));
            let is_of_ms = stem.is_some_and(|stem| {
                ["time", "lap", "duration", "elapsed", "zeit"].iter().any(|end| stem.ends_with(end))
            });
            let long = JOINED.iter().find(|long| word.ends_with(*long)).copied();
            if is_of_ms { of("ms", &ANYWHERE) } else { long.and_then(|long| of(long, &ANYWHERE)) }
        };
        words.iter().filter_map(|word| of(word, &ANYWHERE).or_else(|| joined(word))).chain(at_end).collect()
    }
}

/// What of a clock the parts of a name are, as in `h:mm:ss`: the parts' letters, the first one first.
fn clock_in(name: &str) -> Option<Vec<char>> {
    const UNITS: [(&[&str], char); 4] = [
        (&["d", "dd", "day", "days"], 'd'),
        (&["h", "hh", "hr", "hrs", "hour", "hours", "std", "stunden"], 'h'),
        (&["m", "mm", "min", "mins", "minutes", "minuten"], 'm'),
        (&["s", "ss", "sec", "secs", "seconds", "sekunden"], 's'),
    ];
    const PARTS: [&str; 12] =
        ["cs", "cc", "ms", "mmm", "f", "ff", "t", "xx", "frames", "ticks", "hundredths", "tenths"];
    let of_clock = |c: char| c.is_alphabetic() || c == ':';
    let lower = name.to_lowercase();
    let mut clocks = lower.split(|c| !of_clock(c)).filter(|text| text.contains(':'));
    clocks.find_map(|text| {
        let unit = |part: &str| {
            let known = UNITS.iter().find(|(names, _)| names.contains(&part)).map(|(_, unit)| *unit);
            known.or_else(|| PARTS.contains(&part).then_some('f'))
        };
        text.split(':').map(unit).collect::<Option<Vec<char>>>()
    })
}

/// Whether a name says that there are days, before the hours of a clock or by themselves.
fn has_days(name: &str) -> bool {
    const DAYS: [&str; 10] = ["d", "day", "days", "tag", "tage", "jour", "jours", "dias", "giorni", "dagen"];
    let is_of_clock = clock_in(name).is_some_and(|clock| clock.first() == Some(&'d'));
    is_of_clock || words(name).iter().any(|word| DAYS.contains(&word.as_str()))
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
    /// What its name says that the parts of a clock are.
    clock: Option<Vec<char>>,
    /// What its name says that its numbers count, of minutes at least.
    longest: Option<Counted>,
    has_days: bool,
    /// The score has other keys, which may be durations where this one is none.
    has_others: bool,
}

impl Durations {
    /// # Arguments
    /// - `name`: of the column.
    /// - `sample`: what the first rows have in it.
    /// - `has_others`: whether the score has other keys.
    pub fn of(name: &str, sample: &[String], numbers: &Numbers, has_others: bool) -> Self {
        Self {
            name: name.to_owned(),
            refused_plain: refused_plain(name, sample, numbers),
            has_plain: sample.iter().any(|text| numbers.plain_number(text).is_some()),
            clock: clock_in(name),
            longest: Counted::longest_of_name(name),
            has_days: has_days(name),
            has_others,
        }
    }

    /// Why a cell is not read.
    pub fn refusal(&self, text: &str, numbers: &Numbers) -> Option<String> {
        let last = self.clock.as_ref().and_then(|clock| clock.last()).copied().unwrap_or('s');
        let colons = text.matches(':').count();
        let parts = self.clock.as_ref().map_or(0, Vec::len);
        if last != 's' && last != 'm' && colons > 0 && colons + 1 >= parts {
            return Some(format!(
                "{} would end in seconds, and the column is called as if it ended in parts of one: write these behind a \
                 point, as in 1:23.45",
                quoted(text)
            ));
        }
        if colons == 3 && !self.has_days {
            return Some(format!(
                "{} has four parts, which may be days, hours, minutes and seconds, or end in the frames of a video: write \
                 days as in 1 day 2:03:04, and frames behind a point, as parts of a second, as in 2:03:04.5",
                quoted(text)
            ));
        }
        let longest = self.longest.filter(|counted| *counted != MINUTES);
        let has_hours = if last == 'm' { Some("had hours and minutes".to_owned()) } else { None };
        let has_hours = has_hours.or(longest.map(|Counted { word, .. }| format!("counted {word}")));
        if let Some(called) = has_hours.filter(|_| colons == 1) {
            return Some(format!(
                "{} would be minutes and seconds, and the column is called as if it {called}: hours and minutes are \
                 read as in 1:23:00 or 1h 23m, and minutes and seconds as in 1m 23s",
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
        _ if !counts.is_multiple_of(nanos) && !nanos.is_multiple_of(counts) => {
            "write them as seconds".to_owned()
        }
        1 => format!("leave --duration away, which takes them as {} already", unit.words()),
        factor @ 2.. => format!("--scale {factor} in place of --duration reads them"),
        0 => "leave --duration away, and scores count the same as the column".to_owned(),
    };
    let are_seconds = || format!("if they are seconds, {}", scale(1_000_000_000));
    match Counted::of_name(name) {
        Some(SECONDS) => None,
        Some(counted) => Some(format!(
            "--duration reads plain numbers as seconds, and the column is called as if it counted {}: {}; {}",
            counted.word,
            counted
                .nanos
                .map_or_else(|| "write them as seconds, by how many of them are in one".to_owned(), scale),
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
            (&["Minutes", "time_min", "Zeit in Minuten", "min lap", "playtimeminutes"], Some("minutes")),
            (&["hours", "Zeit (h)", "Hours Played", "Stunden gesamt", "Total hrs"], Some("hours")),
            (&["Time (cs)", "cs", "hundredths left"], Some("hundredths of a second")),
            (&["tenths"], Some("tenths of a second")),
            (&["frames", "time_frames", "igt ticks", "frames (min)"], Some("frames or ticks")),
            (&["Seconds Played", "minutes and seconds"], Some("seconds")),
            (&["minutes:seconds", "h:mm:ss"], None),
            (&["Time (h:mm)"], Some("minutes")),
            (
                &["score", "time", "teams", "items", "second_lap", "US record", "results", "class", "1", ""],
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
            ("Hours Played", S, &["12"], "--scale 3600 in place of --duration reads them"),
            ("Time (cs)", Ms, &["12.5"], "--scale 10 in place of --duration reads them"),
            ("time_frames", S, &["12.5"], "write them as seconds, by how many of them are in one"),
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
            ("hours:minutes", "1:23", true),
            ("Time (min:sec)", "1:23", false),
            ("mm:ss:cs", "1:23:45", true),
            ("mm:ss:cs", "1:23.45", false),
            ("Time [ss:ff]", "23:45", true),
            ("Race: time", "1:23", false),
            ("Hours Played", "83:30", true),
            ("Hours Played", "83:30:00", false),
            ("Stunden", "83:30", true),
            ("Heures", "-83:30", true),
            ("Time (h)", "83:30", true),
            ("total hrs", "83:30.5", true),
            ("playtimeHours", "83:30", true),
            ("days", "83:30", true),
            ("hours and minutes", "83:30", true),
            ("hours, minutes, seconds", "83:30", false),
            ("Minutes", "83:30", false),
            ("minutes and seconds", "83:30", false),
            ("Hours Played", "83h 30m", false),
            ("time", "00:00:59:24", true),
            ("Hours Played", "0:01:23:45", true),
            ("timecode", "0:01:23:45.5", true),
            ("Time (d:hh:mm:ss)", "0:01:23:45", false),
            ("days", "0:01:23:45", false),
            ("Time with days", "0:01:23:45", false),
            ("time", "1 day 2:03:04", false),
        ] {
            let found = Durations::of(name, &[], &numbers, false).refusal(text, &numbers);
            assert_eq!(found.is_some(), is_refused, "{name}: {found:?}");
        }
    }
}
