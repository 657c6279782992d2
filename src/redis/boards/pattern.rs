//! Patterns of names: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before what stands for itself.

/// Whether a text is as a pattern says. Takes a time of at most the product of both lengths.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where to go on if what follows the last star does not fit: the pattern behind it, and the text from
    // where it has not been tried.
    let (mut pattern_at, mut text_at, mut retry) = (0, 0, None);
    loop {
        let rest = pattern.get(pattern_at..).unwrap_or_default();
        if rest.first() == Some(&b'*') {
            pattern_at += 1;
            retry = Some((pattern_at, text_at));
            continue;
        }
        let fits = match text.get(text_at) {
            None if rest.is_empty() => return true,
            None => None,
            Some(byte) => one(rest, *byte),
        };
        match (fits, retry) {
            (Some(taken), _) => {
                pattern_at += taken;
                text_at += 1;
            }
            (None, Some((behind, from))) if from < text.len() => {
                pattern_at = behind;
                text_at = from + 1;
                retry = Some((behind, text_at));
            }
            (None, _) => return false,
        }
    }
}

/// How much of the pattern stands for this byte; `None`: it does not.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [b'[', class @ ..] => {
            let (is_negated, mut at) = if class.first() == Some(&b'^') { (true, 1) } else { (false, 0) };
            let mut is_in = false;
            loop {
                match class.get(at..).unwrap_or_default() {
                    // A class that is not closed goes to the pattern's end.
                    [] => break,
                    [b']', ..] => {
                        at += 1;
                        break;
                    }
                    [b'\\', literal, ..] => {
                        is_in |= *literal == byte;
                        at += 2;
                    }
                    [from, b'-', to, ..] => {
                        is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                        at += 3;
                    }
                    [literal, ..] => {
                        is_in |= *literal == byte;
                        at += 1;
                    }
                }
            }
            (is_in != is_negated).then_some(at + 1)
        }
        [literal, ..] => (*literal == byte).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expect) in [
            ("*", "", true),
            ("*", "arena", true),
            ("a*a", "arena", true),
            ("a*b", "arena", false),
            ("a?ena", "arena", true),
            ("a?ena", "aena", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("\\*a", "*a", true),
            ("\\*a", "xa", false),
            ("[a\\]]", "]", true),
            ("**a**", "bab", true),
            ("", "", true),
            ("", "a", false),
            ("a", "", false),
            ("game:*:lb", "game:7:lb", true),
            ("[ab", "a", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expect, "{pattern} {text}");
        }
        // Many stars do not take exponential time.
        assert!(!matches(&b"a*".repeat(50), &[b'a'; 49]));
        assert!(!matches("*a".repeat(64).as_bytes(), "a".repeat(63).as_bytes()));
    }
}
