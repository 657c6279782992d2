//! Commands that read a board: by member, by index, by score, by id.

use crate::redis::commands::command::{
    Command, EntryScan, LexBound, RandomCount, RangeOf, Read, ScoreBound, Selection,
};
use crate::redis::commands::words::Words;
use crate::redis::frames::Arguments;
use crate::redis::number;
use crate::redis::refused::Refused;

/// What the bounds of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Index,
    Score,
    Lex,
}

/// Reads a range's options, and then its bounds, as Redis does.
///
/// # Arguments
/// `by`, `descending`: `None` where options say it.
fn range(arguments: Arguments<'_>, by: Option<By>, descending: Option<bool>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let key = words.take()?;
    Ok(Command::Read(key, Read::Range(range_in_words(&mut words, (by, descending), true)?)))
}

/// The same of what follows the key.
///
/// # Arguments
/// `may_show`: whether scores may be asked for
pub fn range_in_words<'b>(
    words: &mut Words<'b>,
    (by, descending): (Option<By>, Option<bool>),
    may_show: bool,
) -> Result<RangeOf<'b>, Refused> {
    let (first, second) = (words.take()?, words.take()?);
    let (mut with_scores, mut limit, mut chosen, mut reverse) = (false, None, by, descending);
    while words.left() > 0 {
        if may_show && words.take_if("WITHSCORES", 0) {
            with_scores = true;
        } else if words.take_if("LIMIT", 2) {
            limit = Some((words.integer()?, words.integer()?));
        } else if reverse.is_none() && words.take_if("REV", 0) {
            reverse = Some(true);
        } else if chosen.is_none() && words.take_if("BYLEX", 0) {
            chosen = Some(By::Lex);
        } else if chosen.is_none() && words.take_if("BYSCORE", 0) {
            chosen = Some(By::Score);
        } else {
            return Err(Refused::syntax());
        }
    }
    let (by, descending) = (chosen.unwrap_or(By::Index), reverse.unwrap_or(false));
    if by == By::Index && limit.is_some_and(|(_, count)| count != -1) {
        return Err(Refused::new(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ));
    }
    if by == By::Lex && with_scores {
        return Err(Refused::new("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
    }
    let (min, max) = if descending && by != By::Index { (second, first) } else { (first, second) };
    let selection = selection(by, min, max)?;
    let limit = limit.filter(|_| by != By::Index);
    Ok(RangeOf { selection, descending, limit, with_scores })
}

/// All between two bounds, from the least to the greatest.
pub fn range_of<'b>(by: By, min: &'b [u8], max: &'b [u8]) -> Result<RangeOf<'b>, Refused> {
    let selection = selection(by, min, max)?;
    Ok(RangeOf { selection, descending: false, limit: None, with_scores: false })
}

fn selection<'b>(by: By, min: &'b [u8], max: &'b [u8]) -> Result<Selection<'b>, Refused> {
    Ok(match by {
        By::Index => {
            let index = |text| number::integer(text).ok_or_else(Refused::no_integer);
            Selection::Index(index(min)?, index(max)?)
        }
        By::Score => Selection::Score(score_bound(min)?, score_bound(max)?),
        By::Lex => Selection::Lex(lex_bound(min)?, lex_bound(max)?),
    })
}

fn score_bound(text: &[u8]) -> Result<ScoreBound, Refused> {
    let (exclusive, text) = match text {
        [b'(', rest @ ..] => (true, rest),
        text => (false, text),
    };
    let value = number::bound(text).ok_or_else(Refused::no_score_bound)?;
    Ok(ScoreBound { value, exclusive })
}

fn lex_bound(text: &[u8]) -> Result<LexBound<'_>, Refused> {
    match text {
        b"-" => Ok(LexBound::Least),
        b"+" => Ok(LexBound::Greatest),
        [b'[', id @ ..] => Ok(LexBound::Inclusive(id)),
        [b'(', id @ ..] => Ok(LexBound::Exclusive(id)),
        _ => Err(Refused::no_lex_bound()),
    }
}

/// `ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub fn zrange(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    range(arguments, None, None)
}

