//! Random boards, and random jobs for them.

use serde_json::{Value, json};

use super::calendar::{DAY, HOUR, MINUTE, SECOND, Season, Window, text};
use super::rules::{Key, Rules, Ties};
use super::world::bad_jobs;
use crate::support::random::Random;

/// Boards with random definitions.
pub const BOARDS: [&str; 3] = ["arena", "league", "race"];
/// The one that counts in fixed memory.
pub const COUNTING: &str = "searches";
/// Nobody defines it.
pub const PLAIN: &str = "plain";
/// How long ago jobs happened. An entry expires at the turn of the day, or at some other moment that is far
/// from the test's.
const AGES: [i64; 10] =
    [0, 1, SECOND, 40 * MINUTE, 90 * MINUTE, 150 * MINUTE, 25 * HOUR, 8 * DAY, -4 * MINUTE, -6 * MINUTE];
/// Lengths of time after which entries expire; none is close to an age.
const TTLS: [Option<i64>; 4] = [None, Some(HOUR), Some(2 * HOUR), Some(50 * HOUR)];
const GRACES: [i64; 4] = [0, 30 * MINUTE, 3 * HOUR, 26 * HOUR];
const CAPACITIES: [Option<usize>; 4] = [None, None, Some(5), Some(20)];

/// A moment of the test, in microseconds, that many things are about.
#[derive(Clone, Copy)]
pub struct Moments {
    /// When hours, days and regular seasons begin, and nothing else does for an hour before and after.
    pub turn: i64,
    /// When a manual season begins, or began last.
    pub season: i64,
}

/// The whole hours and minutes by which local time must differ from UTC for the day to begin at the turn.
pub fn offset_minutes(turn: i64) -> i64 {
    let of_day = turn.rem_euclid(DAY) / MINUTE;
    if of_day > 12 * 60 { 24 * 60 - of_day } else { -of_day }
}

fn keys(random: &mut Random) -> Vec<Key> {
    let key = |random: &mut Random| {
        let (min, max) = if random.below(3) == 0 { (-10, 40) } else { (i64::MIN, i64::MAX) };
        Key { descending: random.below(3) > 0, min, max }
    };
    let number = if random.below(3) == 0 { 2 } else { 1 };
    (0..number).map(|_| key(random)).collect()
}

/// One of [`BOARDS`]: the first has `all`, and the last has short windows alone, so that jobs find them
/// closed.
pub fn random_rules(random: &mut Random, board: &str, turn: i64) -> Rules {
    let [first, _, last] = BOARDS;
    let mut windows = vec![Window::Hour, Window::Day, Window::Week, Window::Month, Window::Season];
    windows.truncate(if board == last { 2 } else { 5 });
    windows.retain(|_| random.below(3) > 0);
    if windows.is_empty() || board == first || (board != last && random.below(3) > 0) {
        let window = if board == last { Window::Season } else { Window::All };
        windows.insert(random.index(windows.len() + 1), window);
    }
    let season = match (windows.contains(&Window::Season), random.below(3)) {
        (false, _) => Season::None,
        (true, 0) => {
            let every = (1 + random.score(4)) * HOUR;
            Season::Regular(vec![(turn - every * (1 + random.score(5)), every)])
        }
        (true, _) => Season::Manual(Vec::new()),
    };
    let movement = windows.contains(&Window::All) && windows.len() > 1 && random.below(4) > 0;
    let rules = Rules {
        keys: keys(random),
        policy: random.pick::<&str>(&["set", "best", "incr"]),
        ties: *random.pick(&[Ties::First, Ties::Last, Ties::Member, Ties::MemberDesc]),
        windows,
        offset_minutes: offset_minutes(turn),
        season,
        movement,
        ..Rules::default()
    };
    let settings = changed_rules(random, &rules, turn - MINUTE);
    Rules { season: rules.season, ..settings }
}

/// The same board with other values of what may change.
pub fn changed_rules(random: &mut Random, rules: &Rules, now: i64) -> Rules {
    let mut rules = rules.clone();
    rules.keep = *random.pick(&[0, 1, 2, 12]);
    rules.grace = *random.pick(&GRACES);
    rules.entry_ttl = *random.pick(&TTLS);
    rules.capacity = *random.pick(&CAPACITIES);
    if let Season::Regular(_) = rules.season
        && random.below(2) == 0
    {
        rules.season.change_length((1 + random.score(4)) * HOUR, now);
    }
    for key in &mut rules.keys {
        (key.min, key.max) = *random.pick(&[(i64::MIN, i64::MAX), (-10, 40), (0, 60)]);
    }
    rules
}

