//! Commands that replace all entries of a board by those of others.

use crate::board::Combination;
use crate::redis::commands::combine::several;
use crate::redis::commands::command::{Command, Stored, Storing};
use crate::redis::commands::range::range_in_words;
use crate::redis::commands::words::Words;
use crate::redis::frames::Arguments;
use crate::redis::refused::Refused;

/// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]`
pub fn zunionstore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    combined(arguments, Combination::Union, "zunionstore")
}

/// `ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX]`
pub fn zinterstore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    combined(arguments, Combination::Inter, "zinterstore")
}

/// `ZDIFFSTORE destination numkeys key [key ...]`
pub fn zdiffstore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    combined(arguments, Combination::Diff, "zdiffstore")
}

fn combined<'b>(
    arguments: Arguments<'b>,
    combination: Combination,
    name: &str,
) -> Result<Command<'b>, Refused> {
    let mut words = Words::after(arguments, 1);
    let to = words.take()?;
    let (combined, _) = several(&mut words, combination, name, false)?;
    Ok(Command::Store(Storing { to, what: Stored::Combined(combined) }))
}

/// `ZRANGESTORE destination source start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]`
pub fn zrangestore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let (to, key) = (words.take()?, words.take()?);
    let range = range_in_words(&mut words, (None, None), false)?;
    Ok(Command::Store(Storing { to, what: Stored::Range(key, range) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};

    fn said(request: &str) -> String {
        parsed(request, |command| match command {
            Command::Store(Storing { to, what }) => {
                let to = String::from_utf8_lossy(to);
                match what {
                    Stored::Combined(made) => {
                        let keys: Vec<_> = made.keys.iter().map(|key| String::from_utf8_lossy(key)).collect();
                        let weights: Vec<String> = made.weights.iter().map(ToString::to_string).collect();
                        let (keys, weights) = (keys.join(","), weights.join(","));
                        format!("{to} {keys} {weights} {:?} {:?}", made.combination, made.aggregate)
                    }
                    Stored::Range(key, range) => {
                        format!(
                            "{to} {} {} {:?}",
                            String::from_utf8_lossy(key),
                            range.descending,
                            range.limit
                        )
                    }
                }
            }
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_destination_comes_first_and_options_in_any_order() {
        for (request, expect) in [
            ("ZUNIONSTORE to 2 a b", "to a,b 1,1 Union Sum"),
            ("zinterstore to 2 a to aggregate MAX weights 2 -0.5", "to a,to 2,-0.5 Inter Max"),
            ("ZDIFFSTORE to 1 a", "to a 1 Diff Sum"),
            ("ZRANGESTORE to a 0 -1 REV", "to a true None"),
            ("ZRANGESTORE to a (1 5 LIMIT 1 2 BYSCORE", "to a false Some((1, 2))"),
        ] {
            assert_eq!(said(request), expect, "{request}");
        }
    }

    #[test]
    fn wrong_ones_are_refused_in_the_words_of_redis() {
        for (request, expect) in [
            ("ZUNIONSTORE to 0 a", "ERR at least 1 input key is needed for 'zunionstore' command"),
            ("ZINTERSTORE to 3 a b", "ERR syntax error"),
            ("ZUNIONSTORE to 1 a WITHSCORES", "ERR syntax error"),
            ("ZDIFFSTORE to 1 a WEIGHTS 1", "ERR syntax error"),
            ("ZDIFFSTORE to 1", "ERR wrong number of arguments for 'zdiffstore' command"),
            ("ZRANGESTORE to a 0 -1 WITHSCORES", "ERR syntax error"),
            ("ZRANGESTORE to a x 1", "ERR value is not an integer or out of range"),
        ] {
            assert_eq!(refused(request), expect, "{request}");
        }
    }
}
