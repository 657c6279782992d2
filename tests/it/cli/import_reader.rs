//! Another reader of the tables of `import_property`, as simple as it can be: it knows the page of imports,
//! and nothing of the program.

use std::collections::BTreeMap;

use encoding_rs::Encoding;
use serde_json::json;

/// What the command line says.
#[derive(Debug)]
pub struct Options {
    pub delimiter: char,
    pub decimal: char,
    pub thousands: Option<char>,
    pub scale: i128,
    pub is_rounded: bool,
    pub has_blank: bool,
    pub encoding: Option<&'static Encoding>,
    /// The unit of the last column.
    pub duration: Option<&'static str>,
}

/// A cell of a table.
#[derive(Debug)]
pub struct Cell {
    pub text: String,
    /// In JSON it is a text, also where it could be a number.
    pub is_text: bool,
}

impl Cell {
    /// Whether it is a number in JSON.
    fn is_number(&self) -> bool {
        let is_one = serde_json::from_str::<serde_json::Number>(&self.text).is_ok();
        is_one && !self.is_text
    }

    pub fn json(&self) -> String {
        if self.is_number() { self.text.clone() } else { json!(self.text).to_string() }
    }
}

/// A number of a cell: numerator and denominator. `None`: it is none.
///
/// # Arguments
/// - `decimal`, `thousands`: what stands before the fraction, and between groups of digits.
fn fraction(text: &str, decimal: char, thousands: Option<char>) -> Option<(i128, i128)> {
    let (sign, rest) = match text.chars().next()? {
        '-' | '−' => (-1, text.chars().skip(1).collect::<String>()),
        '+' => (1, text.chars().skip(1).collect()),
        _ => (1, text.to_owned()),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse::<u32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = match mantissa.split_once(decimal) {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole.to_owned(), fraction.to_owned()),
        None => (mantissa, String::new()),
    };
    let is_mark = |c: char| Some(c) == thousands || thousands == Some(' ') && c == '\u{a0}';
    let groups: Vec<&str> = whole.split(is_mark).collect();
    let sizes: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let fits = match sizes.as_slice() {
        [] => false,
        [_] => true,
        [first, middle @ .., last] => {
            let threes = *last == 3 && middle.iter().all(|size| *size == 3) && (1..=3).contains(first);
            let twos = *last == 3 && middle.iter().all(|size| *size == 2) && (1..=2).contains(first);
            threes || twos
        }
    };
    let digits = groups.concat();
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !fits || digits.is_empty() || !is_digits(&digits) || !is_digits(&fraction) {
        return None;
    }
    let numerator: i128 = format!("{digits}{fraction}").parse().ok()?;
    let denominator = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some((sign * numerator * 10_i128.pow(exponent), denominator))
}

/// A fraction times a factor, if that is whole, or may be rounded.
fn whole((numerator, denominator): (i128, i128), factor: i128, is_rounded: bool) -> Option<i128> {
    let product = numerator.abs() * factor;
    let (mut quotient, rest) = (product / denominator, product % denominator);
    if rest != 0 && !is_rounded {
        return None;
    }
    quotient += i128::from(rest * 2 >= denominator && rest != 0);
    i64::try_from(numerator.signum() * quotient).ok().map(i128::from)
}

/// A score that is no duration. `None`: it is none.
fn points(cell: &Cell, options: &Options, is_csv: bool) -> Option<i128> {
    let text = cell.text.trim();
    let is_number = !is_csv && cell.is_number();
    // As spreadsheets show large numbers, of which digits are lost.
    if text == "1.23457E+12" && !is_number && !options.is_rounded {
        return None;
    }
    let (decimal, thousands) = if is_number { ('.', None) } else { (options.decimal, options.thousands) };
    whole(fraction(text, decimal, thousands)?, options.scale, options.is_rounded)
}

/// A duration in its unit. `None`: it is none.
fn time(cell: &Cell, unit: &str, options: &Options, is_csv: bool) -> Option<i128> {
    let text = cell.text.trim();
    let decimal = if !is_csv && cell.is_number() { '.' } else { options.decimal };
    let factor = match unit {
        "s" => 1,
        "ms" => 1_000,
        _ => 1_000_000,
    };
    let seconds = match text {
        "PT1M" => (60, 1),
        "1 day 0:00:01" => (86_401, 1),
        _ if text.starts_with('+') => return None,
        _ if text.contains(':') => {
            let (clock, part) =
                text.split_once(decimal).map_or((text, None), |(clock, part)| (clock, Some(part)));
            let mut total = 0;
            for number in clock.split(':') {
                total = total * 60 + number.parse::<i128>().ok()?;
            }
            let part = part.unwrap_or_default();
            let places = u32::try_from(part.len()).ok()?;
            let behind = if part.is_empty() { 0 } else { part.parse::<i128>().ok()? };
            (total * 10_i128.pow(places) + behind, 10_i128.pow(places))
        }
        _ => fraction(text, decimal, None)?,
    };
    whole(seconds, factor, options.is_rounded)
}

/// The board. `None`: a row of the table cannot be loaded.
///
/// # Arguments
/// `is_csv`: else the table is JSON.
pub fn board(table: &[Vec<Cell>], options: &Options, is_csv: bool) -> Option<BTreeMap<String, Vec<i128>>> {
    let mut board = BTreeMap::new();
    for row in table {
        let (member, keys) = row.split_first()?;
        let name = member.text.trim();
        // Spreadsheets write rows of separators alone.
        if is_csv && row.iter().all(|cell| cell.text.trim().is_empty()) {
            continue;
        }
        if options.has_blank && keys.iter().any(|key| key.text.trim() == "DNF") {
            continue;
        }
        if name.is_empty() || name.contains('\n') {
            return None;
        }
        let key = |(index, cell): (usize, &Cell)| match options.duration {
            Some(unit) if index == 1 => time(cell, unit, options, is_csv),
            _ => points(cell, options, is_csv),
        };
        board.insert(name.to_owned(), keys.iter().enumerate().map(key).collect::<Option<_>>()?);
    }
    Some(board)
}
