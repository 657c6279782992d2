//! Which instance of a board a reader asks for, and whether there is one.
//!
//! Knows: that an instance exists from its beginning until it is dropped, whether or not a job has entered
//! it. So which one is current follows from the board's definition and the time alone. Must not know: what
//! the time is, or which instances have entries.

use std::fmt;

use thiserror::Error;

use crate::board::Definition;
use crate::types::Timestamp;
use crate::window::{Instance, Seasons, Window};

/// How [`WindowChoice::Every`] is written.
pub const EVERY: &str = "*";

/// Which instance of a board is asked for, apart from the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowChoice {
    /// The current one of the board's default window.
    #[default]
    Default,
    /// The current one of a window.
    Current(Window),
    Named(Instance),
    /// Each instance that holds an entry of the member asked for. No other read has it.
    Every,
}

impl WindowChoice {
    /// The choice by a window's name or an instance's; `None` if the text is neither.
    pub fn of_name(text: &str) -> Option<Self> {
        match Window::of_name(text) {
            Some(window) => Some(Self::Current(window)),
            None => Instance::of_name(text).map(Self::Named),
        }
    }

    /// Whether an instance may be one that this choice has led to, at some time.
    pub fn may_be(self, definition: &Definition, instance: Instance) -> bool {
        match self {
            Self::Default => instance.window == definition.default_window(),
            Self::Current(window) => instance.window == window,
            Self::Named(named) => instance == named,
            Self::Every => true,
        }
    }
}

/// The name that [`WindowChoice::of_name`] reads; empty for the default.
impl fmt::Display for WindowChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => Ok(()),
            Self::Current(window) => f.write_str(window.name()),
            Self::Named(instance) => instance.fmt(f),
            Self::Every => f.write_str(EVERY),
        }
    }
}

/// Which instance of a board is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstanceAsked {
    pub choice: WindowChoice,
    /// The reading node's time, which decides which instances are current.
    pub now: Timestamp,
}

/// Why a board has no such instance now; the text is fit for a client to read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownWindow {
    #[error("the board has no window {}; its windows are {windows}", .asked.name())]
    NotOfBoard { asked: Window, windows: String },
    #[error("{instance} has not begun{begins}")]
    NotBegun { instance: Instance, begins: Begins },
    #[error(
        "{instance} was dropped, because the board keeps {keep} closed instances of a window; \
         GET /v1/boards/{{board}} lists those that there are"
    )]
    Dropped { instance: Instance, keep: u32 },
    #[error("the board's first season has not begun{begins}")]
    NoSeason { begins: Begins },
}

/// When an instance begins that has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    At(Timestamp),
    /// When somebody opens it, and those before it.
    Opened,
    /// After the last time that a board can have.
    TooLate,
}

impl Begins {
    fn of(definition: &Definition, instance: Instance) -> Self {
        match (definition.calendar().span(instance), &definition.seasons) {
            (Some(span), _) => Self::At(span.begin),
            (None, Some(Seasons::Manual(_))) if instance.window == Window::Season => Self::Opened,
            _ => Self::TooLate,
        }
    }
}

/// What is said behind "has not begun".
impl fmt::Display for Begins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(begins) => write!(f, "; it begins at {begins}"),
            Self::Opened => f.write_str(
                "; POST /v1/boards/{board}/seasons opens the next season of a board with manual ones",
            ),
            Self::TooLate => {
                f.write_str("; its end would be after the last time that can be written, in the year 9999")
            }
        }
    }
}

/// Why a board's entries have no movement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoMovement {
    #[error(
        "the board keeps no movement; boards keep it that are defined with \"movement\": true, which cannot be \
         changed later"
    )]
    NotKept,
    #[error(
        "only entries of the window all have movement, and not those of {0}; send window=all, or no window"
    )]
    OfInstance(Instance),
}

impl InstanceAsked {
    /// The same at a later time, if `time` is later.
    pub fn not_before(self, time: Timestamp) -> Self {
        Self { now: self.now.max(time), ..self }
    }

