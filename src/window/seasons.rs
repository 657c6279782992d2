//! When a board's seasons begin: at regular times, or whenever an operator says so.

use thiserror::Error;

use crate::types::Timestamp;

/// The most manual seasons of a board, and the most changes of how long regular ones are.
pub const SEASONS_MAX: usize = 1_000;

/// The shortest regular season, in microseconds: a minute.
const EVERY_MIN: i64 = 60 * 1_000_000;

/// A board's seasons, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seasons {
    /// One follows the other. Usually there is one series; a further one begins where seasons became longer
    /// or shorter, or where one was ended early.
    Regular(Vec<Series>),
    /// When each season began, or will begin. The last one has no end yet.
    Manual(Vec<Timestamp>),
}

/// Seasons of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Series {
    /// The number of its first season.
    pub first: u32,
    pub begin: Timestamp,
    /// How long each is, in microseconds.
    pub every: i64,
}

/// Why seasons are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidSeasons {
    #[error("a season must be at least a minute long")]
    TooShort,
    #[error("a board can have {SEASONS_MAX} manual seasons, or as many changes of their length")]
    TooMany,
    #[error("each season must begin after the one before")]
    Order,
    #[error("a board with regular seasons must say when they start")]
    Empty,
}

impl Seasons {
    /// Regular seasons.
    pub fn regular(begin: Timestamp, every: i64) -> Self {
        Self::Regular(vec![Series { first: 1, begin, every }])
    }

    /// # Errors
    /// The first rule that they break.
    pub fn validate(&self) -> Result<(), InvalidSeasons> {
        match self {
            Self::Regular(series) => {
                if series.is_empty() {
                    return Err(InvalidSeasons::Empty);
                }
                if series.len() > SEASONS_MAX {
                    return Err(InvalidSeasons::TooMany);
                }
                if series.iter().any(|series| series.every < EVERY_MIN) {
                    return Err(InvalidSeasons::TooShort);
                }
                let continues = |pair: &[Series]| match pair {
                    [one, next] => {
                        one.first < next.first
                            && one.begin_of(next.first).is_some_and(|begin| next.begin <= begin)
                            && one.begin_of(next.first - 1).is_some_and(|begin| begin < next.begin)
                    }
                    _ => true,
                };
                let begins = series.first().is_some_and(|series| series.first == 1);
                if begins && series.windows(2).all(continues) { Ok(()) } else { Err(InvalidSeasons::Order) }
            }
            Self::Manual(begins) => {
                if begins.len() > SEASONS_MAX {
                    return Err(InvalidSeasons::TooMany);
                }
                if begins.is_sorted_by(|one, next| one < next) { Ok(()) } else { Err(InvalidSeasons::Order) }
            }
        }
    }

    /// Whether both are regular, or both manual: that can never change.
    pub fn is_alike(&self, other: &Self) -> bool {
        matches!(self, Self::Regular(_)) == matches!(other, Self::Regular(_))
    }

    /// When the first regular season starts.
    pub fn starts(&self) -> Option<Timestamp> {
        match self {
            Self::Regular(series) => series.first().map(|first| first.begin),
            Self::Manual(_) => None,
        }
    }

    /// How long the shortest regular season is, in microseconds. There are few manual ones, however long each
    /// is.
    pub fn shortest(&self) -> Option<i64> {
        match self {
            Self::Regular(series) => series.iter().map(|series| series.every).min(),
            Self::Manual(_) => None,
        }
    }

    /// The number of the season that a time falls in. `None`: before the first.
    pub fn number_at(&self, time: Timestamp) -> Option<i64> {
        match self {
            Self::Regular(series) => {
                let after = series.partition_point(|series| series.begin <= time);
                let series = series.get(after.checked_sub(1)?)?;
                let since = time.as_micros() - series.begin.as_micros();
                Some(i64::from(series.first) + since.div_euclid(series.every))
            }
            Self::Manual(begins) => {
                let number = begins.partition_point(|begin| *begin <= time);
                if number == 0 { None } else { i64::try_from(number).ok() }
            }
        }
    }

    /// From when to when a season is. `None`: there is none of that number.
    pub fn span(&self, number: i64) -> Option<Span> {
        match self {
            Self::Regular(all) => {
                let number = u32::try_from(number).ok()?;
                let after = all.partition_point(|series| series.first <= number);
                let series = all.get(after.checked_sub(1)?)?;
                let next = number.checked_add(1)?;
                let end = match all.get(after).filter(|following| following.first == next) {
                    Some(following) => Some(following.begin),
                    None => series.begin_of(next),
                };
                Some(Span { begin: series.begin_of(number)?, end })
            }
            Self::Manual(begins) => {
                let index = usize::try_from(number.checked_sub(1)?).ok()?;
                Some(Span { begin: *begins.get(index)?, end: begins.get(index + 1).copied() })
            }
        }
    }

    /// When a regular season ends unless it is ended early. `None`: it does not end by itself.
    pub fn natural_end(&self, number: u32) -> Option<Timestamp> {
        let Self::Regular(all) = self else { return None };
        let after = all.partition_point(|series| series.first <= number);
        all.get(after.checked_sub(1)?)?.begin_of(number.checked_add(1)?)
    }

