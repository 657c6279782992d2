//! An append-only file of Redis: the commands that made a sorted set are done once more, in memory, and its
//! members are the rows.
//!
//! Knows: the protocol of Redis and the commands about one sorted set. A command that names the set and is
//! none of these is refused: what it did is not known here.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

use crate::cli::import::ImportError;
use crate::cli::import::read::redis_entry::RedisEntries;
use crate::cli::import::read::row::Parsed;

/// The longest word of a command that is kept: ids are shorter, and scores too.
const WORD_BYTES: usize = 1024;
/// The most words of a command.
const WORDS: usize = 1_000_000;

/// One sorted set, by member.
type Members = BTreeMap<Vec<u8>, f64>;

/// The members of the set at the end of the log, as rows.
pub struct RedisLog {
    entries: RedisEntries,
    members: std::collections::btree_map::IntoIter<Vec<u8>, f64>,
    read: u64,
}

impl RedisLog {
    /// # Errors
    /// When the file is not such a log, does what is not known here, or has no such set at its end.
    pub fn open(mut reader: impl BufRead, key: &str, entries: RedisEntries) -> Result<Self, ImportError> {
        let mut replay = Replay { key: key.as_bytes().to_vec(), ..Replay::default() };
        let mut number = 0;
        loop {
            number += 1;
            let refused = |why: String| ImportError::RedisLog { number, why };
            let words = command(&mut reader).map_err(|error| refused(error.to_string()))?;
            let Some(words) = words else { break };
            replay.read(words).map_err(refused)?;
        }
        replay.expire(jiff::Timestamp::now().as_millisecond());
        let mut sets = replay.sets.into_iter().filter(|(_, members)| !members.is_empty());
        let Some((database, members)) = sets.next() else {
            return Err(ImportError::RedisEmpty(key.to_owned()));
        };
        if let Some((other, _)) = sets.next() {
            let name = |database: &[u8]| {
                if database.is_empty() {
                    "0".to_owned()
                } else {
                    String::from_utf8_lossy(database).into_owned()
                }
            };
            return Err(ImportError::RedisTwice(name(&database), name(&other)));
        }
        Ok(Self { entries, members: members.into_iter(), read: 0 })
    }
}

impl Iterator for RedisLog {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (member, score) = self.members.next()?;
        self.read += 1;
        let row = self.entries.row(self.read, &member, &score.to_string());
        Some(Ok(row.map_or_else(Parsed::Rejected, Parsed::Row)))
    }
}

/// The set as the log has it so far, in each database.
#[derive(Default)]
struct Replay {
    key: Vec<u8>,
    database: Vec<u8>,
    sets: BTreeMap<Vec<u8>, Members>,
    /// When the set of a database is to be gone, in milliseconds since 1970.
    expiries: BTreeMap<Vec<u8>, i64>,
    /// Of a transaction, which Redis does as a whole, or not at all if the log ends within it.
    transaction: Option<Vec<Vec<Vec<u8>>>>,
}

impl Replay {
    fn read(&mut self, words: Vec<Vec<u8>>) -> Result<(), String> {
        match (words.first().map(|word| word.to_ascii_uppercase()).as_deref(), &mut self.transaction) {
            (Some(b"MULTI"), _) => self.transaction = Some(Vec::new()),
            (Some(b"DISCARD"), _) => self.transaction = None,
            (Some(b"EXEC"), _) => {
                let commands = self.transaction.take().unwrap_or_default();
                return commands.iter().try_for_each(|words| self.apply(words));
            }
            (_, Some(commands)) => commands.push(words),
            (_, None) => return self.apply(&words),
        }
        Ok(())
    }

    fn expire(&mut self, now: i64) {
        let Self { sets, expiries, .. } = self;
        sets.retain(|database, _| expiries.get(database).is_none_or(|at| *at > now));
    }

    fn remove(&mut self) {
        self.sets.remove(&self.database);
        self.expiries.remove(&self.database);
    }

