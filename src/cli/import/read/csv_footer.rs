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

#[cfg(test)]
mod tests {
    use super::*;

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
