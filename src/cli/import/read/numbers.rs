//! Cells that are numbers or durations, as people and programs write them: whole numbers exactly, or refused
//! with the option that reads them.
//!
//! Knows: `--decimal`, `--thousands`, `--scale`, `--round`, `--duration`. Must not know: columns and rows.
//! Nothing is guessed: `1,234` is a thousand or one and a bit, and only the user knows which.

use crate::cli::import::read::durations::{DurationUnit, looks_like_duration, seconds_of};
use crate::cli::import::read::exact::{Exact, is_shortened, is_space};
use crate::types::{Double, Number, keeps_digits, quoted};

/// How scores are written, and what becomes of them.
#[derive(Debug, Clone)]
pub struct Numbers {
    /// What stands between whole and fraction.
    pub decimal: char,
    /// Whether somebody has said so.
    pub is_decimal_given: bool,
    /// What stands between groups of digits.
    pub thousands: Option<char>,
    /// What scores are multiplied by.
    pub scale: u32,
    /// Whether what is not whole is rounded; else it is refused.
    pub is_rounded: bool,
    /// Scores are durations, to be counted in this.
    pub duration: Option<DurationUnit>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            decimal: '.',
            is_decimal_given: false,
            thousands: None,
            scale: 1,
            is_rounded: false,
            duration: None,
        }
    }
}

/// Where a number stays that is no integer.
pub const AS_IT_IS: &str =
    "it stays as it is on a board whose key has the type float, which is defined before";

/// Up to here doubles have every whole number: 2^53.
const WHOLE_DOUBLES: f64 = 9_007_199_254_740_992.0;

/// Digits behind the point that the largest round `--scale` keeps.
const SCALE_PLACES: u32 = 9;

/// What a key that cannot be read is, besides what is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// A text, such as the cell of a CSV or a JSON string.
    Text,
    /// A number of JSON, which has its own decimal point.
    JsonNumber,
}

impl Numbers {
    /// Whether anything but plain whole numbers was asked for.
    pub fn is_plain(&self) -> bool {
        let Self { decimal, is_decimal_given: _, thousands, scale, is_rounded, duration } = self;
        *decimal == '.' && thousands.is_none() && *scale == 1 && !is_rounded && duration.is_none()
    }

    /// A duration that is a number alone, and of which nothing but its column says what it counts.
    pub fn plain_number(&self, text: &str) -> Option<Exact> {
        // A number of JSON has a point of its own.
        let parsed = Exact::parse(text.trim(), self.decimal, None);
        parsed.or_else(|| Exact::parse(text.trim(), '.', None))
    }

    pub fn is_duration(&self, text: &str) -> bool {
        seconds_of(text.trim(), self.decimal).is_ok()
    }

    /// How many nanoseconds durations are counted in.
    pub fn duration_nanos(&self) -> u64 {
        1_000_000_000 / u64::from(self.duration.map_or(1, DurationUnit::per_second))
    }

    /// One key of a score: a whole number, or a double where no option makes whole numbers of them. Of a
    /// double also what is wrong with it on a board of integers, and the option that helps.
    ///
    /// # Errors
    /// What is wrong with it, and the option that helps.
    pub fn number(&self, text: &str, written: Written) -> Result<(Number, Option<String>), String> {
        let why = match self.key(text, written) {
            Ok(key) => return Ok((Number::Integer(key), None)),
            Err(why) => why,
        };
        let makes_whole = self.scale != 1 || self.is_rounded || self.duration.is_some();
        match self.double(text.trim(), written).filter(|_| !makes_whole) {
            Some(double) => Ok((Number::Float(double), Some(format!("{why}; {AS_IT_IS}")))),
            None => Err(why),
        }
    }

