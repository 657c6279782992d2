//! Commands about when boards end.

use crate::redis::commands::command::{Command, Expire, Keyspace, TimeAsked, WhenToExpire};
use crate::redis::commands::words::{Words, is};
use crate::redis::frames::Arguments;
use crate::redis::refused::Refused;
use crate::types::Timestamp;

/// Microseconds of the two units.
const SECOND: i64 = 1_000_000;
const MILLISECOND: i64 = 1_000;

/// `EXPIRE key seconds [NX | XX | GT | LT]`
pub fn expire(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    parsed(arguments, "expire", SECOND, false)
}

/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
pub fn pexpire(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    parsed(arguments, "pexpire", MILLISECOND, false)
}

/// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`
pub fn expireat(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    parsed(arguments, "expireat", SECOND, true)
}

/// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`
pub fn pexpireat(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    parsed(arguments, "pexpireat", MILLISECOND, true)
}

/// `TTL key`
pub fn ttl(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    asked(arguments, SECOND, false)
}

/// `PTTL key`
pub fn pttl(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    asked(arguments, MILLISECOND, false)
}

/// `EXPIRETIME key`
pub fn expiretime(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    asked(arguments, SECOND, true)
}

/// `PEXPIRETIME key`
pub fn pexpiretime(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    asked(arguments, MILLISECOND, true)
}

/// `PERSIST key`
pub fn persist(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Keyspace(Keyspace::Persist(Words::after(arguments, 1).take()?)))
}

fn asked(arguments: Arguments<'_>, unit: i64, is_time: bool) -> Result<Command<'_>, Refused> {
    let key = Words::after(arguments, 1).take()?;
    Ok(Command::Keyspace(Keyspace::Ends(key, TimeAsked { unit, is_time })))
}

fn parsed<'b>(
    arguments: Arguments<'b>,
    name: &'static str,
    unit: i64,
    is_time: bool,
) -> Result<Command<'b>, Refused> {
    let mut words = Words::after(arguments, 1);
    let (key, value) = (words.take()?, words.integer()?);
    let mut when = WhenToExpire::default();
    for option in words.rest() {
        let conditions = [
            ("NX", &mut when.if_endless),
            ("XX", &mut when.if_ending),
            ("GT", &mut when.if_later),
            ("LT", &mut when.if_earlier),
        ];
        let found = conditions.into_iter().find(|(word, _)| is(option, word));
        let Some((_, condition)) = found else {
            return Err(Refused::new(format!("ERR Unsupported option {}", String::from_utf8_lossy(option))));
        };
        *condition = true;
    }
    let WhenToExpire { if_endless, if_ending, if_later, if_earlier } = when;
    if if_endless && (if_ending || if_later || if_earlier) {
        return Err(Refused::new("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if if_later && if_earlier {
        return Err(Refused::new("ERR GT and LT options at the same time are not compatible"));
    }
    let latest = Timestamp::MAX.as_micros() / unit;
    if value > latest || value < -latest {
        return Err(Refused::new(format!("ERR invalid expire time in '{name}' command")));
    }
    Ok(Command::Keyspace(Keyspace::Expire(Expire { key, micros: value * unit, is_time, when, name })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};

    #[test]
    fn units_and_conditions_are_those_of_redis() {
        let expire = |request: &str| {
            parsed(request, |command| match command {
                Command::Keyspace(Keyspace::Expire(Expire { micros, is_time, when, .. })) => {
                    let WhenToExpire { if_endless, if_ending, if_later, if_earlier } = *when;
                    (*micros, *is_time, [if_endless, if_ending, if_later, if_earlier])
                }
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(expire("EXPIRE k 2"), (2_000_000, false, [false; 4]));
        assert_eq!(expire("PEXPIRE k -2 nx"), (-2_000, false, [true, false, false, false]));
        assert_eq!(expire("EXPIREAT k 2 XX GT"), (2_000_000, true, [false, true, true, false]));
        assert_eq!(expire("PEXPIREAT k 2 LT LT"), (2_000, true, [false, false, false, true]));
        for (request, words) in [
            ("EXPIRE k 1 NX XX", "ERR NX and XX, GT or LT options at the same time are not compatible"),
            ("EXPIRE k 1 GT LT", "ERR GT and LT options at the same time are not compatible"),
            ("EXPIRE k 1 ab", "ERR Unsupported option ab"),
            ("EXPIRE k x", "ERR value is not an integer or out of range"),
            ("PEXPIRE k 9223372036854775807", "ERR invalid expire time in 'pexpire' command"),
            ("EXPIREAT k -9223372036854775808", "ERR invalid expire time in 'expireat' command"),
        ] {
            assert_eq!(refused(request), words, "{request}");
        }
    }
}
