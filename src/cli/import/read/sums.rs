//! Rows that programs write for sums, counts and averages, below the others, between or above them. As a row,
//! a sum would be a member, and lead.
//!
//! A player may be called Total or Max: what counts is whether the score is what the name says of the rows
//! around it, or that no row follows. Must not know: columns, and how rows are read.

use crate::types::quoted;

/// What a row has that is no member's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sum,
    Count,
    Mean,
    /// The greatest or the least.
    Extreme,
}

/// The words for it, in lower case.
const WORDS: [(&[&str], Kind); 4] = [
    (
        &[
            "total",
            "totals",
            "subtotal",
            "subtotals",
            "sum",
            "summe",
            "zwischensumme",
            "gesamt",
            "gesamtsumme",
            "insgesamt",
            "somme",
            "totale",
            "totaux",
            "suma",
            "totaal",
            "итого",
            "合計",
            "总计",
        ],
        Kind::Sum,
    ),
    (&["count", "anzahl", "aantal", "exported", "rowcount"], Kind::Count),
    (
        &[
            "average",
            "avg",
            "mean",
            "median",
            "durchschnitt",
            "mittelwert",
            "moyenne",
            "media",
            "promedio",
            "gemiddelde",
        ],
        Kind::Mean,
    ),
    (&["maximum", "minimum", "max", "min"], Kind::Extreme),
];
/// What stands beside these, and says nothing by itself.
const BESIDE: &[&str] = &[
    "of",
    "all",
    "the",
    "grand",
    "overall",
    "number",
    "team",
    "teams",
    "player",
    "players",
    "member",
    "members",
    "participant",
    "participants",
    "user",
    "users",
    "entry",
    "entries",
    "row",
    "rows",
    "record",
    "records",
    "line",
    "lines",
    "score",
    "scores",
    "point",
    "points",
    "pts",
    "result",
    "results",
    "spieler",
    "zeilen",
    "teilnehmer",
    "punkte",
    "aller",
    "der",
    "joueurs",
];
/// Names of people, too, where nothing stands beside them.
const NAMES: [&str; 2] = ["max", "min"];

/// What a name says that its row has: `Total`, `Grand Total:`, `Total (2 players)`, `Average: 5,5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Statistic {
    kind: Kind,
    /// It may be how many rows there are, too: `Total players`.
    may_be_count: bool,
    /// It may be a person's name.
    is_name: bool,
}

impl Statistic {
    fn of_name(name: &str) -> Option<Self> {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.filter(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
        let (mut found, mut count) = (None, 0);
        // It is asked of every name, and most have another word at once.
        for word in words {
            count += 1;
            let is_it = |known: &&str| {
                if word.is_ascii() {
                    word.eq_ignore_ascii_case(known)
                } else {
                    word.to_lowercase() == **known
                }
            };
            match WORDS.iter().find(|(words, _)| words.iter().any(is_it)) {
                Some((_, kind)) => found = found.or(Some((*kind, NAMES.iter().any(is_it)))),
                None if BESIDE.iter().any(is_it) => {}
                None => return None,
            }
        }
        let is_bare = count == 1 && name.ends_with(char::is_alphanumeric);
        let may_be_count = |kind| kind == Kind::Count || kind == Kind::Sum && count > 1;
        found.map(|(kind, is_name)| Self {
            kind,
            may_be_count: may_be_count(kind),
            is_name: is_name && is_bare,
        })
    }
}

/// Whether a name is what programs write before sums and averages.
pub fn is_of_sums(name: &str) -> bool {
    Statistic::of_name(name).is_some()
}

/// So many rows that count something make it no chance that one more has their sum.
const SUMMED_ROWS: i128 = 3;
/// As many, if the row is called so.
const NAMED_ROWS: i128 = 2;

/// Scores of rows that follow each other.
#[derive(Debug, Clone, Copy, Default)]
struct Rows {
    count: i128,
    /// Rows whose score is not 0.
    counting: i128,
    sum: i128,
    least: i128,
    greatest: i128,
}

impl Rows {
    fn add(&mut self, score: i128) {
        self.least = if self.count == 0 { score } else { self.least.min(score) };
        self.greatest = if self.count == 0 { score } else { self.greatest.max(score) };
        self.count += 1;
        self.counting += i128::from(score != 0);
        self.sum += score;
    }

