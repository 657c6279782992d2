//! What a client asks of a board's seasons, and what they become.
//!
//! Knows: which seasons may still change. Must not know: where boards are decided.

use std::time::Duration;

use crate::types::Timestamp;
use crate::window::{InvalidSeasons, Seasons};

/// How long after a season began the next one is opened by a request that does not name it: sooner, the
/// request is most likely one that was sent twice. A minute, in microseconds.
const REPEATED_WITHIN: i64 = 60 * 1_000_000;

/// How far ahead a season begins at least, and how far ahead one is that is moved or cancelled: all shards
/// know of that before jobs come that are of the season, or no longer are.
const AHEAD: Duration = Duration::from_secs(1);

/// What is asked of a board's seasons.
#[derive(Debug, Clone, Copy)]
pub enum SeasonChange {
    /// That one begins: the next manual one, or the one after the running regular one, which ends.
    Open {
        /// Which one it is to be. If it is there already, nothing changes.
        number: Option<u32>,
        /// When it is to begin. `None`: as soon as possible.
        at: Option<Timestamp>,
        /// Whether it is opened also where the request looks like a repeated one.
        force: bool,
    },
    /// That a planned one begins at another time.
    Move { number: u32, at: Timestamp },
    /// That a planned one does not begin.
    Cancel { number: u32 },
}

/// Why seasons do not change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeasonRefused {
    #[error(
        "the board has no seasons; a board has manual ones if it was defined with the window season and \
         \"season\":\"manual\""
    )]
    NoSeasons,
    #[error(
        "the season s{number} is planned for {begin} already. PUT or DELETE of \
         /v1/boards/{{board}}/seasons/s{number} moves or cancels it; to plan one more after it, send ?force=true"
    )]
    Planned { number: u32, begin: Timestamp },
    #[error(
        "the running season is planned to end at {begin}, when s{number} begins. PUT or DELETE of /v1/boards/\
         {{board}}/seasons/s{number} moves or cancels that; ?force=true without a name sets another end instead"
    )]
    EndPlanned { number: u32, begin: Timestamp },
    #[error(
        "the season s{number} began at {begin}, less than a minute ago, so that this looks like the same \
         request once more; to end it and open the next one, send ?force=true, or the next one's name"
    )]
    JustBegun { number: u32, begin: Timestamp },
    #[error("the season s{number} begins at {begin} and not at the time that was sent")]
    OtherTime { number: u32, begin: Timestamp },
    #[error("the next season of the board is s{next}, not s{number}")]
    NotNext { number: u32, next: u32 },
    #[error(
        "at must be at least a second ahead, {earliest} or later; got {at}. A POST without it opens the next \
         season as soon as possible; to move a planned one takes a time"
    )]
    TooSoon { at: Timestamp, earliest: Timestamp },
    #[error("the season must begin after s{number}, which begins at {begin}; send a later `at`")]
    TooEarly { number: u32, begin: Timestamp },
    #[error("the season must begin before {before}, when {what}; send an earlier `at`")]
    TooLate { before: Timestamp, what: String },
    #[error("the board's first season begins at {0}, so that none can be ended before")]
    NotStarted(Timestamp),
    #[error("the season s{0} has begun: it can be ended, by opening the next one, and no longer be changed")]
    Begun(u32),
    #[error(
        "the season s{number} begins at {begin}, in a moment, so that it can no longer be moved or cancelled: \
         jobs would be in it before every shard knows. Once it has begun, end it by opening the next one, with \
         POST /v1/boards/{{board}}/seasons"
    )]
    Beginning { number: u32, begin: Timestamp },
    #[error("the season s{last} is planned after s{number}; cancel that one before")]
    NotLast { number: u32, last: u32 },
    #[error("the season s{0} begins by itself, with the board's regular seasons; it is not planned")]
    Regular(u32),
    #[error("the board has no season s{0}")]
    Unknown(u32),
    #[error("{0}; define another board for further ones")]
    TooMany(InvalidSeasons),
}