pub fn counting_rules(turn: i64) -> Rules {
    Rules {
        policy: "incr",
        windows: vec![Window::All, Window::Day],
        offset_minutes: offset_minutes(turn),
        grace: 30 * MINUTE,
        capacity: Some(6),
        counts: true,
        ..Rules::default()
    }
}

pub fn members() -> Vec<String> {
    let mut members: Vec<String> = (0..24).map(|number| format!("m{number}")).collect();
    members.extend(["日本", "a b/c.d", "\"quoted\"", "..", "é", "z%2F"].map(str::to_owned));
    members
}

/// When a job happened; `None`: it does not say.
fn time(random: &mut Random, moments: Moments, rules: Option<&Rules>, now: i64) -> Option<i64> {
    let near = [-SECOND, -1, 0, 1, SECOND];
    match random.below(10) {
        0..4 => None,
        4 => Some(moments.turn + random.pick(&near)),
        5 if moments.season > 0 => Some(moments.season + random.pick(&near)),
        6 => {
            // It expires at the turn.
            let ttl = rules.and_then(|rules| rules.entry_ttl).unwrap_or(2 * HOUR);
            Some(moments.turn - ttl)
        }
        _ => Some(now - random.pick(&AGES)),
    }
}

fn score(random: &mut Random, rules: Option<&Rules>) -> Value {
    let keys = rules.map_or(1, |rules| rules.keys.len());
    let keys = if random.below(40) == 0 { 3 - keys } else { keys };
    let wide = rules.is_some_and(|rules| !rules.counts && rules.keys.iter().all(|key| key.min == i64::MIN));
    let key = |random: &mut Random| match random.below(30) {
        0 if wide => json!((i64::MAX - random.score(3)).to_string()),
        1 => json!(-1 - random.score(12)),
        _ => json!(random.score(14)),
    };
    match keys {
        1 => key(random),
        keys => (0..keys).map(|_| key(random)).collect(),
    }
}

fn profile(random: &mut Random, member: &str) -> Value {
    let profile = match random.below(5) {
        0 => json!({}),
        number => {
            json!({ "name": format!("{member} \"{number}\""), "text": "x".repeat(random.index(40) * 40) })
        }
    };
    let mut job = json!({ "op": "profile", "member": member, "profile": profile });
    if random.below(3) == 0 {
        job["version"] = json!(random.below(12));
    }
    job
}

/// One job of a member.
pub fn random_job<'a>(
    random: &mut Random,
    member: &str,
    moments: Moments,
    rules_of: impl Fn(&str) -> Option<&'a Rules>,
    now: i64,
) -> Value {
    match random.below(30) {
        0 => {
            let op = *random.pick(&["remove", "hide", "show", "show"]);
            let mut job = json!({ "member": member, "op": op });
            if random.below(2) == 0 {
                job["version"] = json!(random.below(40));
            }
            return job;
        }
        1 | 2 => return profile(random, member),
        3 | 4 => {
            let (one, other) = (*random.pick(&BOARDS), *random.pick(&[PLAIN, COUNTING, "race"]));
            let mut job = json!({ "member": member, "scores": {} });
            job["scores"][one] = score(random, rules_of(one));
            job["scores"][other] = score(random, rules_of(other));
            if random.below(3) == 0 {
                job["version"] = json!(random.below(30));
            }
            return job;
        }
        _ => {}
    }
    let board =
        *random.pick(&["arena", "league", "race", "arena", "league", "race", PLAIN, COUNTING, COUNTING]);
    let rules = rules_of(board);
    let mut job = json!({ "board": board, "member": member });
    let op = match (board == COUNTING, random.below(12)) {
        (_, 0) => Some("remove"),
        (_, 1) => Some("hide"),
        (_, 2) => Some("show"),
        (false, 3) => Some("best"),
        (false, 4) => Some("incr"),
        (false, 5) => Some("set"),
        _ => None,
    };
    if let Some(op) = op {
        job["op"] = json!(op);
    }
    if !matches!(op, Some("remove" | "hide" | "show")) {
        job["score"] = score(random, rules);
        match random.below(8) {
            0 => job["meta"] = json!({}),
            1 | 2 => job["meta"] = json!({ "car": random.below(9), "text": "日本 \"x\"" }),
            _ => {}
        }
    }
    if let Some(at) = time(random, moments, rules, now) {
        job["at"] = json!(text(at));
    }
    if random.below(5) == 0 && (board != COUNTING || random.below(5) == 0) {
        job["version"] = json!(random.below(30));
    }
    job
}

/// A job that is rejected whatever the boards hold.
pub fn bad_job(random: &mut Random) -> Value {
    let bad = bad_jobs();
    random.pick(&bad).1.clone()
}

pub fn is_bad(job: &Value) -> bool {
    bad_jobs().iter().any(|(_, bad)| bad == job)
}