    /// With regular seasons of another length from the next one on. Unchanged, if they are that long anyway.
    ///
    /// # Errors
    /// When they are too short, or have changed too often.
    pub fn with_length(&self, every: i64, now: Timestamp) -> Result<Self, InvalidSeasons> {
        let Self::Regular(series) = self else { return Ok(self.clone()) };
        let mut series = series.clone();
        match series.last_mut() {
            Some(last) if last.every == every => {}
            // Its first season has not begun, so that there is none to be left as it is.
            Some(last) if last.begin > now => {
                last.every = every;
                join_last(&mut series);
            }
            Some(last) => {
                let number = last.number_at(now).ok_or(InvalidSeasons::Order)?;
                let first = number.checked_add(1).ok_or(InvalidSeasons::Order)?;
                let begin = last.begin_of(first).ok_or(InvalidSeasons::Order)?;
                series.push(Series { first, begin, every });
            }
            None => return Err(InvalidSeasons::Empty),
        }
        let changed = Self::Regular(series);
        changed.validate()?;
        Ok(changed)
    }

    /// With one more manual season.
    ///
    /// # Errors
    /// When there are too many, or it begins before another one.
    pub fn with_season(&self, begin: Timestamp) -> Result<Self, InvalidSeasons> {
        let Self::Manual(begins) = self else { return Err(InvalidSeasons::Order) };
        let mut begins = begins.clone();
        begins.push(begin);
        let changed = Self::Manual(begins);
        changed.validate()?;
        Ok(changed)
    }

    /// With regular seasons of which the running one ends, and the next one begins, at this time. The
    /// following ones are counted from there.
    ///
    /// # Errors
    /// When no season is running, when that is not between its begin and its end, or when seasons have
    /// changed too often.
    pub fn with_early_end(&self, begin: Timestamp, now: Timestamp) -> Result<Self, InvalidSeasons> {
        let Self::Regular(series) = self else { return Err(InvalidSeasons::Order) };
        let mut series = series.clone();
        // One that has not begun says how long the following ones are.
        let following = series.pop_if(|last| last.begin > now);
        let running = series.last().ok_or(InvalidSeasons::Order)?;
        let first = running.number_at(now).and_then(|number| number.checked_add(1));
        let (first, every) = (first.ok_or(InvalidSeasons::Order)?, following.unwrap_or(*running).every);
        series.push(Series { first, begin, every });
        let changed = Self::Regular(series);
        changed.validate()?;
        Ok(changed)
    }

    /// The seasons that an operator has planned and that have not begun, with the time at which they do: the
    /// number and the time of each. Regular ones that begin when their time has come are none.
    pub fn planned(&self, now: Timestamp) -> Vec<(u32, Timestamp)> {
        match self {
            Self::Manual(begins) => {
                let numbered = (1..).zip(begins.iter().copied());
                numbered.filter(|(_, begin)| *begin > now).collect()
            }
            Self::Regular(series) => match &series[..] {
                [.., before, last] if last.begin > now && before.begin_of(last.first) != Some(last.begin) => {
                    vec![(last.first, last.begin)]
                }
                _ => Vec::new(),
            },
        }
    }

    /// With the season of this number, the last that is planned, beginning at another time.
    ///
    /// # Errors
    /// When it is not planned, or would not begin between those beside it.
    pub fn with_moved(&self, number: u32, begin: Timestamp, now: Timestamp) -> Result<Self, InvalidSeasons> {
        if !self.planned(now).iter().any(|(planned, _)| *planned == number) {
            return Err(InvalidSeasons::Order);
        }
        let mut changed = self.clone();
        match &mut changed {
            Self::Manual(begins) => {
                let index = usize::try_from(number - 1).map_err(|_| InvalidSeasons::Order)?;
                *begins.get_mut(index).ok_or(InvalidSeasons::Order)? = begin;
            }
            Self::Regular(series) => {
                series.last_mut().ok_or(InvalidSeasons::Order)?.begin = begin;
                join_last(series);
            }
        }
        changed.validate()?;
        Ok(changed)
    }

    /// Without the season of this number, the last that is planned.
    ///
    /// # Errors
    /// When it is not planned, or another one is planned after it, whose number would change.
    pub fn without(&self, number: u32, now: Timestamp) -> Result<Self, InvalidSeasons> {
        if self.planned(now).last().is_none_or(|(planned, _)| *planned != number) {
            return Err(InvalidSeasons::Order);
        }
        match self {
            Self::Manual(begins) => {
                let mut begins = begins.clone();
                begins.pop();
                Ok(Self::Manual(begins))
            }
            Self::Regular(series) => {
                let mut series = series.clone();
                if let [.., before, last] = &mut series[..] {
                    // The running season ends when it would have. The length of the following ones stays.
                    last.begin = before.begin_of(last.first).ok_or(InvalidSeasons::Order)?;
                }
                join_last(&mut series);
                Ok(Self::Regular(series))
            }
        }
    }
}

/// Takes the last series away if the one before it would go on in the same way.
fn join_last(series: &mut Vec<Series>) {
    if let [.., before, last] = &series[..]
        && before.every == last.every
        && before.begin_of(last.first) == Some(last.begin)
    {
        series.pop();
    }
}

impl Series {
    fn number_at(&self, time: Timestamp) -> Option<u32> {
        let since = time.as_micros() - self.begin.as_micros();
        u32::try_from(i64::from(self.first) + since.div_euclid(self.every)).ok()
    }

    fn begin_of(&self, number: u32) -> Option<Timestamp> {
        let seasons = i64::from(number.checked_sub(self.first)?);
        let begin = self.begin.as_micros().checked_add(seasons.checked_mul(self.every)?)?;
        Timestamp::from_micros(begin).ok()
    }
}

/// From when to when an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub begin: Timestamp,
    /// Exclusive. `None`: no end is known.
    pub end: Option<Timestamp>,
}

impl Span {
    pub fn contains(&self, time: Timestamp) -> bool {
        self.begin <= time && self.end.is_none_or(|end| time < end)
    }
}