    /// Whether a score is what its name says of the rows.
    fn have(&self, found: Statistic, score: i128) -> bool {
        let is_it = found.may_be_count && score == self.count;
        let is_it = is_it
            || match found.kind {
                Kind::Sum => score == self.sum,
                Kind::Count => false,
                // As it is rounded.
                Kind::Mean => (score * self.count - self.sum).abs() < self.count,
                Kind::Extreme => score == self.least || score == self.greatest,
            };
        is_it && self.counting >= NAMED_ROWS && score != 0
    }
}

/// What is known of a row that may be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It is none, wherever it stands.
    Is(&'static str),
    /// It is none if no row follows.
    IfLast(&'static str),
    /// It is the first one, and none if it has what is called so of the rows that follow ([`Sums::begins`]),
    /// or if none follows.
    IfFirst,
}

/// What is told of such rows, behind their names.
pub const FIRST: &str = "above the rows has what is called so of those below it";
const BETWEEN: &str = "has what is called so of the rows above it";
pub const LAST_NAMED: &str = "in the last row seems to be a sum or the like below the rows";
const LAST: &str = "in the last row has the sum of all rows above it";

/// The scores so far, to know a row that has their sum or the like.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own of the rows so far")]
pub struct Sums {
    all: Rows,
    /// Those behind the last row that was none.
    group: Rows,
    /// A score was no whole number, of which sums are not exact.
    is_unknown: bool,
    /// The row before was none.
    is_behind_sum: bool,
    last: i128,
    falls: bool,
    rises: bool,
}

impl Sums {
    /// Looks at the next row.
    ///
    /// # Arguments
    /// `score`: `None`: it is no whole number.
    pub fn doubt(&self, name: &str, score: Option<i64>) -> Option<Doubt> {
        let score = score.map(i128::from).filter(|_| !self.is_unknown);
        let is_of =
            |found| score.is_some_and(|score| self.group.have(found, score) || self.all.have(found, score));
        match Statistic::of_name(name) {
            Some(found) if found.is_name => {
                // Who has the score of another may be a person, unless the rows are ordered, and this is out
                // of their order.
                let is_ordered = self.all.count >= SUMMED_ROWS && (self.falls || self.rises);
                let breaks = |score| !(self.falls && score <= self.last || self.rises && score >= self.last);
                let is_apart = self.is_behind_sum || is_ordered && score.is_some_and(breaks);
                (is_of(found) && is_apart).then_some(Doubt::Is(BETWEEN))
            }
            Some(found) if is_of(found) => Some(Doubt::Is(BETWEEN)),
            Some(_) if self.all.count == 0 && !self.is_unknown => Some(Doubt::IfFirst),
            Some(_) => Some(Doubt::IfLast(LAST_NAMED)),
            None => {
                let is_sum = score.is_some_and(|score| score == self.all.sum && score != 0);
                let has_sum = is_sum && self.all.counting >= SUMMED_ROWS;
                has_sum.then_some(Doubt::IfLast(LAST))
            }
        }
    }

    /// Whether a first row has what its name says of the rows that follow.
    ///
    /// # Arguments
    /// - `rest`: names and scores of these.
    /// - `is_whole`: these are all. Of some alone, a sum is known that is no less than theirs.
    pub fn begins(
        name: &str,
        score: Option<i64>,
        rest: impl Iterator<Item = (impl AsRef<str>, Option<i64>)>,
        is_whole: bool,
    ) -> bool {
        let (Some(found), Some(score)) = (Statistic::of_name(name), score.map(i128::from)) else {
            return false;
        };
        let mut rows = Rows::default();
        for (_, score) in rest.filter(|(name, _)| !is_of_sums(name.as_ref())) {
            let Some(score) = score else { return false };
            rows.add(i128::from(score));
        }
        if is_whole {
            return rows.have(found, score);
        }
        found.kind == Kind::Sum && rows.least >= 0 && rows.counting >= SUMMED_ROWS && score >= rows.sum
    }

    /// Goes on behind the row.
    ///
    /// # Arguments
    /// `is_row`: it is one.
    pub fn pass(&mut self, score: Option<i64>, is_row: bool) {
        self.is_behind_sum = !is_row;
        if !is_row {
            self.group = Rows::default();
            return;
        }
        let Some(score) = score.map(i128::from) else {
            self.is_unknown = true;
            return;
        };
        let is_first = self.all.count == 0;
        self.falls = is_first || self.falls && score <= self.last;
        self.rises = is_first || self.rises && score >= self.last;
        self.last = score;
        self.all.add(score);
        self.group.add(score);
    }
}

/// Why a row is refused that is none.
pub fn refusal(name: &str, what: &str) -> String {
    format!(
        "{} {what}: take the row away, and what belongs to it, or move it to another place among the rows if it is a member",
        quoted(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the rows are refused, by their numbers from 0, as the only ones of a file.
    fn refused(rows: &[(&str, i64)]) -> Vec<usize> {
        let mut sums = Sums::default();
        let mut refused = Vec::new();
        for (number, (name, score)) in rows.iter().enumerate() {
            let score = Some(*score);
            let rest = || rows[number + 1..].iter().map(|(name, score)| (*name, Some(*score)));
            let is_last = rest().all(|(name, _)| is_of_sums(name));
            let is_none = match sums.doubt(name, score) {
                None => false,
                Some(Doubt::Is(_)) => true,
                Some(Doubt::IfLast(_)) => is_last,
                Some(Doubt::IfFirst) => is_last || Sums::begins(name, score, rest(), true),
            };
            sums.pass(score, !is_none);
            refused.extend(is_none.then_some(number));
        }
        refused
    }

    #[test]
    fn a_row_with_the_sum_of_all_before_it_is_known() {
        let sums = |scores: &[Option<i64>]| {
            let mut sums = Sums::default();
            let mut last = |score: &Option<i64>| {
                let is_sum = sums.doubt("x", *score) == Some(Doubt::IfLast(LAST));
                sums.pass(*score, true);
                is_sum
            };
            scores.iter().map(&mut last).collect::<Vec<_>>()
        };
        assert_eq!(sums(&[Some(5), Some(0), Some(7), Some(1), Some(13)]), [false, false, false, false, true]);
        assert_eq!(sums(&[Some(1), Some(2), Some(3)]), [false; 3], "of two rows it may be chance");
        assert_eq!(sums(&[Some(5), Some(7), None, Some(1), Some(13)]), [false; 5]);
        assert_eq!(sums(&[Some(5), Some(-6), Some(1), Some(0)]), [false; 4]);
    }

    #[test]
    fn sums_are_known_by_their_names_whatever_their_case() {
        for (name, expect) in [
            ("Total", true),
            ("TOTAL:", true),
            ("Grand total", true),
            ("Summe", true),
            ("ИТОГО", true),
            ("Subtotal", true),
            ("Team total", true),
            ("Total (2 players)", true),
            ("Total players: 2", true),
            ("Exported rows:", true),
            ("Average: 5,5", true),
            ("Anzahl", true),
            ("Max", true),
            ("Totally", false),
            ("Total War", false),
            ("Max Mustermann", false),
            ("Team", false),
            ("ann", false),
            ("", false),
        ] {
            assert_eq!(is_of_sums(name), expect, "{name}");
        }
    }

    #[test]
    fn sums_are_known_above_between_and_below_the_rows() {
        let (ann, bob, cid) = (("ann", 9), ("bob", 7), ("cid", 5));
        for (rows, expect) in [
            (&[("Total", 21), ann, bob, cid][..], &[0_usize][..]),
            (&[("Total", 16), ("Average", 8), ann, bob], &[0, 1]),
            (
                &[ann, bob, ("Subtotal", 16), cid, ("dan", 3), ("Subtotal", 8), ("Grand Total", 24)],
                &[2, 5, 6],
            ),
            (&[ann, bob, ("Team total", 16), cid], &[2]),
            (&[ann, bob, ("Total (2 players)", 2), cid], &[2]),
            (&[ann, bob, cid, ("Exported rows:", 3)], &[3]),
            (&[ann, bob, cid, ("Anzahl", 3), ("dan", 3)], &[3]),
            (&[ann, bob, ("Average", 8), cid], &[2]),
            (&[ann, ("bob", 6), ("Durchschnitt", 8), cid], &[2]),
            (&[ann, bob, cid, ("Max", 9)], &[3]),
            (&[ann, cid, bob, ("Average", 7), ("Max", 9), ("Min", 5)], &[3, 4, 5]),
            (&[ann, bob, ("Sum of them", 16), cid], &[]),
        ] {
            assert_eq!(refused(rows), expect, "{rows:?}");
        }
    }

    #[test]
    fn players_who_are_called_so_are_members() {
        let (ann, bob, cid) = (("ann", 9), ("bob", 7), ("cid", 5));
        for rows in [
            &[ann, ("Total", 9), bob][..],
            &[("Total", 12), ann, bob, cid],
            &[ann, bob, ("Total", 2), cid],
            &[("Max", 9), ann, bob, cid],
            &[ann, ("Max", 9), bob, cid],
            &[cid, bob, ann, ("Max", 9)],
            &[bob, ann, cid, ("Max", 9)],
            &[ann, bob, cid, ("Max", 3)],
            &[ann, bob, cid, ("Min", 5)],
            &[ann, bob, ("Max Mustermann", 16), cid],
            &[("ann", 0), ("bob", 0), ("Total", 0), ("cid", 0)],
        ] {
            assert!(refused(rows).is_empty(), "{rows:?}: {:?}", refused(rows));
        }
    }

    #[test]
    fn a_sum_above_more_rows_than_are_looked_at_is_no_less_than_theirs() {
        let rest = || ["ann", "bob", "cid"].into_iter().zip([Some(9), Some(7), Some(5)]);
        for (name, score, expect) in
            [("Total", 25, true), ("Total", 20, false), ("Max", 25, false), ("ann", 25, false)]
        {
            assert_eq!(Sums::begins(name, Some(score), rest(), false), expect, "{name} {score}");
        }
    }
}
