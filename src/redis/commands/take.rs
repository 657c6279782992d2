//! Commands that take entries away by their place: the ends of a board, and ranges.

use crate::redis::commands::command::{Command, PopReply, Popping, Taking};
use crate::redis::commands::range::{By, range_of};
use crate::redis::commands::words::Words;
use crate::redis::frames::Arguments;
use crate::redis::number;
use crate::redis::refused::Refused;

/// `ZREMRANGEBYRANK key start stop`
pub fn zremrangebyrank(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    remove(arguments, By::Index)
}

/// `ZREMRANGEBYSCORE key min max`
pub fn zremrangebyscore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    remove(arguments, By::Score)
}

/// `ZREMRANGEBYLEX key min max`
pub fn zremrangebylex(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    remove(arguments, By::Lex)
}

fn remove(arguments: Arguments<'_>, by: By) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let key = words.take()?;
    Ok(Command::Take(Taking::Range(key, range_of(by, words.take()?, words.take()?)?)))
}

/// `ZPOPMIN key [count]`
pub fn zpopmin(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    pop(arguments, false)
}

/// `ZPOPMAX key [count]`
pub fn zpopmax(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    pop(arguments, true)
}

fn pop(arguments: Arguments<'_>, greatest: bool) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let key = words.take()?;
    let count = if words.left() == 0 { None } else { Some(words.take()?) };
    words.end()?;
    let reply = if count.is_some() { PopReply::Several } else { PopReply::One };
    // Of 63 bits, as other integers.
    let positive = |text| number::integer::<i64>(text).and_then(|count| u64::try_from(count).ok());
    let count = count.map_or(Some(1), positive);
    let count = count.ok_or_else(|| Refused::new("ERR value is out of range, must be positive"))?;
    Ok(Command::Take(Taking::Pop(Popping { keys: vec![key], greatest, count, reply })))
}

/// `ZMPOP numkeys key [key ...] MIN|MAX [COUNT count]`
pub fn zmpop(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let positive = |text: &[u8], refused: &'static str| {
        number::integer::<u64>(text).filter(|number| *number > 0).ok_or_else(|| Refused::new(refused))
    };
    let count = positive(words.take()?, "ERR numkeys should be greater than 0")?;
    let keys = usize::try_from(count).ok().filter(|count| *count < words.left());
    let keys = keys.ok_or_else(Refused::syntax)?;
    let keys = (0..keys).map(|_| words.take()).collect::<Result<Vec<_>, _>>()?;
    let greatest = words.take_if("MAX", 0);
    if !greatest && !words.take_if("MIN", 0) {
        return Err(Refused::syntax());
    }
    let mut count = 1;
    if words.take_if("COUNT", 1) {
        count = positive(words.take()?, "ERR count should be greater than 0")?;
    }
    words.end()?;
    Ok(Command::Take(Taking::Pop(Popping { keys, greatest, count, reply: PopReply::WithKey })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};

    #[test]
    fn pops_say_from_which_end_and_how_many() {
        let pop = |request| {
            parsed(request, |command| match command {
                Command::Take(Taking::Pop(Popping { keys, greatest, count, reply })) => {
                    format!("{} {greatest} {count} {reply:?}", keys.len())
                }
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(pop("ZPOPMIN k"), "1 false 1 One");
        assert_eq!(pop("zpopmax k 0"), "1 true 0 Several");
        assert_eq!(pop("ZMPOP 2 a b max count 7"), "2 true 7 WithKey");
        assert_eq!(pop("ZMPOP 1 a MIN"), "1 false 1 WithKey");
    }

    #[test]
    fn bad_counts_are_refused_in_the_words_of_redis() {
        for (request, expect) in [
            ("ZPOPMIN k -1", "ERR value is out of range, must be positive"),
            ("ZPOPMIN k x", "ERR value is out of range, must be positive"),
            ("ZPOPMIN k 1 2", "ERR syntax error"),
            ("ZMPOP 0 k MIN", "ERR numkeys should be greater than 0"),
            ("ZMPOP x k MIN", "ERR numkeys should be greater than 0"),
            ("ZMPOP 2 k MIN", "ERR syntax error"),
            ("ZMPOP 9 k MIN", "ERR syntax error"),
            ("ZMPOP 1 k MID", "ERR syntax error"),
            ("ZMPOP 1 k MIN COUNT 0", "ERR count should be greater than 0"),
            ("ZMPOP 1 k MIN COUNT 1 COUNT 1", "ERR syntax error"),
            ("ZREMRANGEBYRANK k 0 x", "ERR value is not an integer or out of range"),
            ("ZREMRANGEBYSCORE k x 1", "ERR min or max is not a float"),
            ("ZREMRANGEBYLEX k a [b", "ERR min or max not valid string range item"),
        ] {
            assert_eq!(refused(request), expect, "{request}");
        }
    }
}
