//! Every command, once. Dispatch, `COMMAND`, the labels of metrics and the list of docs/redis.md follow from
//! it.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::access::Scope;
use crate::redis::commands::command::Command;
use crate::redis::commands::{add, combine, connection, expiry, keyspace, range, store, take, transaction};
use crate::redis::frames::Arguments;
use crate::redis::number;
use crate::redis::refused::Refused;

/// A command, and all that is said of it.
pub struct Spec {
    /// In small letters.
    pub name: &'static str,
    /// How many arguments it has, its name among them; negative: at least so many.
    pub arity: i64,
    pub keys: KeyPlaces,
    pub needs: Needs,
    pub group: Group,
    /// The version of Redis that has it first.
    pub since: &'static str,
    pub summary: &'static str,
    pub parse: for<'b> fn(Arguments<'b>) -> Result<Command<'b>, Refused>,
}

/// Which of a command's arguments are keys. All 0: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPlaces {
    pub first: i64,
    /// Negative: from the end.
    pub last: i64,
    pub step: i64,
    /// Which argument says how many keys follow it, beside the first; 0: none.
    count_at: usize,
}

impl KeyPlaces {
    const NONE: Self = Self { first: 0, last: 0, step: 0, count_at: 0 };
    const FIRST: Self = Self { first: 1, last: 1, step: 1, count_at: 0 };
    /// Behind a subcommand.
    const SECOND: Self = Self { first: 2, last: 2, step: 1, count_at: 0 };
    const PAIR: Self = Self { first: 1, last: 2, step: 1, count_at: 0 };
    const ALL: Self = Self { first: 1, last: -1, step: 1, count_at: 0 };
    /// As many as the first argument says.
    const COUNTED: Self = Self { first: 0, last: 0, step: 0, count_at: 1 };
    /// The first, and as many as the second says.
    const FIRST_AND_COUNTED: Self = Self { first: 1, last: 1, step: 1, count_at: 2 };

    /// Whether an argument says how many keys there are.
    pub fn are_counted(self) -> bool {
        self.count_at > 0
    }

    /// The keys among a command's words, its name first.
    pub fn among<W: AsRef<[u8]>>(self, words: &[W]) -> impl Iterator<Item = &W> {
        let first = usize::try_from(self.first).unwrap_or_default();
        let last = usize::try_from(self.last).unwrap_or(words.len().saturating_sub(1));
        let plain = if first == 0 { 0 } else { (last + 1).saturating_sub(first) };
        let counted_from = self.count_at + 1;
        let count = words.get(self.count_at).filter(|_| self.are_counted());
        let count = count.and_then(|count| number::integer::<usize>(count.as_ref()));
        // Fewer than it says are none.
        let counted = count.filter(|count| *count <= words.len().saturating_sub(counted_from));
        let is_none = self.are_counted() && counted.is_none();
        let plain = words.iter().skip(first).take(if is_none { 0 } else { plain });
        plain.chain(words.iter().skip(counted_from).take(counted.unwrap_or_default()))
    }
}

/// What a command needs of the connection's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// A token of this scope.
    Token(Scope),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Connection,
    Generic,
    Server,
    SortedSet,
    Transactions,
}

impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Server => "server",
            Self::SortedSet => "sorted-set",
            Self::Transactions => "transactions",
        }
    }
}

impl Spec {
    /// # Errors
    /// When there are too few arguments, or too many.
    pub fn check_arity(&self, arguments: usize) -> Result<(), Refused> {
        let count = i64::try_from(arguments).unwrap_or(i64::MAX);
        let fits = if self.arity < 0 { count >= -self.arity } else { count == self.arity };
        if fits { Ok(()) } else { Err(Refused::arity(self.name)) }
    }

    /// Whether it waits for `EXEC` behind a `MULTI`.
    pub fn waits_for_exec(&self) -> bool {
        !matches!(self.name, "multi" | "exec" | "discard" | "quit" | "reset")
    }

    /// Whether it changes what is kept.
    pub fn writes(&self) -> bool {
        matches!(self.needs, Needs::Token(Scope::Write | Scope::Admin))
    }

    /// What `COMMAND` says of it.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = match self.needs {
            Needs::Nothing => vec!["noscript", "loading", "stale", "fast", "no_auth"],
            Needs::Token(Scope::Read) => vec!["readonly"],
            Needs::Token(_) => vec!["write", "denyoom"],
        };
        if self.group == Group::SortedSet && self.arity > 0 {
            flags.push("fast");
        }
        if self.keys.are_counted() {
            flags.push("movablekeys");
        }
        flags
    }
}

