//! Lines that programs write below the rows of a table. As a row, a sum would be a member, and lead.

/// What stands before sums and averages below a table.
const SUMS: [&str; 26] = [
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
    "итого",
    "合計",
    "总计",
];

/// Whether a name is what programs write before sums and averages.
pub fn is_of_sums(name: &str) -> bool {
    let word = name.trim_end_matches([':', '.']).to_lowercase();
    SUMS.contains(&word.as_str())
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