    /// The instance of a board of this definition.
    ///
    /// # Errors
    /// When there is none: the board does not have the window, the instance has not begun, or it was dropped.
    pub fn of(&self, definition: &Definition) -> Result<Instance, UnknownWindow> {
        let window = match self.choice {
            WindowChoice::Default | WindowChoice::Every => definition.default_window(),
            WindowChoice::Current(window) => window,
            WindowChoice::Named(instance) => instance.window,
        };
        if !definition.windows.contains(&window) {
            let windows: Vec<&str> = definition.windows.iter().map(|window| window.name()).collect();
            return Err(UnknownWindow::NotOfBoard { asked: window, windows: windows.join(", ") });
        }
        match self.choice {
            WindowChoice::Named(instance) => self.named(definition, instance),
            WindowChoice::Default | WindowChoice::Current(_) | WindowChoice::Every => {
                let calendar = definition.calendar();
                calendar.instance_at(window, self.now).ok_or_else(|| {
                    let first = Instance { window: Window::Season, number: 1 };
                    UnknownWindow::NoSeason { begins: Begins::of(definition, first) }
                })
            }
        }
    }

    fn named(&self, definition: &Definition, instance: Instance) -> Result<Instance, UnknownWindow> {
        let calendar = definition.calendar();
        let dropped = UnknownWindow::Dropped { instance, keep: definition.keep };
        match calendar.span(instance) {
            Some(span) if span.begin > self.now => {
                Err(UnknownWindow::NotBegun { instance, begins: Begins::At(span.begin) })
            }
            Some(_) if definition.drops_at(instance).is_some_and(|drops| drops <= self.now) => Err(dropped),
            Some(_) => Ok(instance),
            // Of another century, or a season that nobody has opened.
            None => match calendar.instance_at(instance.window, self.now) {
                Some(current) if instance.number < current.number => Err(dropped),
                _ => Err(UnknownWindow::NotBegun { instance, begins: Begins::of(definition, instance) }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::BoardName;
    use crate::window::Series;

    fn at(text: &str) -> Timestamp {
        text.parse::<jiff::Timestamp>()
            .ok()
            .and_then(|time| Timestamp::from_micros(time.as_microsecond()).ok())
            .expect("a time")
    }

    fn resolved(definition: &Definition, window: &str, now: &str) -> Result<String, String> {
        let choice = if window.is_empty() {
            WindowChoice::Default
        } else {
            WindowChoice::of_name(window).expect("a window or an instance")
        };
        let asked = InstanceAsked { choice, now: at(now) };
        asked.of(definition).map(|instance| instance.to_string()).map_err(|why| why.to_string())
    }

    fn with_windows(windows: &[Window]) -> Definition {
        Definition { windows: windows.to_vec(), keep: 2, ..Definition::default() }
    }

    #[test]
    fn a_window_is_read_as_its_current_instance_from_the_first_instant_on() {
        let board = with_windows(&[Window::Day, Window::Week]);
        for (window, now, instance) in [
            ("", "2026-11-20T23:59:59.999999Z", "2026-11-20"),
            ("", "2026-11-21T00:00:00Z", "2026-11-21"),
            ("day", "2026-11-21T00:00:00Z", "2026-11-21"),
            ("week", "2026-11-22T23:59:59.999999Z", "2026-W47"),
            ("week", "2026-11-23T00:00:00Z", "2026-W48"),
        ] {
            assert_eq!(resolved(&board, window, now).as_deref(), Ok(instance), "{window} {now}");
        }
        let both = with_windows(&[Window::Day, Window::All]);
        assert_eq!(resolved(&both, "", "2026-11-20T10:00:00Z").as_deref(), Ok("all"));
        let japan = Definition { utc_offset_minutes: 9 * 60, ..board };
        assert_eq!(resolved(&japan, "day", "2026-11-20T15:00:00Z").as_deref(), Ok("2026-11-21"));
    }

    #[test]
    fn an_instance_can_be_read_from_its_beginning_until_enough_newer_ones_have_closed() {
        let board = with_windows(&[Window::All, Window::Day]);
        for (name, now, words) in [
            ("2026-11-20", "2026-11-19T23:59:59Z", Some("has not begun; it begins at 2026-11-20T00:00:00Z")),
            ("2026-11-20", "2026-11-20T00:00:00Z", None),
            ("2026-11-20", "2026-11-23T00:04:59.999999Z", None),
            ("2026-11-20", "2026-11-23T00:05:00Z", Some("was dropped, because the board keeps 2 closed")),
            ("1969-11-20", "2026-11-20T00:00:00Z", Some("was dropped")),
            ("all", "2026-11-20T00:00:00Z", None),
            ("2026-W47", "2026-11-20T00:00:00Z", Some("has no window week; its windows are all, day")),
            ("hour", "2026-11-20T00:00:00Z", Some("has no window hour; its windows are all, day")),
        ] {
            let found = resolved(&board, name, now);
            match words {
                None => assert_eq!(found.as_deref(), Ok(name), "{now}"),
                Some(words) => {
                    let why = found.expect_err("there is none");
                    assert!(why.contains(words), "{name} at {now}: {why}");
                }
            }
        }
    }

    #[test]
    fn a_board_of_seasons_has_none_before_the_first() {
        let manual = |begins: &[&str]| Definition {
            seasons: Some(Seasons::Manual(begins.iter().map(|begin| at(begin)).collect())),
            ..with_windows(&[Window::Season])
        };
        let why = resolved(&manual(&[]), "", "2026-11-20T00:00:00Z").expect_err("no season");
        assert!(why.contains("POST /v1/boards/{board}/seasons"), "{why}");
        let opened = manual(&["2026-11-21T00:00:00Z"]);
        let why = resolved(&opened, "season", "2026-11-20T00:00:00Z").expect_err("not yet");
        assert!(why.contains("it begins at 2026-11-21T00:00:00Z"), "{why}");
        assert_eq!(resolved(&opened, "", "2026-11-21T00:00:00Z").as_deref(), Ok("s1"));
        let why = resolved(&opened, "s2", "2026-11-22T00:00:00Z").expect_err("nobody has opened it");
        assert!(why.contains("POST /v1/boards/{board}/seasons"), "{why}");
    }

    #[test]
    fn only_seasons_that_somebody_opens_are_said_to_be_opened() {
        let every = Series { first: 1, begin: at("2026-11-02T00:00:00Z"), every: 14 * 86_400 * 1_000_000 };
        let regular = Some(Seasons::Regular(vec![every]));
        let manual = Some(Seasons::Manual(vec![every.begin]));
        for (name, seasons) in [("9999-12", manual.clone()), ("9999-12", None), ("s4000000000", regular)] {
            let board = Definition { seasons, ..with_windows(&[Window::Month, Window::Season]) };
            let why = resolved(&board, name, "2026-11-20T00:00:00Z").expect_err("it is no time");
            assert!(why.contains("has not begun") && why.contains("in the year 9999"), "{name}: {why}");
        }
        let board = Definition { seasons: manual, ..with_windows(&[Window::Month, Window::Season]) };
        let why = resolved(&board, "s4000000000", "2026-11-20T00:00:00Z").expect_err("it is not opened");
        assert!(why.contains("POST"), "{why}");
    }

    #[test]
    fn a_choice_is_a_windows_name_or_an_instances() {
        for name in ["all", "hour", "day", "season", "2026-11-20T09", "2026-W47", "2026-11", "s7"] {
            assert_eq!(WindowChoice::of_name(name).map(|choice| choice.to_string()).as_deref(), Some(name));
        }
        for name in ["", "today", "Day", "2026-W7", "2026-13", "s0", "s07", "2026-11-20T24", "arena#all"] {
            assert_eq!(WindowChoice::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn only_instances_other_than_all_have_names_of_their_own_on_shards() {
        let board = BoardName::new("arena").expect("a good name");
        let named = |name| Instance::of_name(name).expect("an instance").name_on_shards(&board).to_string();
        assert_eq!((named("all").as_str(), named("2026-W47").as_str()), ("arena", "arena#2026-W47"));
    }
}
