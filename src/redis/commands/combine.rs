//! Commands that read several boards together.

use crate::board::{Aggregate, Combination};
use crate::redis::commands::command::{CombineReply, Combined, Combining, Command};
use crate::redis::commands::words::{Words, is};
use crate::redis::frames::Arguments;
use crate::redis::number;
use crate::redis::refused::Refused;
use crate::types::Number;

/// `ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]`
pub fn zunion(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    combined(arguments, Combination::Union, "zunion")
}

/// `ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]`
pub fn zinter(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    combined(arguments, Combination::Inter, "zinter")
}

/// `ZDIFF numkeys key [key ...] [WITHSCORES]`
pub fn zdiff(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    combined(arguments, Combination::Diff, "zdiff")
}

/// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`
pub fn zintercard(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let keys = keys(&mut words, "zintercard")?;
    let mut limit = 0;
    while words.left() > 0 {
        if !words.take_if("LIMIT", 1) {
            return Err(Refused::syntax());
        }
        let given = number::integer::<i64>(words.take()?);
        let given = given.and_then(|given| u64::try_from(given).ok());
        limit = given.ok_or_else(|| Refused::new("ERR LIMIT can't be negative"))?;
    }
    let (combination, aggregate) = (Combination::Inter, Aggregate::Sum);
    let weights = vec![Number::Integer(1); keys.len()];
    let reply = CombineReply::Count { limit };
    let combined = Combined { keys, weights, combination, aggregate };
    Ok(Command::Combine(Combining { combined, reply }))
}

/// How many keys there are, and the keys.
fn keys<'b>(words: &mut Words<'b>, name: &str) -> Result<Vec<&'b [u8]>, Refused> {
    let count = words.integer()?;
    let count = usize::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| Refused::new(format!("ERR at least 1 input key is needed for '{name}' command")))?;
    if count > words.left() {
        return Err(Refused::syntax());
    }
    (0..count).map(|_| words.take()).collect()
}

fn combined<'b>(
    arguments: Arguments<'b>,
    combination: Combination,
    name: &str,
) -> Result<Command<'b>, Refused> {
    let mut words = Words::after(arguments, 1);
    let (combined, with_scores) = several(&mut words, combination, name, true)?;
    let reply = CombineReply::Entries { with_scores };
    Ok(Command::Combine(Combining { combined, reply }))
}

/// Several boards together, and whether scores are asked for.
///
/// # Arguments
/// `may_show`: whether they may be
pub fn several<'b>(
    words: &mut Words<'b>,
    combination: Combination,
    name: &str,
    may_show: bool,
) -> Result<(Combined<'b>, bool), Refused> {
    let keys = keys(words, name)?;
    let mut weights = vec![Number::Integer(1); keys.len()];
    let (mut aggregate, mut with_scores) = (Aggregate::Sum, false);
    let has_scores = combination != Combination::Diff;
    while words.left() > 0 {
        if has_scores && words.take_if("WEIGHTS", keys.len()) {
            for weight in &mut weights {
                let given = number::score(words.take()?);
                *weight = given.ok_or_else(|| Refused::new("ERR weight value is not a float"))?;
            }
        } else if has_scores && words.take_if("AGGREGATE", 1) {
            let word = words.take()?;
            let known = Aggregate::ALL.into_iter().find(|known| is(word, known.name()));
            aggregate = known.ok_or_else(Refused::syntax)?;
        } else if may_show && words.take_if("WITHSCORES", 0) {
            with_scores = true;
        } else {
            return Err(Refused::syntax());
        }
    }
    Ok((Combined { keys, weights, combination, aggregate }, with_scores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};

    fn said(request: &str) -> String {
        parsed(request, |command| match command {
            Command::Combine(Combining { combined, reply }) => {
                let Combined { keys, weights, combination, aggregate } = combined;
                let keys: Vec<_> = keys.iter().map(|key| String::from_utf8_lossy(key)).collect();
                let weights: Vec<String> = weights.iter().map(ToString::to_string).collect();
                format!("{} {} {combination:?} {aggregate:?} {reply:?}", keys.join(","), weights.join(","))
            }
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn boards_are_counted_and_options_come_in_any_order() {
        for (request, expect) in [
            ("ZUNION 2 a b", "a,b 1,1 Union Sum Entries { with_scores: false }"),
            (
                "zinter 2 a b withscores aggregate MAX weights 2 -0.5",
                "a,b 2,-0.5 Inter Max Entries { with_scores: true }",
            ),
            ("ZDIFF 1 a WITHSCORES", "a 1 Diff Sum Entries { with_scores: true }"),
            ("ZINTERCARD 2 a a LIMIT 5", "a,a 1,1 Inter Sum Count { limit: 5 }"),
            ("ZINTERCARD 1 a", "a 1 Inter Sum Count { limit: 0 }"),
        ] {
            assert_eq!(said(request), expect, "{request}");
        }
    }

    #[test]
    fn wrong_ones_are_refused_in_the_words_of_redis() {
        for (request, expect) in [
            ("ZUNION 0 a", "ERR at least 1 input key is needed for 'zunion' command"),
            ("ZINTERCARD -1 a", "ERR at least 1 input key is needed for 'zintercard' command"),
            ("ZUNION x a", "ERR value is not an integer or out of range"),
            ("ZUNION 3 a b", "ERR syntax error"),
            ("ZUNION 2 a b WEIGHTS 1", "ERR syntax error"),
            ("ZUNION 2 a b WEIGHTS 1 x", "ERR weight value is not a float"),
            ("ZUNION 1 a WEIGHTS nan", "ERR weight value is not a float"),
            ("ZUNION 1 a AGGREGATE avg", "ERR syntax error"),
            ("ZDIFF 1 a WEIGHTS 1", "ERR syntax error"),
            ("ZINTERCARD 1 a WITHSCORES", "ERR syntax error"),
            ("ZINTERCARD 1 a LIMIT -1", "ERR LIMIT can't be negative"),
            ("ZINTERCARD 1", "ERR wrong number of arguments for 'zintercard' command"),
        ] {
            assert_eq!(refused(request), expect, "{request}");
        }
    }
}
