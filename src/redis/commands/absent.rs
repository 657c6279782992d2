//! Commands of Redis that are not here: they are refused by name and counted by it, and of some there is more
//! to say.

/// Commands of Redis that may be asked for, by name. What is none of these is counted as `other`: a client
/// cannot make labels.
const ABSENT: &[&str] = &[
    "acl",
    "append",
    "bgrewriteaof",
    "bgsave",
    "bitcount",
    "bitfield",
    "bitop",
    "bitpos",
    "blmove",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzmpop",
    "bzpopmax",
    "bzpopmin",
    "cluster",
    "copy",
    "debug",
    "decr",
    "decrby",
    "dump",
    "eval",
    "eval_ro",
    "evalsha",
    "evalsha_ro",
    "failover",
    "fcall",
    "fcall_ro",
    "flushall",
    "flushdb",
    "function",
    "geoadd",
    "geodist",
    "geohash",
    "geopos",
    "georadius",
    "geosearch",
    "geosearchstore",
    "get",
    "getbit",
    "getdel",
    "getex",
    "getrange",
    "getset",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hincrbyfloat",
    "hkeys",
    "hlen",
    "hmget",
    "hmset",
    "hrandfield",
    "hscan",
    "hset",
    "hsetnx",
    "hstrlen",
    "hvals",
    "incr",
    "incrby",
    "incrbyfloat",
    "lastsave",
    "latency",
    "lcs",
    "lindex",
    "linsert",
    "llen",
    "lmove",
    "lmpop",
    "lolwut",
    "lpop",
    "lpos",
    "lpush",
    "lpushx",
    "lrange",
    "lrem",
    "lset",
    "ltrim",
    "mget",
    "migrate",
    "module",
    "monitor",
    "move",
    "mset",
    "msetnx",
    "pfadd",
    "pfcount",
    "pfmerge",
    "psetex",
    "psubscribe",
    "psync",
    "publish",
    "pubsub",
    "punsubscribe",
    "randomkey",
    "readonly",
    "readwrite",
    "rename",
    "renamenx",
    "replicaof",
    "restore",
    "role",
    "rpop",
    "rpoplpush",
    "rpush",
    "rpushx",
    "sadd",
    "save",
    "scard",
    "script",
    "sdiff",
    "sdiffstore",
    "set",
    "setbit",
    "setex",
    "setnx",
    "setrange",
    "shutdown",
    "sinter",
    "sintercard",
    "sinterstore",
    "sismember",
    "slaveof",
    "slowlog",
    "smembers",
    "smismember",
    "smove",
    "sort",
    "sort_ro",
    "spop",
    "spublish",
    "srandmember",
    "srem",
    "sscan",
    "ssubscribe",
    "strlen",
    "subscribe",
    "substr",
    "sunion",
    "sunionstore",
    "sunsubscribe",
    "swapdb",
    "sync",
    "touch",
    "unsubscribe",
    "waitaof",
    "watch",
    "xadd",
    "xlen",
    "xrange",
    "xread",
];

/// The name under which a command is counted that is not here, if it is one of Redis.
pub fn is_of_redis(name: &[u8]) -> Option<&'static str> {
    ABSENT.iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes())).copied()
}

/// What to do instead.
pub fn why_absent(name: &str) -> Option<&'static str> {
    Some(match name {
        "rename" | "renamenx" | "copy" | "dump" | "restore" | "move" => {
            "a board keeps its name; `ranktree export` and `ranktree import` copy one"
        }
        "bzmpop" | "bzpopmax" | "bzpopmin" => "there are no blocking commands",
        "subscribe" | "psubscribe" | "ssubscribe" => {
            "there are no channels; GET /v1/boards/{board}/live watches a board over HTTP"
        }
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" | "function" | "script" => {
            "there are no scripts"
        }
        "watch" => "writes depend on no earlier read: ZADD has NX, XX, GT and LT, and ZINCRBY adds",
        "flushall" | "flushdb" => "DEL drops boards one by one",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::COMMANDS;

    #[test]
    fn a_command_is_here_or_absent() {
        assert!(ABSENT.is_sorted());
        for spec in COMMANDS {
            assert_eq!(is_of_redis(spec.name.as_bytes()), None, "{}", spec.name);
        }
        assert_eq!(is_of_redis(b"SeT"), Some("set"));
        assert_eq!(is_of_redis(b"no such command"), None);
    }
}
