//! Which times fall into an open window of a board, as far as that is known before rows are sent: the service
//! rejects a row of which no window is open. Pure.

use serde_json::Value;

use crate::board::Definition;
use crate::http::definition_of_json;
use crate::types::{BoardName, Timestamp};
use crate::window::{Span, Window};

/// The windows of a board that has not all of them in `all`, which is open always.
#[derive(Debug, Clone)]
pub struct OpenWindows {
    definition: Definition,
    /// Seasons that the service lists, and whether each is open. `None`: the board is new.
    seasons: Option<Vec<(Span, bool)>>,
}

impl OpenWindows {
    /// Of a board that is to be made. `None`: every time is open, or the definition is none.
    pub fn of_file(definition: &str, board: &BoardName) -> Option<Self> {
        let definition = definition_of_json(definition, board)?;
        (!definition.has_all()).then_some(Self { definition, seasons: None })
    }

    /// Of a board that is there.
    ///
    /// # Arguments
    /// `instances`: by window, as the service lists them.
    pub fn of_board(definition: &str, board: &BoardName, instances: Option<&Value>) -> Option<Self> {
        let open = Self::of_file(definition, board)?;
        let listed = instances.and_then(|instances| instances.get(Window::Season.name())?.as_array());
        let season = |listed: &Value| {
            let time = |name: &str| Timestamp::parse(listed.get(name)?.as_str()?).ok();
            let span = Span { begin: time("begin")?, end: time("end") };
            Some((span, listed.get("open") == Some(&Value::Bool(true))))
        };
        let seasons = listed.into_iter().flatten().filter_map(season).collect();
        Some(Self { seasons: Some(seasons), ..open })
    }

    /// Whether a row of this time is taken.
    ///
    /// # Arguments
    /// - `now`: when it is sent.
    /// - `latest`: as far ahead as the service's clock may be.
    pub fn take(&self, at: Timestamp, now: Timestamp, latest: Timestamp) -> bool {
        self.definition.windows.iter().any(|window| {
            if let (Some(seasons), Window::Season) = (&self.seasons, window) {
                return self.is_season_open(seasons, at, now);
            }
            let instance = self.definition.calendar().instance_at(*window, at);
            instance.is_some_and(|instance| self.definition.is_open_between(instance, now, latest))
        })
    }

    /// Seasons follow one another, and an older one need not be listed: it has ended when a later one began.
    fn is_season_open(&self, seasons: &[(Span, bool)], at: Timestamp, now: Timestamp) -> bool {
        if let Some((_, is_open)) = seasons.iter().find(|(span, _)| span.contains(at)) {
            return *is_open;
        }
        let next =
            seasons.iter().map(|(span, _)| span.begin.as_micros()).filter(|begin| *begin > at.as_micros());
        next.min().is_none_or(|next| now.as_micros() < next.saturating_add(self.definition.grace_micros))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("a time")
    }

    fn name() -> BoardName {
        BoardName::new("b").expect("a name")
    }

    #[test]
    fn times_of_closed_windows_are_told_from_those_of_open_ones() {
        let days =
            OpenWindows::of_file(r#"{"windows":["day","week"],"grace":"5m"}"#, &name()).expect("no all");
        let now = time("2026-11-18T00:04:00Z");
        for (at, expect) in [
            ("2026-11-18T00:01:00Z", true),
            // Of the same week.
            ("2026-11-16T00:00:00Z", true),
            ("2026-11-15T23:59:59Z", false),
            ("2026-11-18T00:06:00Z", true),
        ] {
            assert_eq!(days.take(time(at), now, time("2026-11-18T00:09:00Z")), expect, "{at}");
        }
        assert!(
            OpenWindows::of_file(r#"{"windows":["day","all"]}"#, &name()).is_none(),
            "all takes every time"
        );
    }

    #[test]
    fn seasons_are_judged_by_what_the_service_lists_of_them() {
        let definition = r#"{"windows":["season"],"season":"manual","grace":"1h"}"#;
        let season =
            |begin: &str, end: Option<&str>, open: bool| json!({"begin": begin, "end": end, "open": open});
        let listed = json!({"season": [
            season("2026-11-10T00:00:00Z", None, true),
            season("2026-11-01T00:00:00Z", Some("2026-11-10T00:00:00Z"), false),
        ]});
        let seasons = OpenWindows::of_board(definition, &name(), Some(&listed)).expect("no all");
        let now = time("2026-11-20T00:00:00Z");
        for (at, expect) in
            [("2026-11-12T00:00:00Z", true), ("2026-11-05T00:00:00Z", false), ("2026-10-01T00:00:00Z", false)]
        {
            assert_eq!(seasons.take(time(at), now, now), expect, "{at}");
        }
        let new = OpenWindows::of_file(definition, &name()).expect("no all");
        assert!(!new.take(now, now, now), "no season has been opened");
    }
}
