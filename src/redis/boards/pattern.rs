//! Patterns of names: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before what stands for itself.
//!
//! A pattern is read once, and then looks at each byte of a name once: the places up to which the pattern
//! may have matched are bits, and a byte moves all of them. Whoever sends a pattern has no say in how long a
//! name takes.

use crate::redis::refused::Refused;

/// The longest pattern, in bytes. Names have at most 256.
const PATTERN_BYTES_MAX: usize = 1 << 10;
/// The longest name of a board, a member or a parameter, in bytes.
const NAME_BYTES_MAX: usize = 256;
const WORD_BITS: usize = 64;
/// A bit for each place of a pattern: before the first byte, and behind each.
const WORDS: usize = NAME_BYTES_MAX / WORD_BITS + 1;

type Places = [u64; WORDS];

/// A pattern of names.
pub struct Pattern {
    /// By byte: the places before parts of the pattern that stand for it.
    moves: Vec<Places>,
    /// Places at which there is a star.
    stays: Places,
    /// The place behind the last part; `None`: the pattern stands for longer names than there are.
    last: Option<usize>,
    /// What it begins with, as far as that stands for itself.
    prefix: String,
}

impl Pattern {
    /// # Errors
    /// When it is too long.
    pub fn new(pattern: &[u8]) -> Result<Self, Refused> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(Refused::new(format!(
                "ERR a pattern may have {PATTERN_BYTES_MAX} bytes: names have at most {NAME_BYTES_MAX}"
            )));
        }
        let literal = pattern.split(|byte| b"*?[\\".contains(byte)).next().unwrap_or_default();
        // Names of boards are ASCII.
        let prefix = str::from_utf8(literal).unwrap_or_default().to_owned();
        let (mut moves, mut stays) = (vec![[0; WORDS]; 256], [0; WORDS]);
        let (mut rest, mut place) = (pattern, 0);
        while let Some(first) = rest.first() {
            if *first == b'*' {
                set(&mut stays, place);
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            if place == NAME_BYTES_MAX {
                return Ok(Self { moves, stays, last: None, prefix });
            }
            let (part, taken) = Part::of(rest);
            match part {
                Part::One(literal) => {
                    moves.iter_mut().skip(usize::from(literal)).take(1).for_each(|places| set(places, place));
                }
                part => {
                    let bytes = (0..=u8::MAX).zip(&mut moves);
                    bytes.filter(|(byte, _)| part.holds(*byte)).for_each(|(_, places)| set(places, place));
                }
            }
            place += 1;
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(Self { moves, stays, last: Some(place), prefix })
    }

    /// What every name that is as the pattern says begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether a name is as the pattern says.
    pub fn matches(&self, name: &[u8]) -> bool {
        let Some(last) = self.last else { return false };
        let mut places = [0; WORDS];
        set(&mut places, 0);
        for byte in name {
            let Some(moves) = self.moves.get(usize::from(*byte)) else { return false };
            let mut carried = 0;
            for ((places, moves), stays) in places.iter_mut().zip(moves).zip(&self.stays) {
                let moved = *places & moves;
                *places = (moved << 1) | carried | (*places & stays);
                carried = moved >> (WORD_BITS - 1);
            }
        }
        places.get(last / WORD_BITS).is_some_and(|word| (word >> (last % WORD_BITS)) & 1 == 1)
    }
}

fn set(places: &mut Places, place: usize) {
    if let Some(word) = places.get_mut(place / WORD_BITS) {
        *word |= 1 << (place % WORD_BITS);
    }
}

/// What stands for one byte.
enum Part<'p> {
    Any,
    One(u8),
    /// What stands between brackets.
    Class {
        is_negated: bool,
        class: &'p [u8],
    },
}

impl<'p> Part<'p> {
    /// The first part of a pattern, and how many bytes it has.
    fn of(pattern: &'p [u8]) -> (Self, usize) {
        match pattern {
            [b'?', ..] => (Self::Any, 1),
            [b'\\', literal, ..] => (Self::One(*literal), 2),
            [b'[', class @ ..] => {
                let is_negated = class.first() == Some(&b'^');
                let begin = usize::from(is_negated);
                let mut end = begin;
                // A class that is not closed goes to the pattern's end.
                let taken = loop {
                    match class.get(end..).unwrap_or_default() {
                        [] => break end,
                        [b']', ..] => break end + 1,
                        [b'\\', _, ..] => end += 2,
                        [_, b'-', _, ..] => end += 3,
                        _ => end += 1,
                    }
                };
                (Self::Class { is_negated, class: class.get(begin..end).unwrap_or_default() }, taken + 1)
            }
            [literal, ..] => (Self::One(*literal), 1),
            [] => (Self::Any, 0),
        }
    }

    fn holds(&self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::One(literal) => *literal == byte,
            Self::Class { is_negated, class } => {
                let (mut rest, mut is_in) = (*class, false);
                loop {
                    rest = match rest {
                        [] => return is_in != *is_negated,
                        [b'\\', literal, rest @ ..] => {
                            is_in |= *literal == byte;
                            rest
                        }
                        [from, b'-', to, rest @ ..] => {
                            is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                            rest
                        }
                        [literal, rest @ ..] => {
                            is_in |= *literal == byte;
                            rest
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &[u8], name: &[u8]) -> bool {
        Pattern::new(pattern).expect("it is short").matches(name)
    }

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
            ("[", "a", false),
            ("[^", "a", true),
            ("a\\", "a\\", true),
            ("[a-]", "a", true),
            ("[a-]", "-", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expect, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_says_what_names_begin_with() {
        for (pattern, expect) in [
            ("game:*", "game:"),
            ("game:7", "game:7"),
            ("*", ""),
            ("", ""),
            ("a?", "a"),
            ("a[bc]", "a"),
            ("a\\*b", "a"),
        ] {
            assert_eq!(Pattern::new(pattern.as_bytes()).expect("it is short").prefix(), expect, "{pattern}");
        }
    }

    #[test]
    fn long_patterns_are_refused_or_stand_for_no_name_there_is() {
        assert!(Pattern::new(&[b'*'; PATTERN_BYTES_MAX + 1]).is_err());
        assert!(matches(&[b'*'; PATTERN_BYTES_MAX], b"arena"));
        let longest = [b'a'; NAME_BYTES_MAX];
        assert!(matches(&[b'?'; NAME_BYTES_MAX], &longest));
        assert!(matches(&[&[b'?'; NAME_BYTES_MAX][..], b"*"].concat(), &longest));
        assert!(!matches(&[b'?'; NAME_BYTES_MAX + 1], &longest));
        assert!(!matches(&b"*a".repeat(NAME_BYTES_MAX), &longest[1..]));
        assert!(matches(&b"*a".repeat(NAME_BYTES_MAX), &longest));
    }

    /// As simply as possible, and in exponential time.
    fn model(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            ([b'*', rest @ ..], name) => (0..=name.len()).any(|at| model(rest, &name[at..])),
            ([b'?', rest @ ..], [_, name @ ..]) => model(rest, name),
            ([literal, rest @ ..], [first, name @ ..]) => literal == first && model(rest, name),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_what_a_simple_matcher_matches(pattern in "[ab?*]{0,9}", name in "[ab]{0,9}") {
            let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(matches(pattern, name), model(pattern, name));
        }
    }
}