    /// `None`: it is no double, or too large for one.
    fn double(&self, text: &str, written: Written) -> Option<Double> {
        match text {
            "inf" => return Some(Double::INFINITY),
            "-inf" => return Some(Double::NEGATIVE_INFINITY),
            _ if written == Written::Text && self.may_be_thousands(text) => return None,
            _ => {}
        }
        let (decimal, thousands) =
            if written == Written::JsonNumber { ('.', None) } else { (self.decimal, self.thousands) };
        Exact::parse(text, decimal, thousands)?;
        // As Rust reads it: the sign that typesetters use is a minus, and groups of digits are none.
        let digit = |c: char| match c {
            '−' => Some('-'),
            c if c == decimal => Some('.'),
            c if c.is_ascii_digit() || matches!(c, '-' | '+' | 'e' | 'E') => Some(c),
            _ => None,
        };
        let value: f64 = text.chars().filter_map(digit).collect::<String>().parse().ok()?;
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        // From there on doubles do not have all whole numbers, and such a number would become another one.
        let is_lost = value == 0.0 && digits.bytes().any(|digit| digit != b'0');
        let is_kept = !is_lost && (value.abs() < WHOLE_DOUBLES || keeps_digits(value, &digits));
        Double::new(value).filter(|double| !double.is_infinite() && is_kept)
    }

    /// One key of a score that is a whole number.
    ///
    /// # Errors
    /// What is wrong with it, and the option that helps.
    pub fn key(&self, text: &str, written: Written) -> Result<i64, String> {
        let text = text.trim();
        // Most scores are digits alone.
        if self.scale == 1
            && self.duration.is_none()
            && text.len() < 19
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(key) = text.parse()
        {
            return Ok(key);
        }
        if text.is_empty() {
            return Err("the score is empty; --blank \"\" leaves such rows out".to_owned());
        }
        if let Some(unit) = self.duration {
            let decimal = if written == Written::JsonNumber { '.' } else { self.decimal };
            let seconds = seconds_of(text, decimal)
                .map_err(|why| format!("{}: {why}{}", quoted(text), self.advice_of_duration(text)))?;
            return self.whole(&seconds, unit.per_second(), text, || {
                let finer = match unit {
                    DurationUnit::S => "--duration ms keeps more, and --round rounds",
                    DurationUnit::Ms => "--duration us keeps more, and --round rounds",
                    DurationUnit::Us => "--round rounds",
                };
                format!("{} is not a whole number of {}: {finer}", quoted(text), unit.words())
            });
        }
        if written == Written::Text && is_shortened(text) && !self.is_rounded {
            return Err(format!(
                "{} is a number that a spreadsheet has shortened: format the column there as a number without decimals, and \
                 save it again, or --round takes the six digits that are left",
                quoted(text)
            ));
        }
        let number = match written {
            Written::JsonNumber => Exact::parse(text, '.', None).ok_or_else(|| self.explained(text))?,
            Written::Text if self.may_be_thousands(text) => {
                return Err(format!(
                    "{} is {} with three decimal places, or a thousand times that: --decimal {point} or --thousands \
                     {point} says which",
                    quoted(text),
                    text.split(self.decimal).next().unwrap_or_default(),
                    point = self.decimal,
                ));
            }
            Written::Text => {
                Exact::parse(text, self.decimal, self.thousands).ok_or_else(|| self.explained(text))?
            }
        };
        self.whole(&number, self.scale, text, || {
            if self.scale == 1 {
                let places = number.places();
                if places > SCALE_PLACES {
                    return format!(
                        "{} is not a whole number, and has {places} places after the {:?}: --scale {} --round \
                         keeps {SCALE_PLACES} of them",
                        quoted(text),
                        self.decimal.to_string(),
                        10_u64.pow(SCALE_PLACES)
                    );
                }
                let scale = 10_u64.pow(places);
                let separates = if written == Written::Text && self.thousands.is_none() && places == 3 {
                    format!(", or --thousands {:?} if it separates thousands", self.decimal.to_string())
                } else {
                    String::new()
                };
                format!(
                    "{} is not a whole number: --scale {scale} keeps its {places} places after the {:?}, and \
                     --round rounds{separates}",
                    quoted(text),
                    self.decimal.to_string()
                )
            } else {
                let larger = if self.scale < 10_u32.pow(SCALE_PLACES) {
                    "a larger --scale keeps more places (100 keeps two), and "
                } else {
                    ""
                };
                format!(
                    "{} times {} is not a whole number; {larger}--round rounds",
                    quoted(text),
                    self.scale
                )
            }
        })
    }