    fn apply(&mut self, words: &[Vec<u8>]) -> Result<(), String> {
        let Some((name, arguments)) = words.split_first() else { return Ok(()) };
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        let is_of_key = arguments.first() == Some(&self.key);
        match name.as_str() {
            "SELECT" => {
                let database = arguments.first().cloned().unwrap_or_default();
                self.database = if database == b"0" { Vec::new() } else { database };
            }
            "FLUSHALL" => {
                self.sets.clear();
                self.expiries.clear();
            }
            "FLUSHDB" => self.remove(),
            "SWAPDB" => return Err(unknown(&name, "sets between databases")),
            "DEL" | "UNLINK" if arguments.contains(&self.key) => self.remove(),
            // Whatever sets an expiry is written as this.
            "PEXPIREAT" if is_of_key => {
                let at = arguments.get(1).and_then(|at| std::str::from_utf8(at).ok()?.parse().ok());
                let at = at.ok_or("PEXPIREAT has no time")?;
                self.expiries.insert(self.database.clone(), at);
            }
            "PERSIST" if is_of_key => {
                self.expiries.remove(&self.database);
            }
            "PUBLISH" => {}
            "ZADD" if is_of_key => self.add(arguments)?,
            "ZINCRBY" if is_of_key => {
                let [_, by, member] = arguments else { return Err("ZINCRBY has not three words".to_owned()) };
                let by = number(by)?;
                *self.members().entry(member.clone()).or_insert(0.0) += by;
            }
            "ZREM" if is_of_key => {
                for member in arguments.iter().skip(1) {
                    self.members().remove(member);
                }
                // Redis has no empty sets: the next one of that name has no expiry.
                if self.members().is_empty() {
                    self.remove();
                }
            }
            _ if arguments.contains(&self.key) => {
                return Err(unknown(&name, &format!("{:?}", String::from_utf8_lossy(&self.key))));
            }
            _ => {}
        }
        Ok(())
    }

    fn members(&mut self) -> &mut Members {
        self.sets.entry(self.database.clone()).or_default()
    }

    fn add(&mut self, arguments: &[Vec<u8>]) -> Result<(), String> {
        let mut rest = arguments.get(1..).unwrap_or_default();
        let (mut only_new, mut only_old, mut only_greater, mut only_less, mut adds) =
            (false, false, false, false, false);
        while let Some((word, after)) = rest.split_first() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => only_new = true,
                b"XX" => only_old = true,
                b"GT" => only_greater = true,
                b"LT" => only_less = true,
                b"INCR" => adds = true,
                b"CH" => {}
                _ => break,
            }
            rest = after;
        }
        for pair in rest.chunks(2) {
            let [score, member] = pair else { return Err("ZADD has a score without a member".to_owned()) };
            let mut score = number(score)?;
            let old = self.members().get(member).copied();
            score += old.filter(|_| adds).unwrap_or(0.0);
            let is_kept = match old {
                None => only_old,
                Some(old) => only_new || (only_greater && score <= old) || (only_less && score >= old),
            };
            if !is_kept {
                self.members().insert(member.clone(), score);
            }
        }
        Ok(())
    }
}

fn unknown(command: &str, what: &str) -> String {
    format!(
        "{command} changes {what} in a way that an import does not do; start a Redis on the file, and import with \
         --redis"
    )
}

fn number(word: &[u8]) -> Result<f64, String> {
    let text = String::from_utf8_lossy(word);
    text.parse().map_err(|_| format!("{text:?} is not a score"))
}

/// The words of the next command. `None`: there is none.
fn command(reader: &mut impl BufRead) -> io::Result<Option<Vec<Vec<u8>>>> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut head = line(reader)?;
    // Remarks, such as the time.
    while head.as_ref().is_some_and(|head| head.starts_with(b"#")) {
        head = line(reader)?;
    }
    let Some(head) = head else { return Ok(None) };
    let count = length(&head, b'*').ok_or_else(|| wrong("it is no command of an append-only file"))?;
    if count > WORDS {
        return Err(wrong("it has more words than any command about a sorted set"));
    }
    let mut words = Vec::new();
    for _ in 0..count {
        let cut = || wrong("the file ends within it; redis-check-aof mends it");
        let head = line(reader)?.ok_or_else(cut)?;
        let length = length(&head, b'$').ok_or_else(|| wrong("a word of it is none"))?;
        let mut word = Vec::new();
        let kept = length.min(WORD_BYTES);
        reader.by_ref().take(u64::try_from(kept).unwrap_or(u64::MAX)).read_to_end(&mut word)?;
        // Of what is longer, only its length matters.
        let more = u64::try_from(length - kept).unwrap_or(u64::MAX);
        let skipped = io::copy(&mut reader.by_ref().take(more), &mut io::sink())?;
        let mut end = [0; 2];
        if word.len() < kept || skipped < more || reader.read_exact(&mut end).is_err() {
            return Err(cut());
        }
        words.push(word);
    }
    Ok(Some(words))
}