impl SeasonChange {
    /// What the seasons become.
    ///
    /// # Arguments
    /// `now`: seasons that have begun by then, or will in a moment, stay as they are.
    ///
    /// # Errors
    /// When they cannot change so.
    pub(super) fn applied_to(&self, seasons: &Seasons, now: Timestamp) -> Result<Seasons, SeasonRefused> {
        let earliest = now.plus(AHEAD);
        match *self {
            Self::Open { number, at, force } => open(seasons, (number, at, earliest), force, now),
            Self::Move { number, at } => {
                let planned = check_planned(seasons, number, now)?;
                if planned.contains(&(number, at)) {
                    // The request is repeated.
                    return Ok(seasons.clone());
                }
                check_ahead(&planned, number, earliest)?;
                if at < earliest {
                    return Err(SeasonRefused::TooSoon { at, earliest });
                }
                check_order(seasons, number, at)?;
                if let Some((next, begin)) = planned.iter().find(|(planned, _)| *planned > number)
                    && at >= *begin
                {
                    let what = format!("s{next} begins");
                    return Err(SeasonRefused::TooLate { before: *begin, what });
                }
                seasons.with_moved(number, at, now).map_err(SeasonRefused::TooMany)
            }
            Self::Cancel { number } => {
                let planned = check_planned(seasons, number, now)?;
                check_ahead(&planned, number, earliest)?;
                match planned.last() {
                    Some((last, _)) if *last > number => Err(SeasonRefused::NotLast { number, last: *last }),
                    _ => seasons.without(number, now).map_err(SeasonRefused::TooMany),
                }
            }
        }
    }
}

/// The planned seasons, of which this has to be one.
fn check_planned(
    seasons: &Seasons,
    number: u32,
    now: Timestamp,
) -> Result<Vec<(u32, Timestamp)>, SeasonRefused> {
    let planned = seasons.planned(now);
    if planned.iter().any(|(planned, _)| *planned == number) {
        return Ok(planned);
    }
    let span = if number == 0 { None } else { seasons.span(i64::from(number)) };
    Err(match span {
        None => SeasonRefused::Unknown(number),
        Some(span) if span.begin <= now => SeasonRefused::Begun(number),
        Some(_) => SeasonRefused::Regular(number),
    })
}

/// Whether a planned season begins so late that every shard knows before of what becomes of it.
fn check_ahead(planned: &[(u32, Timestamp)], number: u32, earliest: Timestamp) -> Result<(), SeasonRefused> {
    match planned.iter().find(|(planned, _)| *planned == number) {
        Some((_, begin)) if *begin < earliest => Err(SeasonRefused::Beginning { number, begin: *begin }),
        _ => Ok(()),
    }
}

/// Whether a season that begins then begins after the one before it, and, if it ends a regular one, not after
/// that would end by itself.
fn check_order(seasons: &Seasons, number: u32, at: Timestamp) -> Result<(), SeasonRefused> {
    let Some(before) = number.checked_sub(1).filter(|before| *before > 0) else { return Ok(()) };
    let Some(span) = seasons.span(i64::from(before)) else { return Ok(()) };
    if at <= span.begin {
        return Err(SeasonRefused::TooEarly { number: before, begin: span.begin });
    }
    match seasons.natural_end(before) {
        Some(end) if at >= end => {
            Err(SeasonRefused::TooLate { before: end, what: format!("s{before} ends by itself") })
        }
        _ => Ok(()),
    }
}

