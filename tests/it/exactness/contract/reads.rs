//! Every read of an instance, compared with the model.

use serde_json::{Value, json};
use ureq::http::Method;

use super::board::Board;
use super::calendar::{Window, micros};
use super::rules::Entry;
use super::world::World;
use crate::support::client::{Client, entry_path};
use crate::support::random::Random;

/// What differs, in words.
pub type Check = Result<(), String>;

/// Members that never are on a board are among those that are asked for.
pub const NOBODY: &str = "nobody";

/// One node, and what it must answer.
pub struct Reader<'a> {
    pub client: &'a Client,
    pub world: &'a World,
    /// The token to wait for; empty for none.
    pub after: &'a str,
    /// The time, which decides which instances are current.
    pub now: i64,
    pub members: &'a [String],
    /// Whether every instance is read in every way, and not only a third of them.
    pub is_thorough: bool,
}

/// An instance, and how a read asks for it.
pub struct Asked<'a> {
    pub name: &'a str,
    pub board: &'a Board,
    /// The value of `window`; empty for none.
    pub window: &'a str,
    pub instance: &'a str,
    pub shown: &'a [(&'a str, &'a Entry)],
}

/// What entries of a list have beside what they always have.
#[derive(Clone, Copy, Default)]
pub struct With<'a> {
    pub profile: bool,
    pub reached: bool,
    /// Who was shown when an instance began, for `movement`.
    pub began: Option<&'a [&'a str]>,
}

pub fn same(found: &Value, expected: &Value, about: &str) -> Check {
    if found == expected { Ok(()) } else { Err(format!("{about}:\n found {found}\n not   {expected}")) }
}

pub fn count(number: usize) -> i64 {
    i64::try_from(number).expect("a few")
}

/// As answers have scores.
pub fn score_json(score: &[i64]) -> Value {
    let key = |key: &i64| if key.abs() < 1 << 53 { json!(key) } else { json!(key.to_string()) };
    match score {
        [one] => key(one),
        keys => keys.iter().map(key).collect(),
    }
}

/// An entry as it was found, with times as numbers, so that they can be compared.
fn plain(entry: &Value) -> Value {
    let mut plain = entry.clone();
    for time in ["updated_at", "reached_at"] {
        if let Some(value) = plain.get_mut(time) {
            *value = json!(micros(value));
        }
    }
    plain
}

pub fn check_percentile(answer: &Value, worse: usize, total: usize) -> Check {
    let float = |number: usize| f64::from(u32::try_from(number).expect("a few"));
    let expected = 100.0 * float(worse) / float(total);
    let found = answer["percentile"].as_f64().ok_or_else(|| format!("no percentile: {answer}"))?;
    if (found - expected).abs() < 1e-9 { Ok(()) } else { Err(format!("not {expected}: {answer}")) }
}

impl Asked<'_> {
    /// better, tied, worse.
    pub fn standing(&self, score: &[i64]) -> (usize, usize, usize) {
        let (mut better, mut tied) = (0, 0);
        for (_, entry) in self.shown {
            match self.board.rules.compare_scores(&entry.score, score) {
                std::cmp::Ordering::Less => better += 1,
                std::cmp::Ordering::Equal => tied += 1,
                std::cmp::Ordering::Greater => {}
            }
        }
        (better, tied, self.shown.len() - better - tied)
    }

    /// An entry of a list.
    pub fn entry(&self, world: &World, index: usize, with: With<'_>) -> Value {
        let (id, entry) = self.shown[index];
        let (better, ..) = self.standing(&entry.score);
        let mut listed = json!({
            "member": id, "score": score_json(&entry.score), "rank": better + 1, "position": index + 1,
            "updated_at": entry.updated, "meta": entry.meta,
        });
        if self.board.rules.counts {
            listed["error"] = json!(entry.error);
        }
        if with.profile {
            listed["profile"] = json!(world.profiles.get(id).and_then(|known| known.json.as_ref()));
        }
        if with.reached
            && [super::rules::Ties::First, super::rules::Ties::Last].contains(&self.board.rules.ties)
        {
            listed["reached_at"] = json!(entry.reached);
        }
        if let Some(began) = with.began {
            let then = began.iter().position(|other| *other == id);
            listed["movement"] = json!(then.map(|then| count(then) - count(index)));
        }
        listed
    }

    pub fn path(&self, rest: &str) -> String {
        let mark = if rest.contains('?') { '&' } else { '?' };
        let window =
            if self.window.is_empty() { String::new() } else { format!("{mark}window={}", self.window) };
        format!("/v1/boards/{}/{rest}{window}", self.name)
    }

    pub fn member_path(&self, member: &str, rest: &str) -> String {
        let of_board = format!("/v1/boards/{}/", self.name);
        let path = entry_path(self.name, member);
        self.path(&format!("{}{rest}", path.strip_prefix(&of_board).expect("it is of the board")))
    }

    fn index_of(&self, member: &str) -> Option<usize> {
        self.shown.iter().position(|(id, _)| *id == member)
    }
}