const READ: Needs = Needs::Token(Scope::Read);
const WRITE: Needs = Needs::Token(Scope::Write);
const ADMIN: Needs = Needs::Token(Scope::Admin);
const NONE: KeyPlaces = KeyPlaces::NONE;
const FIRST: KeyPlaces = KeyPlaces::FIRST;
const ALL: KeyPlaces = KeyPlaces::ALL;
const SECOND: KeyPlaces = KeyPlaces::SECOND;
const COUNTED: KeyPlaces = KeyPlaces::COUNTED;
const PAIR: KeyPlaces = KeyPlaces::PAIR;
const FIRST_AND_COUNTED: KeyPlaces = KeyPlaces::FIRST_AND_COUNTED;

macro_rules! commands {
    ($(
        $name:literal $arity:literal $keys:ident $needs:expr,
        $group:ident $since:literal $parse:path: $summary:literal;
    )*) => {
        &[$(Spec {
            name: $name,
            arity: $arity,
            keys: $keys,
            needs: $needs,
            group: Group::$group,
            since: $since,
            summary: $summary,
            parse: $parse,
        }),*]
    };
}

/// By name.
pub const COMMANDS: &[Spec] = commands! {
    "auth" -2 NONE Needs::Nothing, Connection "1.0.0" connection::auth: "Takes one of the service's tokens as password, of any user";
    "client" -2 NONE READ, Connection "2.4.0" connection::client: "ID, GETNAME, SETNAME, SETINFO, INFO, LIST, NO-EVICT and NO-TOUCH";
    "command" -1 NONE READ, Server "2.8.13" connection::command: "The commands; COUNT, INFO, DOCS and GETKEYS";
    "config" -2 NONE READ, Server "2.0.0" connection::config: "GET of the few parameters that clients ask for";
    "dbsize" 1 NONE READ, Server "1.0.0" keyspace::dbsize: "The number of boards that have entries";
    "del" -2 ALL ADMIN, Generic "1.0.0" keyspace::del: "Drops boards, with their definitions";
    "discard" 1 NONE READ, Transactions "2.0.0" transaction::discard: "Forgets the commands since MULTI";
    "echo" 2 NONE READ, Connection "1.0.0" connection::echo: "Returns its message";
    "exec" 1 NONE READ, Transactions "1.2.0" transaction::exec: "Does the commands since MULTI, in order";
    "exists" -2 ALL READ, Generic "1.0.0" keyspace::exists: "How many of the boards have entries";
    "expire" -3 FIRST ADMIN, Generic "1.0.0" expiry::expire: "Has a board end after seconds; NX, XX, GT and LT";
    "expireat" -3 FIRST ADMIN, Generic "1.2.0" expiry::expireat: "As EXPIRE, at a time";
    "expiretime" 2 FIRST READ, Generic "7.0.0" expiry::expiretime: "When a board ends, in seconds since 1970";
    "hello" -1 NONE Needs::Nothing, Connection "6.0.0" connection::hello: "Chooses the protocol's version, takes a token and a name";
    "info" -1 NONE READ, Server "1.0.0" connection::info: "The service in the sections that exporters read";
    "keys" 2 NONE READ, Generic "1.0.0" keyspace::keys: "Boards with entries whose names match a pattern";
    "memory" -2 SECOND READ, Server "4.0.0" keyspace::memory: "USAGE: the bytes that a board takes, about";
    "multi" 1 NONE READ, Transactions "1.2.0" transaction::multi: "From here on commands are kept until EXEC";
    "object" -2 SECOND READ, Generic "2.2.3" keyspace::object: "ENCODING: skiplist for a board with entries";
    "persist" 2 FIRST ADMIN, Generic "2.2.0" expiry::persist: "Has a board not end by itself any more";
    "pexpire" -3 FIRST ADMIN, Generic "2.6.0" expiry::pexpire: "As EXPIRE, in milliseconds";
    "pexpireat" -3 FIRST ADMIN, Generic "2.6.0" expiry::pexpireat: "As EXPIREAT, in milliseconds";
    "pexpiretime" 2 FIRST READ, Generic "7.0.0" expiry::pexpiretime: "As EXPIRETIME, in milliseconds";
    "ping" -1 NONE READ, Connection "1.0.0" connection::ping: "Returns PONG, or its message";
    "pttl" 2 FIRST READ, Generic "2.6.0" expiry::pttl: "As TTL, in milliseconds";
    "quit" -1 NONE Needs::Nothing, Connection "1.0.0" connection::quit: "Closes the connection";
    "reset" 1 NONE Needs::Nothing, Connection "6.2.0" connection::reset: "Makes the connection as it was in the beginning";
    "scan" -2 NONE READ, Generic "2.8.0" keyspace::scan: "Boards with entries, in parts";
    "select" 2 NONE READ, Connection "1.0.0" connection::select: "There is one database, 0";
    "time" 1 NONE READ, Server "2.6.0" connection::time: "The node's clock";
    "ttl" 2 FIRST READ, Generic "1.0.0" expiry::ttl: "The seconds until a board ends; -1 if it does not, -2 without entries";
    "type" 2 FIRST READ, Generic "1.0.0" keyspace::type_of: "zset for a board with entries; board if it is no sorted set; otherwise none";
    "unlink" -2 ALL ADMIN, Generic "4.0.0" keyspace::del: "As DEL";
    "unwatch" 1 NONE READ, Transactions "2.2.0" connection::unwatch: "Does nothing: there is no WATCH";
    "wait" 3 NONE READ, Generic "3.0.0" connection::wait: "Returns what it was asked for: a write is safe when it is replied to";
    "zadd" -4 FIRST WRITE, SortedSet "1.2.0" add::zadd: "Sets scores, or adds to one";
    "zcard" 2 FIRST READ, SortedSet "1.2.0" range::zcard: "The number of entries";
    "zcount" 4 FIRST READ, SortedSet "2.0.0" range::zcount: "The number of entries between two scores";
    "zdiff" -3 COUNTED READ, SortedSet "6.2.0" combine::zdiff: "Entries of a board whose members are on none of the others";
    "zdiffstore" -4 FIRST_AND_COUNTED WRITE, SortedSet "6.2.0" store::zdiffstore: "As ZDIFF, and the result replaces all that a board has";
    "zincrby" 4 FIRST WRITE, SortedSet "1.2.0" add::zincrby: "Adds to a score";
    "zinter" -3 COUNTED READ, SortedSet "6.2.0" combine::zinter: "Members of all of several boards, with sums of their scores";
    "zintercard" -3 COUNTED READ, SortedSet "7.0.0" combine::zintercard: "The number of members of all of several boards";
    "zinterstore" -4 FIRST_AND_COUNTED WRITE, SortedSet "2.0.0" store::zinterstore: "As ZINTER, and the result replaces all that a board has";
    "zlexcount" 4 FIRST READ, SortedSet "2.8.9" range::zlexcount: "The number of entries between two members, of equal scores";
    "zmpop" -4 COUNTED WRITE, SortedSet "7.0.0" take::zmpop: "Takes entries from an end of the first board that has any";
    "zmscore" -3 FIRST READ, SortedSet "6.2.0" range::zmscore: "The scores of members";
    "zpopmax" -2 FIRST WRITE, SortedSet "5.0.0" take::zpopmax: "Takes the entries with the greatest scores";
    "zpopmin" -2 FIRST WRITE, SortedSet "5.0.0" take::zpopmin: "Takes the entries with the least scores";
    "zrandmember" -2 FIRST READ, SortedSet "6.2.0" range::zrandmember: "Members drawn at random";
    "zrange" -4 FIRST READ, SortedSet "1.2.0" range::zrange: "Entries by index, score or member, in either direction";
    "zrangebylex" -4 FIRST READ, SortedSet "2.8.9" range::zrangebylex: "Entries between two members, of equal scores";
    "zrangebyscore" -4 FIRST READ, SortedSet "1.0.5" range::zrangebyscore: "Entries between two scores";
    "zrangestore" -5 PAIR WRITE, SortedSet "6.2.0" store::zrangestore: "As ZRANGE, and its entries replace all that a board has";
    "zrank" -3 FIRST READ, SortedSet "2.0.0" range::zrank: "A member's index from the least score up";
    "zrem" -3 FIRST WRITE, SortedSet "1.2.0" add::zrem: "Removes members";
    "zremrangebylex" 4 FIRST WRITE, SortedSet "2.8.9" take::zremrangebylex: "Removes entries between two members, of equal scores";
    "zremrangebyrank" 4 FIRST WRITE, SortedSet "2.0.0" take::zremrangebyrank: "Removes entries between two indexes";
    "zremrangebyscore" 4 FIRST WRITE, SortedSet "1.2.0" take::zremrangebyscore: "Removes entries between two scores";
    "zrevrange" -4 FIRST READ, SortedSet "1.2.0" range::zrevrange: "Entries by index from the greatest score down";
    "zrevrangebylex" -4 FIRST READ, SortedSet "2.8.9" range::zrevrangebylex: "Entries between two members, of equal scores, backwards";
    "zrevrangebyscore" -4 FIRST READ, SortedSet "2.2.0" range::zrevrangebyscore: "Entries between two scores, backwards";
    "zrevrank" -3 FIRST READ, SortedSet "2.0.0" range::zrevrank: "A member's index from the greatest score down";
    "zscan" -3 FIRST READ, SortedSet "2.8.0" range::zscan: "Entries whose members match a pattern, in parts";
    "zscore" 3 FIRST READ, SortedSet "1.2.0" range::zscore: "A member's score";
    "zunion" -3 COUNTED READ, SortedSet "6.2.0" combine::zunion: "Members of any of several boards, with sums of their scores";
    "zunionstore" -4 FIRST_AND_COUNTED WRITE, SortedSet "2.0.0" store::zunionstore: "As ZUNION, and the result replaces all that a board has";
};

