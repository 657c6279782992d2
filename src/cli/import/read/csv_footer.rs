//! Lines that programs write below the rows of a table. As a row, a sum would be a member, and lead.

/// What stands before sums and averages below a table.
const SUMS: [&str; 23] = [
    "total",
    "totals",
    "grand total",
    "subtotal",
    "sum",
    "average",
    "avg",
    "mean",
    "median",
    "count",
    "summe",
    "gesamt",
    "gesamtsumme",
    "insgesamt",
    "durchschnitt",
    "mittelwert",
    "somme",
    "moyenne",
    "totale",
    "media",
    "suma",
    "promedio",
    "totaal",
];
const FURTHER_SUMS: [&str; 3] = ["итого", "合計", "总计"];

/// Whether a name is what programs write before sums and averages.
pub fn is_of_sums(name: &str) -> bool {
    // It is asked of every row.
    let word = name.trim_end_matches([':', '.']);
    if word.is_ascii() {
        return SUMS.iter().any(|sum| word.eq_ignore_ascii_case(sum));
    }
    FURTHER_SUMS.contains(&word.to_lowercase().as_str())
}

/// So many rows that count something make it no chance that one more has their sum.
const SUMMED_ROWS: u64 = 3;

/// The sum of the scores so far, to know a last row that has it, whatever it is called.
#[derive(Debug, Default)]
pub struct Sum {
    so_far: i128,
    /// Rows whose score is not 0.
    rows: u64,
    /// A score was no whole number, of which sums are not exact.
    is_unknown: bool,
}

impl Sum {
    /// Adds the score of a row; whether it is that of all rows before it.
    pub fn add(&mut self, score: Option<i64>) -> bool {
        let Some(score) = score.map(i128::from) else {
            self.is_unknown = true;
            return false;
        };
        let is_sum = !self.is_unknown && self.rows >= SUMMED_ROWS && self.so_far == score && score != 0;
        self.so_far += score;
        self.rows += u64::from(score != 0);
        is_sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_the_sum_of_all_before_it_is_known() {
        let sums = |scores: &[Option<i64>]| {
            let mut sum = Sum::default();
            scores.iter().map(|score| sum.add(*score)).collect::<Vec<_>>()
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
            ("Totally", false),
            ("Total War", false),
            ("ann", false),
            ("", false),
        ] {
            assert_eq!(is_of_sums(name), expect, "{name}");
        }
    }
}