    fn whole(
        &self,
        number: &Exact,
        factor: u32,
        text: &str,
        not_whole: impl Fn() -> String,
    ) -> Result<i64, String> {
        let product = number.times(factor, self.is_rounded);
        let whole = product.map_err(|outside| {
            if !outside {
                return not_whole();
            }
            let times = if factor == 1 { String::new() } else { format!(" times {factor}") };
            format!(
                "{}{times} is outside the signed 64-bit range, {} to {}",
                quoted(text),
                i64::MIN,
                i64::MAX
            )
        })?;
        Ok(whole)
    }

    /// Why a text is no number, and the option that reads it.
    fn explained(&self, text: &str) -> String {
        let told = quoted(text);
        if looks_like_duration(text) {
            let decimal = self.decimal_of_duration(text);
            return format!("{told} looks like a duration: --duration ms reads it, in milliseconds{decimal}");
        }
        if text.chars().any(|c| c.is_numeric() && !c.is_ascii_digit()) {
            return format!(
                "{told} has digits or fractions of another kind than 0 to 9: write it with these"
            );
        }
        let is_of_number = |c: char| c.is_ascii_digit() || is_separator(c);
        let unsigned = text.trim_start_matches(['-', '+', '−']);
        let mut foreign = unsigned.chars().filter(|c| is_separator(*c));
        let is_grouped = unsigned.starts_with(|c: char| c.is_ascii_digit())
            && unsigned.ends_with(|c: char| c.is_ascii_digit())
            && unsigned.chars().all(is_of_number);
        if let (true, Some(separator)) = (is_grouped, foreign.next()) {
            return self.separator_explained(&told, unsigned, separator);
        }
        let around = unsigned.trim_matches(|c: char| !c.is_ascii_digit());
        // What is left must be worth as much: signs, brackets and what stands close to digits, as in 5k, can
        // be part of a number.
        let (before, behind) = text.split_once(around).unwrap_or_default();
        let is_part = |c: char| c.is_alphabetic() || (is_separator(c) && !is_space(c));
        let is_sign = |c: char| "-–—−+()[]%‰".contains(c);
        let has_more = before.ends_with(is_part)
            || behind.starts_with(is_part)
            || before.contains(is_sign)
            || behind.contains(is_sign);
        if around != unsigned && !has_more && around.chars().all(is_of_number) && !around.is_empty() {
            return format!(
                "{told} is not a number such as 1200 or -3.25, with nothing before or behind it: take away what \
                 is there but {around:?}, in this column alone"
            );
        }
        if text.contains('%') && !around.is_empty() {
            return format!(
                "{told} is a percentage: take the sign away in this column if {around} is to be the score"
            );
        }
        let digits = unsigned.trim_end_matches(|c: char| c.is_alphabetic());
        if digits.len() < unsigned.len() && Exact::parse(digits, self.decimal, self.thousands).is_some() {
            return format!(
                "{told} is not a number such as 1200 or -3.25: write it without what stands behind it, in this column \
                 alone, and a multiple such as 1.2k as 1200"
            );
        }
        if unsigned.chars().any(|c| c.is_ascii_digit()) {
            return format!("{told} is not a number such as 1200 or -3.25");
        }
        if ["e", "even"].iter().any(|even| text.eq_ignore_ascii_case(even)) {
            return format!(
                "{told} is not a number; where it is even par, as in golf, write 0 in its place, and if it is no score, \
                 {}",
                blank_advice(text)
            );
        }
        format!("{told} is not a number; {}", blank_advice(text))
    }