fn open(
    seasons: &Seasons,
    (number, at, earliest): (Option<u32>, Option<Timestamp>, Timestamp),
    force: bool,
    now: Timestamp,
) -> Result<Seasons, SeasonRefused> {
    let planned = seasons.planned(now);
    let running = seasons.number_at(now).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    // A running regular season has one end: with consent another one takes the place of a planned one.
    let is_regular = matches!(seasons, Seasons::Regular(_));
    let replaces_planned = is_regular && force && number.is_none();
    let last = planned.last().filter(|_| !replaces_planned).map_or(running, |(last, _)| *last);
    let next = last.saturating_add(1);
    if let Seasons::Regular(series) = seasons
        && let (0, Some(first)) = (running, series.first())
    {
        return Err(SeasonRefused::NotStarted(first.begin));
    }
    if let Some(number) = number {
        if (1..=last).contains(&number) {
            // It is there: the request is repeated.
            let span = seasons.span(i64::from(number)).ok_or(SeasonRefused::Unknown(number))?;
            return match at {
                Some(at) if at != span.begin => Err(SeasonRefused::OtherTime { number, begin: span.begin }),
                _ => Ok(seasons.clone()),
            };
        }
        if number != next {
            return Err(SeasonRefused::NotNext { number, next });
        }
    }
    if let Some((number, _)) = planned.last().filter(|_| replaces_planned) {
        check_ahead(&planned, *number, earliest)?;
    }
    let can_plan_more = if is_regular { replaces_planned } else { force || number.is_some() };
    if let Some((number, begin)) = planned.last().copied().filter(|_| !can_plan_more) {
        return Err(if is_regular {
            SeasonRefused::EndPlanned { number, begin }
        } else {
            SeasonRefused::Planned { number, begin }
        });
    }
    if let Some(span) = seasons.span(i64::from(running)).filter(|_| running > 0 && planned.is_empty())
        && !force
        && number.is_none()
        && now.as_micros().saturating_sub(span.begin.as_micros()) < REPEATED_WITHIN
    {
        return Err(SeasonRefused::JustBegun { number: running, begin: span.begin });
    }
    let begin = at.unwrap_or(earliest);
    // A season that begins in the past would take entries from the one that they are in.
    if begin < earliest {
        return Err(SeasonRefused::TooSoon { at: begin, earliest });
    }
    check_order(seasons, next, begin)?;
    match seasons {
        Seasons::Manual(_) => seasons.with_season(begin),
        Seasons::Regular(_) => seasons.with_early_end(begin, now),
    }
    .map_err(SeasonRefused::TooMany)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Definition, DefinitionPatch, Field, SeasonsPatch};
    use crate::window::Window;
    use crate::writer::board_change::{BoardChange, DefineRefused};

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    fn manual(begins: &[i64]) -> Definition {
        let seasons = Seasons::Manual(begins.iter().map(|begin| at(*begin)).collect());
        Definition { windows: vec![Window::Season], seasons: Some(seasons), ..Definition::default() }
    }

    const SECOND: i64 = 1_000_000;
    const MINUTE: i64 = 60 * SECOND;
    const DAY: i64 = 86_400 * SECOND;

    fn regular() -> Definition {
        let seasons = Some(Seasons::regular(at(DAY), 14 * DAY));
        Definition { windows: vec![Window::Season], seasons, ..Definition::default() }
    }

    fn change(known: &Definition, change: SeasonChange, now: i64) -> Result<Definition, SeasonRefused> {
        BoardChange::Season(change).applied_to(Some(known), at(now)).map_err(|why| match why {
            DefineRefused::Season(why) => why,
            other => panic!("another refusal: {other}"),
        })
    }

    fn open(number: Option<u32>, begin: Option<i64>) -> SeasonChange {
        SeasonChange::Open { number, at: begin.map(at), force: false }
    }

    fn forced(number: Option<u32>, begin: Option<i64>) -> SeasonChange {
        SeasonChange::Open { number, at: begin.map(at), force: true }
    }

    #[test]
    fn a_repeated_request_opens_no_second_season() {
        let first = change(&manual(&[]), open(None, None), DAY).expect("the first");
        assert_eq!(first, manual(&[DAY + SECOND]));
        // It has not begun, then it has just begun.
        for now in [DAY + 130_000, DAY + 2 * SECOND, DAY + MINUTE] {
            let refused = change(&first, open(None, None), now).expect_err("repeated");
            assert!(
                matches!(
                    refused,
                    SeasonRefused::Planned { number: 1, .. } | SeasonRefused::JustBegun { number: 1, .. }
                ),
                "{refused}"
            );
            // With a name it is the same season, or the next one.
            assert_eq!(change(&first, open(Some(1), None), now).as_ref(), Ok(&first));
            assert_eq!(change(&first, open(Some(1), Some(DAY + SECOND)), now).as_ref(), Ok(&first));
            let other = change(&first, open(Some(1), Some(DAY + MINUTE)), now);
            assert_eq!(other, Err(SeasonRefused::OtherTime { number: 1, begin: at(DAY + SECOND) }));
            let other = change(&first, open(Some(3), None), now);
            assert_eq!(other, Err(SeasonRefused::NotNext { number: 3, next: 2 }));
        }
        let now = DAY + 2 * SECOND;
        let second = manual(&[DAY + SECOND, DAY + 3 * SECOND]);
        for certain in [forced(None, None), open(Some(2), None), forced(Some(2), None)] {
            assert_eq!(change(&first, certain, now).as_ref(), Ok(&second), "{certain:?}");
        }
        let now = DAY + SECOND + MINUTE;
        let second = change(&first, open(None, None), now).expect("a minute later");
        assert_eq!(second, manual(&[DAY + SECOND, DAY + 2 * SECOND + MINUTE]));
    }

    #[test]
    fn seasons_begin_in_their_order() {
        let planned = manual(&[DAY, 9 * DAY]);
        let now = 2 * DAY;
        let after = SeasonRefused::TooEarly { number: 2, begin: at(9 * DAY) };
        for begin in [None, Some(5 * DAY), Some(9 * DAY)] {
            assert_eq!(change(&planned, forced(None, begin), now), Err(after.clone()));
        }
        let third = change(&planned, forced(None, Some(9 * DAY + 1)), now);
        assert_eq!(third, Ok(manual(&[DAY, 9 * DAY, 9 * DAY + 1])));
        assert_eq!(
            BoardChange::Season(open(None, None)).applied_to(None, at(0)),
            Err(DefineRefused::Unknown)
        );
        assert_eq!(change(&Definition::default(), open(None, None), 0), Err(SeasonRefused::NoSeasons));
        // None begins in the past, whatever it is called.
        for (known, begin) in [(manual(&[DAY]), DAY + 1), (manual(&[DAY]), now), (regular(), DAY + 1)] {
            let refused = change(&known, open(Some(2), Some(begin)), now);
            let expected = SeasonRefused::TooSoon { at: at(begin), earliest: at(now + SECOND) };
            assert_eq!(refused, Err(expected), "{known:?}");
        }
        let all: Vec<i64> = (1..=1_000).collect();
        let refused = change(&manual(&all), open(None, None), DAY);
        assert!(matches!(refused, Err(SeasonRefused::TooMany(_))), "{refused:?}");
    }

    #[test]
    fn planned_seasons_are_moved_and_cancelled_and_others_are_not() {
        // A mistyped year.
        let known = manual(&[DAY, 4_000 * DAY]);
        let now = 2 * DAY;
        let moved = |number, begin| change(&known, SeasonChange::Move { number, at: at(begin) }, now);
        assert_eq!(moved(2, 3 * DAY), Ok(manual(&[DAY, 3 * DAY])));
        assert_eq!(moved(2, DAY), Err(SeasonRefused::TooSoon { at: at(DAY), earliest: at(now + SECOND) }));
        assert_eq!(moved(1, 3 * DAY), Err(SeasonRefused::Begun(1)));
        for unknown in [0, 3, u32::MAX] {
            assert_eq!(moved(unknown, 3 * DAY), Err(SeasonRefused::Unknown(unknown)));
        }
        let cancelled = |known: &Definition, number| change(known, SeasonChange::Cancel { number }, now);
        assert_eq!(cancelled(&known, 2), Ok(manual(&[DAY])));
        assert_eq!(cancelled(&known, 1), Err(SeasonRefused::Begun(1)));
        let two = manual(&[DAY, 3 * DAY, 4 * DAY]);
        assert_eq!(cancelled(&two, 2), Err(SeasonRefused::NotLast { number: 2, last: 3 }));
        assert_eq!(cancelled(&two, 3), Ok(manual(&[DAY, 3 * DAY])));
        let moved = change(&two, SeasonChange::Move { number: 3, at: at(3 * DAY) }, now);
        assert_eq!(moved, Err(SeasonRefused::TooEarly { number: 2, begin: at(3 * DAY) }));
        let moved = change(&two, SeasonChange::Move { number: 2, at: at(4 * DAY) }, now);
        assert!(matches!(moved, Err(SeasonRefused::TooLate { .. })), "{moved:?}");
        for number in [1, 2] {
            let refused = cancelled(&regular(), number).expect_err("nothing is planned");
            assert!(matches!(refused, SeasonRefused::Begun(1) | SeasonRefused::Regular(2)), "{refused}");
        }
    }

    /// A definition takes a while to reach every shard. What begins meanwhile would be taken back there.
    #[test]
    fn a_season_that_begins_in_a_moment_is_neither_moved_nor_cancelled() {
        let begin = 3 * DAY;
        let early = change(&regular(), open(None, Some(begin)), 2 * DAY).expect("planned");
        for known in [manual(&[DAY, begin]), manual(&[DAY, begin, 9 * DAY]), early] {
            let moved = |now| change(&known, SeasonChange::Move { number: 2, at: at(begin + DAY) }, now);
            let again = |now| change(&known, SeasonChange::Move { number: 2, at: at(begin) }, now);
            let cancelled = |now| change(&known, SeasonChange::Cancel { number: 2 }, now);
            for before in [1, 2_000, SECOND / 2, SECOND - 1] {
                let refused = SeasonRefused::Beginning { number: 2, begin: at(begin) };
                assert_eq!(moved(begin - before), Err(refused.clone()), "{before}: {known:?}");
                assert_eq!(cancelled(begin - before), Err(refused), "{before}: {known:?}");
                // The request is repeated.
                assert_eq!(again(begin - before).as_ref(), Ok(&known), "{before}");
            }
            for begun in [0, 1, SECOND] {
                assert_eq!(moved(begin + begun), Err(SeasonRefused::Begun(2)), "{begun}: {known:?}");
                assert_eq!(cancelled(begin + begun), Err(SeasonRefused::Begun(2)), "{begun}: {known:?}");
            }
            assert!(moved(begin - SECOND).is_ok(), "{known:?}");
        }
        let told = SeasonRefused::Beginning { number: 2, begin: at(begin) }.to_string();
        assert!(told.contains("s2") && told.contains("POST /v1/boards/{board}/seasons"), "{told}");
    }

    #[test]
    fn a_regular_season_is_ended_early() {
        let known = regular();
        let now = 5 * DAY;
        let seasons = |definition: &Definition| definition.seasons.clone().expect("seasons");
        let early = change(&known, open(None, None), now).expect("ended");
        let span = |definition: &Definition, number| {
            let span = seasons(definition).span(number).expect("a season");
            (span.begin.as_micros(), span.end.map(Timestamp::as_micros))
        };
        let begin = now + SECOND;
        assert_eq!(span(&early, 1), (DAY, Some(begin)));
        assert_eq!(span(&early, 2), (begin, Some(begin + 14 * DAY)));
        assert_eq!(seasons(&early).number_at(at(begin - 1)), Some(1));
        assert_eq!(seasons(&early).number_at(at(begin)), Some(2));
        assert_eq!(change(&early, open(Some(2), None), now).as_ref(), Ok(&early));
        let planned = Err(SeasonRefused::EndPlanned { number: 2, begin: at(begin) });
        for again in [open(None, None), open(None, Some(6 * DAY)), forced(Some(3), None)] {
            assert_eq!(change(&early, again, now), planned);
        }
        // Whoever is certain has it end at another time, as long as it does not end in a moment.
        let later = change(&early, forced(None, Some(6 * DAY)), now).expect("it ends later");
        assert_eq!((span(&later, 1), span(&later, 2).0), ((DAY, Some(6 * DAY)), 6 * DAY));
        assert_eq!(change(&later, forced(None, None), now).as_ref(), Ok(&early));
        let in_a_moment = change(&early, forced(None, Some(6 * DAY)), begin - 1);
        assert_eq!(in_a_moment, Err(SeasonRefused::Beginning { number: 2, begin: at(begin) }));
        // A planned end is moved and cancelled, until it has come.
        let cancel = SeasonChange::Cancel { number: 2 };
        assert_eq!(change(&early, cancel, now).as_ref(), Ok(&known));
        let moved = change(&early, SeasonChange::Move { number: 2, at: at(7 * DAY) }, now).expect("moved");
        assert_eq!(span(&moved, 1), (DAY, Some(7 * DAY)));
        assert_eq!(change(&early, cancel, begin), Err(SeasonRefused::Begun(2)));
        // It would have ended by itself.
        let late = change(&known, open(None, Some(15 * DAY)), now);
        assert!(matches!(late, Err(SeasonRefused::TooLate { .. })), "{late:?}");
        assert_eq!(change(&known, open(None, None), 0), Err(SeasonRefused::NotStarted(at(DAY))));
        // Another length holds from the next season on, also if that comes early.
        let shorter = DefinitionPatch {
            seasons: Field::Value(SeasonsPatch::Regular { starts: None, every: Some(7 * DAY) }),
            ..DefinitionPatch::default()
        };
        let shorter = BoardChange::Define(shorter).applied_to(Some(&known), at(now)).expect("shorter");
        let early = change(&shorter, open(None, None), now).expect("ended");
        assert_eq!(span(&early, 2), (begin, Some(begin + 7 * DAY)));
        let natural = change(&early, cancel, now).expect("cancelled");
        assert_eq!(natural, shorter);
    }
}