/// Longer than every name.
const NAME_BYTES_MAX: usize = 32;

/// The command of a name, in whatever case.
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Spec, foldhash::fast::RandomState>> =
        LazyLock::new(|| COMMANDS.iter().map(|spec| (spec.name.as_bytes(), spec)).collect());
    let mut small = [0; NAME_BYTES_MAX];
    let small = small.get_mut(..name.len())?;
    small.copy_from_slice(name);
    small.make_ascii_lowercase();
    BY_NAME.get(&*small).copied()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::redis::frames::RequestReader;

    /// Longer commands of a test are sent as arrays.
    const INLINE_BYTES: usize = 1 << 10;

    fn with<A>(request: &str, then: impl FnOnce(Result<Command<'_>, Refused>) -> A) -> A {
        let mut reader = RequestReader::default();
        let mut sent = format!("{request}\r\n");
        if sent.len() > INLINE_BYTES {
            let words: Vec<&str> = request.split(' ').collect();
            sent = format!("*{}\r\n", words.len());
            sent.extend(words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())));
        }
        reader.room().extend_from_slice(sent.as_bytes());
        let request = reader.next(8 << 20).expect("a request").expect("all of it");
        let arguments = reader.arguments(&request);
        let spec = find(arguments.get(0).expect("a name")).expect("a command");
        then(spec.check_arity(arguments.len()).and_then(|()| (spec.parse)(arguments)))
    }

    /// What is read of an inline command.
    pub fn parsed<A>(request: &str, read: impl FnOnce(&Command<'_>) -> A) -> A {
        with(request, |command| read(&command.expect("a good command")))
    }

    /// The words in which an inline command is refused.
    pub fn refused(request: &str) -> String {
        with(request, |command| command.expect_err("it is refused").text().to_owned())
    }

    #[test]
    fn commands_are_listed_once_by_name_and_found_in_every_case() {
        assert!(COMMANDS.is_sorted_by(|one, other| one.name < other.name));
        for spec in COMMANDS {
            for name in [spec.name.to_owned(), spec.name.to_uppercase()] {
                assert_eq!(find(name.as_bytes()).map(|found| found.name), Some(spec.name));
            }
            assert_eq!(spec.keys.step == 0, spec.keys.first == 0, "{}", spec.name);
        }
        for name in ["", "zad", "zaddd", "zädd", &"z".repeat(100)] {
            assert!(find(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn keys_are_where_the_table_says() {
        let keys = |request: &str| {
            let words: Vec<&str> = request.split(' ').collect();
            let spec = words.first().and_then(|name| find(name.as_bytes())).expect("a command");
            spec.keys.among(&words).copied().collect::<Vec<_>>().join(",")
        };
        assert_eq!(keys("ZADD k 1 a"), "k");
        assert_eq!(keys("DEL a b c"), "a,b,c");
        assert_eq!(keys("PING a"), "");
        assert_eq!(keys("DEL"), "");
        assert_eq!(keys("ZMPOP 2 a b MIN"), "a,b");
        assert_eq!(keys("ZMPOP 9 a b MIN"), "");
        assert_eq!(keys("ZMPOP x a b MIN"), "");
        assert_eq!(keys("ZUNIONSTORE to 2 a b AGGREGATE MAX"), "to,a,b");
        assert_eq!(keys("ZUNIONSTORE to 3 a b"), "");
        assert_eq!(keys("ZRANGESTORE to a 0 1"), "to,a");
    }

    #[test]
    fn the_document_lists_every_command() {
        let document = include_str!("../../../docs/redis.md");
        let (_, section) = document.split_once("## Commands").expect("it has the section");
        let listed: Vec<&str> = section
            .lines()
            .skip_while(|line| !line.starts_with("|---"))
            .skip(1)
            .take_while(|line| line.starts_with('|'))
            .collect();
        let scope = |needs| match needs {
            Needs::Nothing => "none".to_owned(),
            Needs::Token(scope) => scope.to_string(),
        };
        let expect: Vec<String> = COMMANDS
            .iter()
            .map(|spec| {
                format!("| `{}` | {} | {} |", spec.name.to_uppercase(), scope(spec.needs), spec.summary)
            })
            .collect();
        assert_eq!(listed, expect);
    }
}
