//! Reads of whole boards, of movement, and of members on all boards.

use serde_json::{Value, json};

use super::board::Board;
use super::calendar::{Slice, Window, micros};
use super::reads::{Asked, Check, Reader, With, same};
use crate::support::random::Random;

impl Reader<'_> {
    /// Compares every read of the contract.
    pub fn check_all(&self, random: &mut Random) -> Check {
        for (name, board) in &self.world.boards {
            self.check_board(name, board, random)?;
        }
        self.check_totals()?;
        for _ in 0..6 {
            let member = random.pick(self.members).clone();
            self.check_boards_of(&member, "", random)?;
            self.check_boards_of(&member, "day", random)?;
        }
        self.check_rejects()
    }

    fn check_board(&self, name: &str, board: &Board, random: &mut Random) -> Check {
        let path = format!("/v1/boards/{name}?limit=1000");
        let answer = self.get(&path)?;
        let mut instances = serde_json::Map::new();
        for window in &board.rules.windows {
            let slices = self.readable(board, *window);
            let listed: Vec<Value> =
                slices.iter().map(|slice| instance_json(board, slice.as_ref(), self.now)).collect();
            let with_entries = listed.iter().rposition(|instance| instance["total"] != 0);
            let kept = with_entries.map_or(1, |last| last + 1).min(listed.len());
            instances.insert(window.name().to_owned(), json!(listed[..kept]));
        }
        same(&with_micros(&answer["instances"]), &Value::Object(instances), &path)?;
        let expected = board.rules.json();
        for field in ["policy", "ties", "windows", "utc_offset", "keep", "capacity", "movement", "kind"] {
            same(&answer[field], &expected[field], &format!("{path}: {field}"))?;
        }
        for window in &board.rules.windows {
            let slices = self.readable(board, *window);
            for (back, slice) in slices.iter().enumerate() {
                let instance = slice.as_ref().map_or("all", |slice| slice.name.as_str());
                let shown = board.shown(instance);
                // The empty ones between them are many, and alike.
                if back > 1 && shown.is_empty() && random.below(8) > 0 {
                    continue;
                }
                let default = if *window == board.rules.default_window() { "" } else { instance };
                let forms = [instance, window.name(), default];
                let window = if back == 0 { *random.pick(&forms) } else { instance };
                let asked = Asked { name, board, window, instance, shown: &shown };
                self.check_pages(&asked, random)?;
                if self.is_thorough || random.below(3) == 0 {
                    self.check_instance(&asked, random)?;
                }
            }
            self.check_no_others(name, board, *window, &slices)?;
        }
        if board.rules.movement {
            let shown = board.shown("all");
            let asked = Asked { name, board, window: "", instance: "all", shown: &shown };
            self.check_movement(&asked, random)?;
        }
        Ok(())
    }

    /// The instances of a window from the current one back to the oldest that is not dropped; `None`: `all`.
    fn readable(&self, board: &Board, window: Window) -> Vec<Option<Slice>> {
        if window == Window::All {
            return vec![None];
        }
        let before = |slice: &Slice| board.rules.slice_at(window, slice.begin - 1);
        let slices = std::iter::successors(board.rules.slice_at(window, self.now), before);
        slices.take_while(|slice| !board.rules.is_dropped(slice, self.now)).map(Some).collect()
    }

    /// Instances that are dropped, or have not begun, are not to be read.
    fn check_no_others(&self, name: &str, board: &Board, window: Window, slices: &[Option<Slice>]) -> Check {
        let refused = |slice: Option<Slice>| match slice {
            Some(slice) => {
                self.refused(&format!("/v1/boards/{name}/top?window={}", slice.name), 404, "unknown_window")
            }
            None => Ok(()),
        };
        let newest = slices.first().and_then(Option::as_ref);
        refused(newest.and_then(|newest| board.rules.slice_at(window, newest.end?)))?;
        let oldest = slices.last().and_then(Option::as_ref);
        refused(oldest.and_then(|oldest| board.rules.slice_at(window, oldest.begin - 1)))?;
        if slices.is_empty() {
            self.refused(&format!("/v1/boards/{name}/top?window={}", window.name()), 404, "unknown_window")?;
        }
        Ok(())
    }

    fn check_movement(&self, asked: &Asked<'_>, random: &mut Random) -> Check {
        for window in asked.board.rules.windows.iter().filter(|window| **window != Window::All) {
            if asked.board.rules.slice_at(*window, self.now).is_none() {
                let path = asked.path(&format!("top?movement={}", window.name()));
                self.refused(&path, 404, "unknown_window")?;
                continue;
            }
            let began = asked.board.began(*window, self.now);
            let with = With { began: Some(&began), ..With::default() };
            let path = asked.path(&format!("top?limit=1000&movement={}", window.name()));
            let all: Vec<Value> =
                (0..asked.shown.len()).map(|index| asked.entry(self.world, index, with)).collect();
            Self::list(asked, &self.get(&path)?, &all, &path)?;
            for _ in 0..2 {
                let member = random.pick(self.members);
                self.check_member(asked, member, random, Some((*window, &began)))?;
            }
            self.check_friends(asked, random, Some((*window, &began)))?;
        }
        Ok(())
    }

    fn check_totals(&self) -> Check {
        let answer = self.get("/v1/boards")?;
        let listed = answer["boards"].as_array().ok_or_else(|| format!("no boards: {answer}"))?;
        let names: Vec<&Value> = listed.iter().map(|board| &board["board"]).collect();
        same(&json!(names), &json!(self.world.boards.keys().collect::<Vec<_>>()), "the list of boards")?;
        for (listed, (name, board)) in listed.iter().zip(&self.world.boards) {
            let window = board.rules.default_window();
            if let Some(instance) = self.current(board, window) {
                let total = json!({ window.name(): board.shown(&instance).len() });
                same(&listed["totals"], &total, name)?;
            }
        }
        Ok(())
    }

    fn current(&self, board: &Board, window: Window) -> Option<String> {
        match window {
            Window::All => Some("all".to_owned()),
            window => board.rules.slice_at(window, self.now).map(|slice| slice.name),
        }
    }

    /// A member on all boards, in the instances that a read without a window is about, or in one window's.
    fn check_boards_of(&self, member: &str, window: &str, random: &mut Random) -> Check {
        let profile = random.below(2) == 0;
        let with = With { profile, ..With::default() };
        let member_path = crate::support::client::entry_path("arena", member);
        let (_, member_path) = member_path.rsplit_once('/').expect("it is a path");
        let path = format!("/v1/members/{member_path}");
        let mut names: Vec<&str> = self.world.boards.keys().map(String::as_str).collect();
        // A node that does not own the shards of the token waits a second for it.
        if random.below(8) == 0 {
            names.push("none");
        }
        let window_query = if window.is_empty() { String::new() } else { format!("&window={window}") };
        let named = format!("{path}?profile={profile}&boards={}{window_query}", names.join(","));
        let every = format!("{path}?profile={profile}{window_query}");
        let (named_answer, every_answer) = (self.get(&named)?, self.get(&every)?);
        let found = |answer: &Value, name: &str| -> Option<Value> {
            let entries = answer["entries"].as_array().expect("a list");
            entries.iter().find(|entry| entry["board"] == name).cloned()
        };
        let mut not_found = Vec::new();
        for name in names {
            let board = self.world.boards.get(name);
            let of_window = |board: &Board| match window {
                "" => self.current(board, board.rules.default_window()),
                _ if board.rules.windows.contains(&Window::Day) => self.current(board, Window::Day),
                _ => None,
            };
            let instance = board.and_then(of_window);
            let shown = board.zip(instance.as_deref()).map(|(board, instance)| board.shown(instance));
            let shown = shown.unwrap_or_default();
            let index = shown.iter().position(|(id, _)| *id == member);
            for (answer, path) in [(&named_answer, &named), (&every_answer, &every)] {
                match (found(answer, name), index, board, instance.as_deref()) {
                    (Some(entry), Some(index), Some(board), Some(instance)) => {
                        let asked = Asked { name, board, window: "", instance, shown: &shown };
                        self.check_entry(&asked, &entry, index, with, path)?;
                    }
                    (None, None, ..) => {}
                    (found, ..) => return Err(format!("{path}: {name}: {found:?}")),
                }
            }
            if index.is_none() {
                not_found.push(name);
            }
        }
        same(&named_answer["not_found"], &json!(not_found), &named)
    }

    /// How many jobs each shard rejected, and why.
    fn check_rejects(&self) -> Check {
        let (mut found, mut cursor) = (std::collections::BTreeMap::new(), String::new());
        loop {
            let answer = self.get(&format!("/v1/rejects?limit=1000&cursor={cursor}"))?;
            for reject in answer["rejects"].as_array().ok_or_else(|| format!("no list: {answer}"))? {
                let shard = reject["shard"].as_u64().and_then(|shard| u16::try_from(shard).ok());
                let reason = reject["reason"].as_str().unwrap_or_default().to_owned();
                *found.entry((shard.unwrap_or_default(), reason)).or_insert(0) += 1;
            }
            match answer["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        let told = |rejects: Vec<(u16, String, usize)>| json!(rejects);
        let found = found.into_iter().map(|((shard, reason), times)| (shard, reason, times)).collect();
        let expected = self.world.rejects.iter();
        let expected = expected.map(|((shard, code), times)| (*shard, (*code).to_owned(), *times)).collect();
        same(&told(found), &told(expected), "rejects")
    }
}

/// As the list of instances has it, with times as numbers.
fn instance_json(board: &Board, slice: Option<&Slice>, now: i64) -> Value {
    let Some(slice) = slice else {
        let total = board.shown("all").len();
        return json!({ "name": "all", "begin": null, "end": null, "open": true, "total": total });
    };
    let total = board.shown(&slice.name).len();
    let open = board.rules.is_open(slice, now);
    json!({ "name": slice.name, "begin": slice.begin, "end": slice.end, "open": open, "total": total })
}

fn with_micros(instances: &Value) -> Value {
    let mut instances = instances.clone();
    let listed = instances.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut);
    for instance in listed.filter_map(Value::as_array_mut).flatten() {
        for time in ["begin", "end"] {
            if instance[time].is_string() {
                instance[time] = json!(micros(&instance[time]));
            }
        }
    }
    instances
}
