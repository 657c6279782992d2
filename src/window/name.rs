//! What instances are called: `all`, `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11`, `s7`.

use std::fmt;

use jiff::civil::{Date, ISOWeekDate, Weekday};

use crate::types::{BoardName, MOVEMENT_ENDS, decimal};
use crate::window::{DAYS_OF_WEEK_0, Instance, Window, date_of, days_of};

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        let date = |days: i64| date_of(days).ok_or(fmt::Error);
        match self.window {
            Window::All => f.write_str("all"),
            Window::Hour => write!(f, "{}T{:02}", date(number.div_euclid(24))?, number.rem_euclid(24)),
            Window::Day => write!(f, "{}", date(number)?),
            Window::Week => {
                let monday = date(number.saturating_mul(7).saturating_sub(DAYS_OF_WEEK_0))?;
                let week = monday.iso_week_date();
                write!(f, "{:04}-W{:02}", week.year(), week.week())
            }
            Window::Month => {
                write!(
                    f,
                    "{:04}-{:02}",
                    number.div_euclid(12).saturating_add(1970),
                    number.rem_euclid(12) + 1
                )
            }
            Window::Season => write!(f, "s{number}"),
        }
    }
}

impl Instance {
    /// The name under which shards keep this instance of a board. That of `all` is the board's own.
    pub fn name_on_shards(self, board: &BoardName) -> BoardName {
        if self == Self::ALL { board.clone() } else { board.with_instance(&self.to_string()) }
    }

    /// The instance that shards keep under a name. `None`: of no window that this version knows, or what is
    /// kept is what movement needs.
    pub fn of_name_on_shards(name: &BoardName) -> Option<Self> {
        name.split().1.map_or(Some(Self::ALL), Self::of_name)
    }

    /// The instance of this name, written as it is displayed. It need not have begun, nor be of any board.
    pub fn of_name(name: &str) -> Option<Self> {
        let parsed = parse(name)?;
        // One instance has one name: `2026-W7` and `s07` are none.
        (parsed.to_string() == name).then_some(parsed)
    }
}

/// What shards keep of a board for the movement since an instance began: a tree each, under a name like an
/// instance's. Only a board's definition leads to these names, and no client can say them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovementPart {
    /// Of the members that changed since: the entries of `all` that they had when the instance began.
    Then,
    /// The entries of `all` that these members have now.
    Now,
}

impl MovementPart {
    pub const ALL: [Self; 2] = [Self::Then, Self::Now];

    fn end(self) -> &'static str {
        let [then, now] = MOVEMENT_ENDS;
        match self {
            Self::Then => then,
            Self::Now => now,
        }
    }

    /// The name under which shards keep this part: `arena#2026-W47.then`.
    pub fn name_on_shards(self, instance: Instance, board: &BoardName) -> BoardName {
        board.with_instance(&format!("{instance}{}", self.end()))
    }

    /// Which part shards keep under a name, and since when; `None`: it is the name of something else.
    pub fn of_name_on_shards(name: &BoardName) -> Option<(Self, Instance)> {
        let kept = name.split().1?;
        Self::ALL.into_iter().find_map(|part| {
            let instance = kept.strip_suffix(part.end())?;
            Some((part, Instance::of_name(instance)?))
        })
    }
}

fn parse(name: &str) -> Option<Instance> {
    if name == "all" {
        return Some(Instance::ALL);
    }
    if let Some(number) = name.strip_prefix('s') {
        let number: u32 = decimal(number).filter(|number| *number > 0)?;
        return Some(Instance { window: Window::Season, number: i64::from(number) });
    }
    let (year, rest) = name.split_once('-')?;
    let year: i16 = decimal(year)?;
    if let Some(week) = rest.strip_prefix('W') {
        let monday = ISOWeekDate::new(year, decimal(week)?, Weekday::Monday).ok()?.date();
        return Some(Instance {
            window: Window::Week,
            number: (days_of(monday) + DAYS_OF_WEEK_0).div_euclid(7),
        });
    }
    let Some((month, rest)) = rest.split_once('-') else {
        let month: i8 = decimal(rest).filter(|month| (1..=12).contains(month))?;
        let number = (i64::from(year) - 1970) * 12 + i64::from(month) - 1;
        return Some(Instance { window: Window::Month, number });
    };
    let (day, hour) = rest.split_once('T').map_or((rest, None), |(day, hour)| (day, Some(hour)));
    let days = days_of(Date::new(year, decimal(month)?, decimal(day)?).ok()?);
    match hour {
        None => Some(Instance { window: Window::Day, number: days }),
        Some(hour) => {
            let hour: i64 = decimal(hour).filter(|hour| *hour < 24)?;
            Some(Instance { window: Window::Hour, number: days * 24 + hour })
        }
    }
}