    /// Whether a text such as `1.000`, or `12.500` with a scale of 10, may have a group of three digits
    /// behind its point. Other such texts are no whole numbers, and refused for that.
    fn may_be_thousands(&self, text: &str) -> bool {
        let unsigned = text.trim_start_matches(['-', '+', '−']);
        let Some((whole, fraction)) = unsigned.split_once(self.decimal) else { return false };
        let is_open = !self.is_decimal_given && self.thousands.is_none();
        let is_group = fraction.len() == 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
        // Whoever keeps three places says what the point is.
        let scale = self.scale % 1_000;
        let is_whole = |thousandths: u32| scale > 0 && (thousandths * scale).is_multiple_of(1_000);
        is_open
            && is_group
            && (1..=3).contains(&whole.len())
            && !whole.starts_with('0')
            && fraction.parse().is_ok_and(is_whole)
    }

    /// What helps a text that is no duration as it is written.
    fn advice_of_duration(&self, text: &str) -> String {
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return format!("; {}", blank_advice(text));
        }
        let marks = |c: char| matches!(c, '\'' | '"' | '’' | '”' | '′' | '″');
        if text.contains(marks) || text.contains(':') && text.contains(|c: char| c.is_alphabetic()) {
            return "; write it as in 1:23.456, with nothing but digits, colons and a point, or with a unit behind each \
                    number, as in 1m 23.456s"
                .to_owned();
        }
        self.decimal_of_duration(text)
    }

    /// The option that reads a duration with another decimal point, if it seems to have one.
    fn decimal_of_duration(&self, text: &str) -> String {
        let mut others = [',', '.'].into_iter().filter(|other| *other != self.decimal);
        let found = others.find(|other| text.matches(*other).count() == 1 && !text.contains(self.decimal));
        found
            .map_or_else(String::new, |other| format!("; --decimal \"{other}\" if that is its decimal point"))
    }

    fn separator_explained(&self, told: &str, unsigned: &str, first: char) -> String {
        let word = word_of(first);
        let option = if is_space(first) { "\" \"".to_owned() } else { format!("{:?}", first.to_string()) };
        let last = unsigned.chars().rev().find(|c| is_separator(*c)).unwrap_or(first);
        if last != first && Exact::parse(unsigned, last, Some(first)).is_some() {
            return format!(
                "{told} has {word} and {}: --thousands {option} --decimal {:?} reads it",
                word_of(last),
                last.to_string()
            );
        }
        if Some(first) == self.thousands {
            return format!(
                "{told} has {word}, which does not stand before three digits, as what separates thousands does; --decimal \
                 {option} in place of --thousands if it is the decimal point"
            );
        }
        if first == self.decimal && unsigned.matches(first).count() == 1 {
            return format!(
                "{told} has {word}, which does not stand where the decimal point of a number does"
            );
        }
        // What is advised reads this text.
        let mut ways = Vec::new();
        let point = if first == '.' { ',' } else { '.' };
        if Exact::parse(unsigned, point, Some(first)).is_some() {
            ways.push(format!("--thousands {option} if it separates thousands"));
        }
        if !is_space(first) && Exact::parse(unsigned, first, None).is_some() && first != self.decimal {
            let how = format!("--decimal {option} if it is the decimal point (with --scale, for the places)");
            ways.extend(Some(how).filter(|_| matches!(first, ',' | '.')));
        }
        let mut parts = unsigned.split(first).map(str::trim);
        if matches!(first, ',' | ';' | '/' | '|') && parts.all(|part| Exact::parse(part, '.', None).is_some())
        {
            ways.push(
                "if it separates two keys, they must be columns of their own (--column score=A --column score=B)"
                    .to_owned(),
            );
        }
        if ways.is_empty() {
            return format!("{told} is not a number such as 1200 or -3.25");
        }
        format!("{told} has {word}: {}", ways.join("; "))
    }
}

fn blank_advice(text: &str) -> String {
    format!("--blank {} leaves such rows out, and counts them", quoted(text))
}

fn word_of(separator: char) -> String {
    match separator {
        ',' => "a comma".to_owned(),
        '.' => "a point".to_owned(),
        c if is_space(c) => "a space".to_owned(),
        '\'' | '’' => "an apostrophe".to_owned(),
        other => format!("{other:?}"),
    }
}

fn is_separator(c: char) -> bool {
    is_space(c) || matches!(c, ',' | '.' | '\'' | '’' | '_' | ';' | '/' | '|' | '٬' | '·')
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
