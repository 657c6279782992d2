//! `ZADD`, `ZINCRBY` and `ZREM`.

use crate::job::{Compare, Presence};
use crate::redis::commands::command::{Add, Command, Write};
use crate::redis::commands::words::{Words, is};
use crate::redis::frames::Arguments;
use crate::redis::number;
use crate::redis::refused::Refused;

/// The most members of one command.
const MEMBERS_MAX: usize = 65_536;
const FLAGS: [&str; 6] = ["NX", "XX", "GT", "LT", "CH", "INCR"];

/// # Errors
/// When there are so many that they take long, and much memory, together.
fn check_members(members: usize) -> Result<(), Refused> {
    if members <= MEMBERS_MAX {
        return Ok(());
    }
    Err(Refused::new(format!("ERR a command may write {MEMBERS_MAX} members: send them in parts")))
}

/// `ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member ...]`
pub fn zadd(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let key = words.take()?;
    let (mut new, mut existing, mut greater, mut less) = (false, false, false, false);
    let (mut counts_changed, mut increment) = (false, false);
    loop {
        let flags = [&mut new, &mut existing, &mut greater, &mut less, &mut counts_changed, &mut increment];
        let flag = flags.into_iter().zip(FLAGS).find(|(_, word)| words.take_if(word, 0));
        let Some((flag, _)) = flag else { break };
        *flag = true;
    }
    if words.left() == 0 || !words.left().is_multiple_of(2) {
        return Err(Refused::syntax());
    }
    if new && existing {
        return Err(Refused::new("ERR XX and NX options at the same time are not compatible"));
    }
    if (greater && less) || (new && (greater || less)) {
        return Err(Refused::new("ERR GT, LT, and/or NX options at the same time are not compatible"));
    }
    if increment && words.left() > 2 {
        return Err(Refused::new("ERR INCR option supports a single increment-element pair"));
    }
    check_members(words.left() / 2)?;
    let mut pairs = Vec::with_capacity(words.left() / 2);
    while words.left() > 0 {
        let score = number::score(words.take()?).ok_or_else(Refused::no_float)?;
        pairs.push((score, words.take()?));
    }
    let presence = match (new, existing) {
        (true, _) => Presence::New,
        (_, true) => Presence::Existing,
        _ => Presence::Any,
    };
    let compare = match (greater, less) {
        (true, _) => Compare::Greater,
        (_, true) => Compare::Less,
        _ => Compare::Any,
    };
    Ok(Command::Write(key, Write::Add(Add { presence, compare, counts_changed, increment, pairs })))
}

/// `ZINCRBY key increment member`
pub fn zincrby(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let (key, step) = (words.take()?, words.take()?);
    // Redis reads them as it does those of `ZADD`, and misses the score.
    if FLAGS.iter().any(|flag| is(step, flag)) {
        return Err(Refused::syntax());
    }
    let score = number::score(step).ok_or_else(Refused::no_float)?;
    let add = Add {
        presence: Presence::Any,
        compare: Compare::Any,
        counts_changed: false,
        increment: true,
        pairs: vec![(score, words.take()?)],
    };
    Ok(Command::Write(key, Write::Add(add)))
}

/// `ZREM key member [member ...]`
pub fn zrem(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let key = words.take()?;
    check_members(words.left())?;
    Ok(Command::Write(key, Write::Remove(words.rest())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};
    use crate::types::Number;

    fn add(request: &str) -> String {
        parsed(request, |command| match command {
            Command::Write(b"k", Write::Add(add)) => format!(
                "{:?} {:?} {} {} {}",
                add.presence,
                add.compare,
                add.counts_changed,
                add.increment,
                add.pairs.len()
            ),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn flags_come_before_the_pairs_in_any_order_and_case() {
        assert_eq!(add("ZADD k 1 a 2 b"), "Any Any false false 2");
        assert_eq!(add("zadd k ch Gt XX 1 a"), "Existing Greater true false 1");
        assert_eq!(add("ZADD k NX INCR 1.5 a"), "New Any false true 1");
        assert_eq!(add("ZADD k LT LT 1 nx"), "Any Less false false 1");
        assert_eq!(add("ZINCRBY k 2 a"), "Any Any false true 1");
    }

    #[test]
    fn conflicts_and_bad_scores_are_refused_in_the_words_of_redis() {
        for (request, expect) in [
            ("ZADD k 1", "ERR wrong number of arguments for 'zadd' command"),
            ("ZADD k 1 a 2", "ERR syntax error"),
            ("ZADD k NX XX", "ERR syntax error"),
            ("ZADD k NX XX 1 a", "ERR XX and NX options at the same time are not compatible"),
            ("ZADD k GT LT 1 a", "ERR GT, LT, and/or NX options at the same time are not compatible"),
            ("ZADD k NX GT 1 a", "ERR GT, LT, and/or NX options at the same time are not compatible"),
            ("ZADD k INCR 1 a 2 b", "ERR INCR option supports a single increment-element pair"),
            ("ZADD k x a", "ERR value is not a valid float"),
            ("ZADD k 1 a nan b", "ERR value is not a valid float"),
            ("ZINCRBY k x a", "ERR value is not a valid float"),
            ("ZINCRBY k NX a", "ERR syntax error"),
            ("ZINCRBY k 1", "ERR wrong number of arguments for 'zincrby' command"),
            ("ZREM k", "ERR wrong number of arguments for 'zrem' command"),
        ] {
            assert_eq!(refused(request), expect, "{request}");
        }
    }

    #[test]
    fn a_command_of_too_many_members_is_refused_with_what_to_do() {
        let members: Vec<String> = (0..=MEMBERS_MAX).map(|number| format!("m{number}")).collect();
        let pairs: Vec<String> = members.iter().map(|member| format!("1 {member}")).collect();
        for (command, words) in [("ZREM", &members), ("ZADD", &pairs)] {
            let told = refused(&format!("{command} k {}", words.join(" ")));
            assert_eq!(told, "ERR a command may write 65536 members: send them in parts");
        }
        parsed(&format!("ZREM k {}", members[1..].join(" ")), |_| ());
    }

    #[test]
    fn scores_are_kept_exactly() {
        let pairs = parsed("ZADD k 9223372036854775807 a +inf b", |command| match command {
            Command::Write(_, Write::Add(add)) => {
                add.pairs.iter().map(|(score, _)| *score).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(pairs.first(), Some(&Number::Integer(i64::MAX)));
        assert_eq!(pairs.last().map(ToString::to_string).as_deref(), Some("inf"));
    }
}