impl Reader<'_> {
    pub fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Value), String> {
        let mark = if path.contains('?') { '&' } else { '?' };
        let after = if self.after.is_empty() {
            String::new()
        } else {
            format!("{mark}after={}&timeout_ms=60000", self.after)
        };
        self.client.send(method, &format!("{path}{after}"), body).map_err(|error| format!("{path}: {error}"))
    }

    pub fn get(&self, path: &str) -> Result<Value, String> {
        match self.send(Method::GET, path, None)? {
            (200, answer) => Ok(answer),
            (status, problem) => Err(format!("{path}: {status} {problem}")),
        }
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        match self.send(Method::POST, path, Some(body))? {
            (200, answer) => Ok(answer),
            (status, problem) => Err(format!("{path}: {status} {problem}")),
        }
    }

    pub fn refused(&self, path: &str, status: u16, code: &str) -> Check {
        let (found, problem) = self.send(Method::GET, path, None)?;
        let found = (found, problem["code"].as_str() == Some(code));
        if found == (status, true) {
            Ok(())
        } else {
            Err(format!("{path}: not {status} {code}: {found:?} {problem}"))
        }
    }

    /// What every list says of itself, and its entries.
    pub fn list(asked: &Asked<'_>, answer: &Value, expected: &[Value], path: &str) -> Check {
        let head = json!([answer["board"], answer["window"], answer["total"]]);
        same(&head, &json!([asked.name, asked.instance, asked.shown.len()]), path)?;
        let entries = answer["entries"].as_array().ok_or_else(|| format!("{path}: {answer}"))?;
        let found: Value = entries.iter().map(plain).collect();
        same(&found, &json!(expected), path)
    }

    fn entries(&self, asked: &Asked<'_>, of: impl IntoIterator<Item = usize>, with: With<'_>) -> Vec<Value> {
        of.into_iter().map(|index| asked.entry(self.world, index, with)).collect()
    }

    /// Compares every read of an instance but for pages.
    pub fn check_instance(&self, asked: &Asked<'_>, random: &mut Random) -> Check {
        self.check_members(asked, random)?;
        self.check_ranks(asked, random)?;
        self.check_places(asked, random)?;
        self.check_spread(asked, random)
    }

    /// `top` from both ends, `positions` and `range`.
    pub fn check_pages(&self, asked: &Asked<'_>, random: &mut Random) -> Check {
        let total = asked.shown.len();
        let all: Vec<usize> = (0..total).collect();
        let with = With { profile: random.below(2) == 0, reached: true, began: None };
        let flags = format!("profile={}&reached_at=true", with.profile);
        self.pages(asked, &format!("top?{flags}"), 1 + random.index(9), &all, with)?;
        let bottom: Vec<usize> = (0..total).rev().collect();
        self.pages(asked, &format!("top?from=bottom&{flags}"), 1 + random.index(30), &bottom, with)?;
        let (position, limit) = (1 + random.index(total + 2), 1 + random.index(7));
        let path = asked.path(&format!("positions/{position}?limit={limit}&profile={}", with.profile));
        let page = (position - 1..total).take(limit);
        let with = With { reached: false, ..with };
        Self::list(asked, &self.get(&path)?, &self.entries(asked, page, with), &path)?;
        let (min, max) = bounds(asked, random);
        let is_within = |index: &usize| (min..=max).contains(&asked.shown[*index].1.score[0]);
        let within: Vec<usize> = (0..total).filter(is_within).collect();
        let range = format!("range?min={min}&max={max}&profile={}", with.profile);
        self.pages(asked, &range, 1 + random.index(9), &within, with)
    }

    fn pages(
        &self,
        asked: &Asked<'_>,
        read: &str,
        limit: usize,
        expected: &[usize],
        with: With<'_>,
    ) -> Check {
        let (mut rest, mut cursor) = (expected, String::new());
        loop {
            let path = asked.path(&format!("{read}&limit={limit}&cursor={cursor}"));
            let answer = self.get(&path)?;
            let (page, later) = rest.split_at(limit.min(rest.len()));
            Self::list(asked, &answer, &self.entries(asked, page.iter().copied(), with), &path)?;
            rest = later;
            match answer["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None if rest.is_empty() => return Ok(()),
                None => return Err(format!("{path}: there are more: {answer}")),
            }
            if page.is_empty() {
                return Err(format!("{path}: there are no more: {answer}"));
            }
        }
    }

    /// A member's entry, its neighbours, and friends.
    fn check_members(&self, asked: &Asked<'_>, random: &mut Random) -> Check {
        for _ in 0..3 {
            let member = random.pick(self.members);
            self.check_member(asked, member, random, None)?;
        }
        self.check_member(asked, NOBODY, random, None)?;
        self.check_friends(asked, random, None)
    }

    /// # Arguments
    /// `moved`: the window whose movement is asked for, and who was shown when it began.
    pub fn check_member(
        &self,
        asked: &Asked<'_>,
        member: &str,
        random: &mut Random,
        moved: Option<(Window, &[&str])>,
    ) -> Check {
        let with =
            With { profile: random.below(2) == 0, reached: false, began: moved.map(|(_, began)| began) };
        let movement = moved.map_or_else(String::new, |(window, _)| format!("&movement={}", window.name()));
        let path = asked.member_path(member, &format!("?profile={}{movement}", with.profile));
        let (above, below, fill) = (random.index(5), random.index(5), random.below(2) == 0);
        let rest =
            format!("/around?above={above}&below={below}&fill={fill}&profile={}{movement}", with.profile);
        let around = asked.member_path(member, &rest);
        let Some(index) = asked.index_of(member) else {
            self.refused(&path, 404, "unknown_member")?;
            return self.refused(&around, 404, "unknown_member");
        };
        self.check_entry(asked, &self.get(&path)?, index, with, &path)?;
        let (before, behind) = (index, asked.shown.len() - 1 - index);
        let (mut first, mut last) = (above.min(before), below.min(behind));
        if fill {
            (first, last) = (before.min(above + below - last), behind.min(below + above - first));
        }
        let near = self.entries(asked, index - first..=index + last, with);
        Self::list(asked, &self.get(&around)?, &near, &around)
    }

    /// An entry with all its fields.
    pub fn check_entry(
        &self,
        asked: &Asked<'_>,
        found: &Value,
        index: usize,
        with: With<'_>,
        path: &str,
    ) -> Check {
        let (_, entry) = asked.shown[index];
        let (better, tied, worse) = asked.standing(&entry.score);
        let mut expected = asked.entry(self.world, index, with);
        for (name, value) in [
            ("board", json!(asked.name)),
            ("window", json!(asked.instance)),
            ("better", json!(better)),
            ("tied", json!(tied)),
            ("worse", json!(worse)),
            ("total", json!(asked.shown.len())),
        ] {
            expected[name] = value;
        }
        check_percentile(found, worse, asked.shown.len())?;
        let mut rest = plain(found);
        let fields = rest.as_object_mut().ok_or_else(|| format!("{path}: {found}"))?;
        fields.remove("percentile");
        if fields.remove("as_of").is_none() {
            return Err(format!("{path}: there is no as_of: {found}"));
        }
        same(&rest, &expected, path)
    }

    pub fn check_friends(
        &self,
        asked: &Asked<'_>,
        random: &mut Random,
        moved: Option<(Window, &[&str])>,
    ) -> Check {
        let mut friends: Vec<&str> = vec![NOBODY];
        friends.extend(self.members.iter().filter(|_| random.below(3) == 0).map(String::as_str));
        let with =
            With { profile: random.below(2) == 0, reached: false, began: moved.map(|(_, began)| began) };
        let movement = moved.map_or_else(String::new, |(window, _)| format!("&movement={}", window.name()));
        let path = asked.path(&format!("members:lookup?profile={}{movement}", with.profile));
        let answer = self.post(&path, &json!({ "members": friends }))?;
        let of_group = |index: &usize| friends.contains(&asked.shown[*index].0);
        let group: Vec<usize> = (0..asked.shown.len()).filter(of_group).collect();
        let rank = |index: usize| {
            let score = |index: usize| &asked.shown[index].1.score;
            let is_better =
                |other: &&usize| asked.board.rules.compare_scores(score(**other), score(index)).is_lt();
            group.iter().filter(is_better).count() + 1
        };
        let mut expected = self.entries(asked, group.iter().copied(), with);
        for (entry, index) in expected.iter_mut().zip(&group) {
            entry["group_rank"] = json!(rank(*index));
        }
        Self::list(asked, &answer, &expected, &path)?;
        let not_found: Vec<&str> =
            friends.iter().copied().filter(|member| asked.index_of(member).is_none()).collect();
        same(&answer["not_found"], &json!(not_found), &path)
    }
}

/// Bounds of first keys, mostly with entries between them.
pub fn bounds(asked: &Asked<'_>, random: &mut Random) -> (i64, i64) {
    let mut key = || match asked.shown {
        [] => random.score(30),
        shown => random.pick(shown).1.score[0],
    };
    let (one, other) = (key(), key());
    (one.min(other), one.max(other))
}