fn line(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read =
        reader.by_ref().take(u64::try_from(WORD_BYTES).unwrap_or(u64::MAX)).read_until(b'\n', &mut line)?;
    Ok((read > 0).then(|| line.trim_ascii_end().to_vec()))
}

fn length(head: &[u8], mark: u8) -> Option<usize> {
    std::str::from_utf8(head.strip_prefix(&[mark])?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(commands: &[&[&str]]) -> Vec<u8> {
        let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let command =
            |words: &&[&str]| format!("*{}\r\n{}", words.len(), words.iter().map(word).collect::<String>());
        commands.iter().map(command).collect::<String>().into_bytes()
    }

    fn members(log: &[u8]) -> Result<Vec<(String, f64)>, String> {
        let mut replay = Replay { key: b"k".to_vec(), ..Replay::default() };
        let mut reader = log;
        while let Some(words) = command(&mut reader).map_err(|error| error.to_string())? {
            replay.read(words)?;
        }
        replay.expire(1_000);
        let members = replay.sets.remove(&Vec::new()).unwrap_or_default();
        Ok(members
            .into_iter()
            .map(|(member, score)| (String::from_utf8_lossy(&member).into_owned(), score))
            .collect())
    }

    #[test]
    fn commands_about_the_set_are_done_once_more() {
        let commands = log(&[
            &["SELECT", "0"],
            &["ZADD", "k", "1", "a", "2", "b"],
            &["zadd", "other", "9", "a"],
            &["ZINCRBY", "k", "2.5", "a"],
            &["ZADD", "k", "GT", "CH", "1", "b", "7", "c"],
            &["ZADD", "k", "NX", "0", "b", "4", "d"],
            &["ZADD", "k", "INCR", "1", "d"],
            &["SET", "x", "y"],
            &["ZREM", "k", "c", "none"],
            &["SELECT", "3"],
            &["DEL", "k"],
        ]);
        let text = [b"#TS:1\r\n".to_vec(), commands].concat();
        let expect = [("a", 3.5), ("b", 2.0), ("d", 5.0)].map(|(member, score)| (member.to_owned(), score));
        assert_eq!(members(&text), Ok(expect.to_vec()));
        assert_eq!(members(&log(&[&["ZADD", "k", "1", "a"], &["FLUSHALL"]])), Ok(Vec::new()));
        // What a transaction has not ended, and what has expired, Redis does not have either.
        let add: &[&str] = &["ZADD", "k", "1", "a"];
        let one = Ok(vec![("a".to_owned(), 1.0)]);
        assert_eq!(members(&log(&[add, &["MULTI"], &["ZADD", "k", "9", "b"]])), one);
        assert_eq!(members(&log(&[add, &["MULTI"], &["DEL", "k"], &["DISCARD"]])), one);
        assert_eq!(members(&log(&[&["multi"], add, &["exec"]])), one);
        assert_eq!(members(&log(&[add, &["PEXPIREAT", "k", "1000"]])), Ok(Vec::new()));
        assert_eq!(members(&log(&[add, &["PEXPIREAT", "k", "1001"]])), one);
        assert_eq!(members(&log(&[add, &["PEXPIREAT", "k", "1"], &["PERSIST", "k"]])), one);
        assert_eq!(members(&log(&[&["PEXPIREAT", "k", "1"], &["DEL", "k"], add])), one);
        assert_eq!(members(&log(&[add, &["PEXPIREAT", "k", "1"], &["ZREM", "k", "a"], add])), one);
    }

    #[test]
    fn what_is_not_known_here_is_refused() {
        let cut = log(&[&["ZADD", "k", "1", "a"]]);
        for (text, expect) in [
            (log(&[&["ZUNIONSTORE", "k", "1", "other"]]), "ZUNIONSTORE changes \"k\""),
            (log(&[&["RENAME", "other", "k"]]), "RENAME changes \"k\""),
            (log(&[&["ZADD", "k", "many", "a"]]), "\"many\" is not a score"),
            (cut.get(..cut.len() - 3).expect("longer").to_vec(), "the file ends within it"),
            (b"hello\r\n".to_vec(), "no command of an append-only file"),
        ] {
            let told = members(&text).expect_err(expect);
            assert!(told.contains(expect), "{told}");
        }
    }
}
