//! Which instances of its board a job has entered, for the answer to a write.
//!
//! Knows: that a job enters, of each window, the instance that its time falls in, if that is open when its
//! message comes. Must not know: what the entries there are.

use crate::board::Definition;
use crate::query::WindowChoice;
use crate::types::Timestamp;
use crate::window::Instance;

/// When a job happened, and when its message came.
#[derive(Debug, Clone, Copy)]
pub struct JobTimes {
    pub job: Timestamp,
    pub message: Timestamp,
}

/// What of a board is read for each of the names asked for: a window is the instance of it that the job has
/// entered, and `None` if it has entered none, because that was closed or had not begun. An instance that is
/// named is itself, and a window that the board does not have is left to the read.
///
/// # Arguments
/// `asked`: empty for all windows of the board.
pub fn entered(
    definition: &Definition,
    asked: &[(String, WindowChoice)],
    times: JobTimes,
) -> Vec<(String, Option<WindowChoice>)> {
    let every = || {
        let windows = definition.windows.iter();
        windows.map(|window| (window.name().to_owned(), WindowChoice::Current(*window))).collect()
    };
    let asked: Vec<(String, WindowChoice)> = if asked.is_empty() { every() } else { asked.to_vec() };
    let of = |choice: WindowChoice| match choice {
        WindowChoice::Current(window) if definition.windows.contains(&window) => {
            let instance = definition.calendar().instance_at(window, times.job);
            let is_open = |instance: &Instance| definition.is_open(*instance, times.message);
            instance.filter(is_open).map(WindowChoice::Named)
        }
        _ => Some(choice),
    };
    asked.into_iter().map(|(name, choice)| (name, of(choice))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Seasons, Window};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("a time")
    }

    /// What the windows asked for lead to, by name.
    fn told(definition: &Definition, asked: &[&str], job: &str, message: &str) -> Vec<String> {
        let choice =
            |name: &&str| ((*name).to_owned(), WindowChoice::of_name(name).expect("a window or an instance"));
        let asked: Vec<_> = asked.iter().map(choice).collect();
        let times = JobTimes { job: at(job), message: at(message) };
        let text = |(name, choice): (String, Option<WindowChoice>)| {
            format!("{name}={}", choice.map_or("none".to_owned(), |choice| choice.to_string()))
        };
        entered(definition, &asked, times).into_iter().map(text).collect()
    }

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_late_job_has_entered_the_instances_of_its_own_time_that_are_open() {
        let windows = vec![Window::All, Window::Day, Window::Hour];
        let board = Definition { windows, grace_micros: 2 * HOUR, ..Definition::default() };
        let late = "2026-11-27T23:30:00Z";
        for (message, expected) in [
            ("2026-11-27T23:30:00Z", ["all=all", "day=2026-11-27", "hour=2026-11-27T23"]),
            ("2026-11-28T01:59:59Z", ["all=all", "day=2026-11-27", "hour=2026-11-27T23"]),
            ("2026-11-28T02:00:00Z", ["all=all", "day=none", "hour=none"]),
        ] {
            assert_eq!(told(&board, &[], late, message), expected, "{message}");
        }
        let earlier = told(&board, &[], "2026-11-27T22:30:00Z", "2026-11-28T01:30:00Z");
        assert_eq!(earlier, ["all=all", "day=2026-11-27", "hour=none"]);
        // It is a little ahead of its message: the day has not begun.
        let ahead = told(&board, &["day", "all"], "2026-11-28T00:02:00Z", "2026-11-27T23:59:00Z");
        assert_eq!(ahead, ["day=none", "all=all"]);
        let japan = Definition { utc_offset_minutes: 9 * 60, ..board };
        assert_eq!(told(&japan, &["day"], late, "2026-11-28T00:00:00Z"), ["day=2026-11-28"]);
    }

    #[test]
    fn instances_that_are_named_and_windows_that_there_are_not_stay_as_they_were_asked_for() {
        let seasons = Some(Seasons::Manual(vec![at("2026-11-20T00:00:00Z")]));
        let windows = vec![Window::Season, Window::Day];
        let board = Definition { windows, seasons, ..Definition::default() };
        let (job, message) = ("2026-11-19T23:59:00Z", "2026-11-20T00:01:00Z");
        let asked = ["season", "2026-11-01", "day", "week"];
        // No season had begun when it happened.
        assert_eq!(
            told(&board, &asked, job, message),
            ["season=none", "2026-11-01=2026-11-01", "day=2026-11-19", "week=week"]
        );
    }
}