/// `ZREVRANGE key start stop [WITHSCORES]`
pub fn zrevrange(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    range(arguments, Some(By::Index), Some(true))
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub fn zrangebyscore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    range(arguments, Some(By::Score), Some(false))
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
pub fn zrevrangebyscore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    range(arguments, Some(By::Score), Some(true))
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`
pub fn zrangebylex(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    range(arguments, Some(By::Lex), Some(false))
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
pub fn zrevrangebylex(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    range(arguments, Some(By::Lex), Some(true))
}

/// `ZCOUNT key min max`
pub fn zcount(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    count(arguments, By::Score)
}

/// `ZLEXCOUNT key min max`
pub fn zlexcount(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    count(arguments, By::Lex)
}

fn count(arguments: Arguments<'_>, by: By) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let key = words.take()?;
    Ok(Command::Read(key, Read::Count(selection(by, words.take()?, words.take()?)?)))
}

/// `ZCARD key`
pub fn zcard(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Read(Words::after(arguments, 1).take()?, Read::Card))
}

/// `ZSCORE key member`
pub fn zscore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    Ok(Command::Read(words.take()?, Read::Score(words.take()?)))
}

/// `ZMSCORE key member [member ...]`
pub fn zmscore(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    Ok(Command::Read(words.take()?, Read::Scores(words.rest())))
}

/// `ZRANK key member [WITHSCORE]`
pub fn zrank(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    rank(arguments, false)
}

/// `ZREVRANK key member [WITHSCORE]`
pub fn zrevrank(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    rank(arguments, true)
}

fn rank(arguments: Arguments<'_>, descending: bool) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let (key, member) = (words.take()?, words.take()?);
    if words.left() > 1 {
        return Err(Refused::arity(if descending { "zrevrank" } else { "zrank" }));
    }
    let with_score = words.take_if("WITHSCORE", 0);
    words.end()?;
    Ok(Command::Read(key, Read::Rank { member, descending, with_score }))
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`
pub fn zscan(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let (key, cursor) = (words.take()?, words.take()?);
    let cursor = number::cursor(cursor).ok_or_else(|| Refused::new("ERR invalid cursor"))?;
    let mut scan = EntryScan { cursor, pattern: None, count: 0, with_scores: true };
    while words.left() > 0 {
        if words.take_if("MATCH", 1) {
            scan.pattern = Some(words.take()?);
        } else if words.take_if("COUNT", 1) {
            scan.count = words.scan_count()?;
        } else if words.take_if("NOSCORES", 0) {
            scan.with_scores = false;
        } else {
            return Err(Refused::syntax());
        }
    }
    Ok(Command::Read(key, Read::Scan(scan)))
}

/// `ZRANDMEMBER key [count [WITHSCORES]]`
pub fn zrandmember(arguments: Arguments<'_>) -> Result<Command<'_>, Refused> {
    let mut words = Words::after(arguments, 1);
    let key = words.take()?;
    if words.left() == 0 {
        return Ok(Command::Read(key, Read::Random { count: None, with_scores: false }));
    }
    let count = words.integer()?;
    let with_scores = words.take_if("WITHSCORES", 0);
    words.end()?;
    if count == i64::MIN {
        let (least, most) = (-i64::MAX, i64::MAX);
        return Err(Refused::new(format!(
            "ERR value is out of range, value must between {least} and {most}"
        )));
    }
    // Twice as many values must be countable.
    if with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(Refused::new("ERR value is out of range"));
    }
    let count = match u64::try_from(count) {
        Ok(count) => RandomCount::Different(count),
        Err(_) => RandomCount::Repeated(count.unsigned_abs()),
    };
    Ok(Command::Read(key, Read::Random { count: Some(count), with_scores }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};

    fn range_of(request: &str) -> String {
        parsed(request, |command| match command {
            Command::Read(b"k", Read::Range(range)) => {
                let bound =
                    |bound: &ScoreBound| format!("{}{}", if bound.exclusive { "(" } else { "" }, bound.value);
                let lex = |bound: &LexBound<'_>| match bound {
                    LexBound::Least => "-".to_owned(),
                    LexBound::Greatest => "+".to_owned(),
                    LexBound::Inclusive(id) => format!("[{}", String::from_utf8_lossy(id)),
                    LexBound::Exclusive(id) => format!("({}", String::from_utf8_lossy(id)),
                };
                let selection = match &range.selection {
                    Selection::Index(start, stop) => format!("{start}..{stop}"),
                    Selection::Score(min, max) => format!("{}..{}", bound(min), bound(max)),
                    Selection::Lex(min, max) => format!("{}..{}", lex(min), lex(max)),
                };
                let RangeOf { descending, limit, with_scores, .. } = range;
                format!("{selection} {descending} {limit:?} {with_scores}")
            }
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn every_form_of_a_range_comes_to_the_same_type() {
        for (request, expect) in [
            ("ZRANGE k 0 -1", "0..-1 false None false"),
            ("ZREVRANGE k 0 9 withscores", "0..9 true None true"),
            ("ZRANGE k 0 9 REV WITHSCORES", "0..9 true None true"),
            ("ZRANGE k 0 9 LIMIT 0 -1", "0..9 false None false"),
            ("ZRANGE k (1 +inf BYSCORE LIMIT 1 2", "(1..inf false Some((1, 2)) false"),
            ("ZRANGEBYSCORE k -inf (2.5 WITHSCORES LIMIT 0 -1", "-inf..(2.5 false Some((0, -1)) true"),
            ("ZREVRANGEBYSCORE k 9 (1", "(1..9 true None false"),
            ("ZRANGE k 9 1 BYSCORE REV", "1..9 true None false"),
            ("ZRANGEBYLEX k - [b", "-..[b false None false"),
            ("ZREVRANGEBYLEX k + (a LIMIT 2 3", "(a..+ true Some((2, 3)) false"),
            ("ZRANGE k [b - BYLEX REV", "-..[b true None false"),
            ("ZRANGEBYLEX k [ (", "[..( false None false"),
            ("ZRANGEBYSCORE k \"\" 1e400", "0..inf false None false"),
            ("ZRANGEBYSCORE k ( \" 1\"", "(0..1 false None false"),
        ] {
            assert_eq!(range_of(request), expect, "{request}");
        }
    }

    #[test]
    fn a_scan_may_leave_scores_out() {
        for (request, expect) in [("ZSCAN k 0", true), ("ZSCAN k 0 noscores COUNT 5", false)] {
            parsed(request, |command| match command {
                Command::Read(_, Read::Scan(scan)) => assert_eq!(scan.with_scores, expect, "{request}"),
                other => panic!("{other:?}"),
            });
        }
    }

    #[test]
    fn wrong_ranges_are_refused_in_the_words_of_redis() {
        for (request, expect) in [
            ("ZRANGE k 0", "ERR wrong number of arguments for 'zrange' command"),
            ("ZRANGE k a 1", "ERR value is not an integer or out of range"),
            (
                "ZRANGE k 0 1 LIMIT 0 1",
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ),
            (
                "ZRANGE k [a [b BYLEX WITHSCORES",
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ),
            ("ZRANGE k 0 1 BYSCORE LIMIT 0", "ERR syntax error"),
            ("ZRANGE k 0 1 BYSCORE LIMIT a 1", "ERR value is not an integer or out of range"),
            ("ZRANGE k x 1 BYSCORE", "ERR min or max is not a float"),
            ("ZRANGE k 1 NaN BYSCORE", "ERR min or max is not a float"),
            ("ZRANGE k a b BYLEX", "ERR min or max not valid string range item"),
            ("ZRANGE k -x + BYLEX", "ERR min or max not valid string range item"),
            ("ZREVRANGE k 0 1 REV", "ERR syntax error"),
            ("ZRANGEBYSCORE k 0 1 BYLEX", "ERR syntax error"),
            ("ZCOUNT k 0 x", "ERR min or max is not a float"),
            ("ZLEXCOUNT k 0 +", "ERR min or max not valid string range item"),
            ("ZRANK k a b", "ERR syntax error"),
            ("ZRANK k a b c", "ERR wrong number of arguments for 'zrank' command"),
            ("ZREVRANK k a WITHSCORE c", "ERR wrong number of arguments for 'zrevrank' command"),
            ("ZSCAN k x", "ERR invalid cursor"),
            ("ZSCAN k -1", "ERR invalid cursor"),
            ("ZSCAN k 0 COUNT 0", "ERR syntax error"),
            ("ZRANDMEMBER k x", "ERR value is not an integer or out of range"),
            ("ZRANDMEMBER k 1 x", "ERR syntax error"),
            (
                "ZRANDMEMBER k -9223372036854775808",
                "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
            ),
            ("ZRANDMEMBER k -9223372036854775807 WITHSCORES", "ERR value is out of range"),
            ("ZRANGE k 0 1 REV REV", "ERR syntax error"),
            ("ZRANGE k 0 1 BYSCORE BYSCORE", "ERR syntax error"),
            ("ZRANGE k 0 1 BYLEX BYSCORE", "ERR syntax error"),
        ] {
            assert_eq!(refused(request), expect, "{request}");
        }
    }
}
