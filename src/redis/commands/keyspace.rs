//! Commands about boards as keys.

#![allow(clippy::unnecessary_wraps, reason = "the table has one signature for all")]

use crate::redis::commands::command::{Command, Keyspace, Scan};
use crate::redis::commands::words::Words;
use crate::redis::frames::Arguments;
use crate::redis::number;
use crate::redis::refused::Refused;

/// What `SCAN` takes at once if it is not told.
const SCAN_COUNT: u64 = 10;

/// `EXISTS key [key ...]`
pub fn exists(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Keyspace(Keyspace::Exists(Words::after(arguments, 1).rest())))
}

/// `OBJECT ENCODING key`, `OBJECT HELP`
pub fn object(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    if let Some(help) = words.help("object")? {
        return Ok(help);
    }
    if !words.take_if("ENCODING", 0) {
        return Err(Refused::unknown_subcommand("object", words.take()?));
    }
    if words.left() != 1 {
        return Err(Refused::arity("object|encoding"));
    }
    Ok(Command::Keyspace(Keyspace::Encoding(words.take()?)))
}

/// `MEMORY USAGE key [SAMPLES count]`, `MEMORY HELP`
pub fn memory(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    if let Some(help) = words.help("memory")? {
        return Ok(help);
    }
    if !words.take_if("USAGE", 0) {
        return Err(Refused::unknown_subcommand("memory", words.take()?));
    }
    if words.left() == 0 {
        return Err(Refused::arity("memory|usage"));
    }
    let key = words.take()?;
    while words.take_if("SAMPLES", 1) {
        if words.integer()? < 0 {
            return Err(Refused::syntax());
        }
    }
    words.end()?;
    Ok(Command::Keyspace(Keyspace::Memory(key)))
}

/// `TYPE key`
pub fn type_of(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Keyspace(Keyspace::Type(Words::after(arguments, 1).take()?)))
}

/// `DEL key [key ...]`
pub fn del(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Keyspace(Keyspace::Delete(Words::after(arguments, 1).rest())))
}

/// `KEYS pattern`
pub fn keys(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Keyspace(Keyspace::Keys(Words::after(arguments, 1).take()?)))
}

/// `DBSIZE`
pub fn dbsize(_: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Keyspace(Keyspace::Size))
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
pub fn scan(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let cursor = number::cursor(words.take()?).ok_or_else(|| Refused::new("ERR invalid cursor"))?;
    let mut scan = Scan { cursor, pattern: None, count: SCAN_COUNT, of_type: None };
    while words.left() > 0 {
        if words.take_if("MATCH", 1) {
            scan.pattern = Some(words.take()?);
        } else if words.take_if("COUNT", 1) {
            scan.count = words.scan_count()?;
        } else if words.take_if("TYPE", 1) {
            scan.of_type = Some(words.take()?);
        } else {
            return Err(Refused::syntax());
        }
    }
    Ok(Command::Keyspace(Keyspace::Scan(scan)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};

    #[test]
    fn a_scan_takes_its_options_in_any_order() {
        let scan = |request| {
            parsed(request, |command| match command {
                Command::Keyspace(Keyspace::Scan(Scan { cursor, pattern, count, of_type })) => {
                    let text =
                        |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                    format!("{cursor} {:?} {count} {:?}", text(*pattern), text(*of_type))
                }
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(scan("SCAN 0"), "0 None 10 None");
        assert_eq!(
            scan("SCAN 18446744073709551615 count 5 match a*"),
            "18446744073709551615 Some(\"a*\") 5 None"
        );
        assert_eq!(scan("SCAN +00"), "0 None 10 None");
        assert_eq!(scan("SCAN 0 TYPE zset"), "0 None 10 Some(\"zset\")");
        for (request, expect) in [
            ("SCAN x", "ERR invalid cursor"),
            ("SCAN 1x", "ERR invalid cursor"),
            ("SCAN -1", "ERR invalid cursor"),
            ("SCAN 0 COUNT 0", "ERR syntax error"),
            ("SCAN 0 COUNT x", "ERR value is not an integer or out of range"),
            ("SCAN 0 MATCH", "ERR syntax error"),
            ("EXISTS", "ERR wrong number of arguments for 'exists' command"),
        ] {
            assert_eq!(refused(request), expect, "{request}");
        }
    }
}
