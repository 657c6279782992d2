//! What a client or a job asks of a board's definition, and what the definition becomes.
//!
//! Knows: what of a definition may change. Must not know: where boards are decided. The registry decides them
//! without NATS, and the boards' stream with it; both ask here.

use crate::board::{Definition, InvalidDefinition};
use crate::types::Timestamp;
use crate::window::{InvalidSeasons, Seasons};

/// Boards per node; definitions are small, but every board costs each shard a tree.
pub const MAX_BOARDS: usize = 100_000;

/// What is asked of a board's definition.
#[derive(Debug, Clone)]
pub enum BoardChange {
    /// That it is this one, as far as it may change.
    Define(Definition),
    /// That there is one: the default one, unless the board exists.
    Create,
    /// That the manual season of this number begins at this time.
    OpenSeason { number: usize, begin: Timestamp },
}

/// Why a definition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefineRefused {
    #[error(
        "the board exists already, with another definition: {0}. Only keep, grace, entry_ttl, capacity, the \
         every of season and the min and max of keys can change; for more, define another board, or export this \
         one (--rows-only), drop it with all its scores, define it and import it again"
    )]
    Conflict(String),
    #[error("this node holds {MAX_BOARDS} boards, which is its limit; drop boards that are not needed")]
    TooMany,
    #[error(transparent)]
    Invalid(#[from] InvalidDefinition),
    #[error("there is no board of this name")]
    Unknown,
    #[error(
        "the board has no manual seasons; a board has them if it was defined with the window season and \
         \"season\":\"manual\""
    )]
    NoManualSeasons,
    #[error(
        "another request has opened the season s{0} at the same time; GET /v1/boards/{{board}} shows it. To \
         open one more, send the request again"
    )]
    SeasonOpened(usize),
    #[error("the last season begins at {0}, and the next one must begin after it; send a later `at`")]
    SeasonOrder(Timestamp),
    #[error("{0}; define another board for further ones")]
    TooManySeasons(InvalidSeasons),
}

impl DefineRefused {
    /// The refusal of a definition that differs from the existing board's.
    #[must_use]
    pub fn conflict(is: &Definition, asked: &Definition) -> Self {
        Self::Conflict(is.differences(asked).join("; "))
    }
}

impl BoardChange {
    /// What a board's definition becomes.
    ///
    /// # Arguments
    /// - `known`: the present definition. `None`: there is no such board.
    /// - `now`: regular seasons that have begun by then stay as they are.
    ///
    /// # Errors
    /// When the definition cannot become what is asked, or there is none to change.
    pub fn applied_to(
        &self,
        known: Option<&Definition>,
        now: Timestamp,
    ) -> Result<Definition, DefineRefused> {
        match (self, known) {
            (Self::Define(asked), None) => Ok(asked.clone()),
            (Self::Define(asked), Some(known)) => {
                if !known.agrees_with(asked) {
                    return Err(DefineRefused::conflict(known, asked));
                }
                Ok(known.changed_to(asked, now)?)
            }
            (Self::Create, known) => Ok(known.cloned().unwrap_or_default()),
            (Self::OpenSeason { .. }, None) => Err(DefineRefused::Unknown),
            (Self::OpenSeason { number, begin }, Some(known)) => {
                let seasons = with_season(known, *number, *begin)?;
                Ok(Definition { seasons: Some(seasons), ..known.clone() })
            }
        }
    }
}

/// The number that the next manual season of a board has.
///
/// # Errors
/// When the board has no manual seasons.
pub fn next_season(definition: &Definition) -> Result<usize, DefineRefused> {
    match &definition.seasons {
        Some(Seasons::Manual(begins)) => Ok(begins.len() + 1),
        Some(Seasons::Regular(_)) | None => Err(DefineRefused::NoManualSeasons),
    }
}

fn with_season(known: &Definition, number: usize, begin: Timestamp) -> Result<Seasons, DefineRefused> {
    let Some(seasons @ Seasons::Manual(begins)) = &known.seasons else {
        return Err(DefineRefused::NoManualSeasons);
    };
    if begins.len() + 1 != number {
        return Err(DefineRefused::SeasonOpened(number));
    }
    match begins.last() {
        Some(last) if *last >= begin => Err(DefineRefused::SeasonOrder(*last)),
        _ => seasons.with_season(begin).map_err(DefineRefused::TooManySeasons),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    fn manual(begins: &[i64]) -> Definition {
        let seasons = Seasons::Manual(begins.iter().map(|begin| at(*begin)).collect());
        Definition { windows: vec![Window::Season], seasons: Some(seasons), ..Definition::default() }
    }

    #[test]
    fn one_of_two_requests_opens_a_season() {
        let open = |number, begin| BoardChange::OpenSeason { number, begin: at(begin) };
        let known = manual(&[]);
        assert_eq!(next_season(&known), Ok(1));
        let known = open(1, 10).applied_to(Some(&known), at(0)).expect("the first");
        assert_eq!(known, manual(&[10]));
        assert_eq!(open(1, 20).applied_to(Some(&known), at(0)), Err(DefineRefused::SeasonOpened(1)));
        assert_eq!(open(2, 10).applied_to(Some(&known), at(0)), Err(DefineRefused::SeasonOrder(at(10))));
        assert_eq!(open(2, 11).applied_to(Some(&known), at(0)), Ok(manual(&[10, 11])));
        assert_eq!(open(1, 10).applied_to(None, at(0)), Err(DefineRefused::Unknown));
        let plain = Definition::default();
        assert_eq!(open(1, 10).applied_to(Some(&plain), at(0)), Err(DefineRefused::NoManualSeasons));
        assert_eq!(next_season(&plain), Err(DefineRefused::NoManualSeasons));
        let all: Vec<i64> = (0..1_000).collect();
        let refused = open(1_001, 1_000).applied_to(Some(&manual(&all)), at(0));
        assert!(matches!(refused, Err(DefineRefused::TooManySeasons(_))), "{refused:?}");
    }

    #[test]
    fn what_was_opened_or_created_stays_whatever_is_defined_again() {
        let (known, asked) = (manual(&[10, 20]), Definition { keep: 3, ..manual(&[]) });
        let changed = BoardChange::Define(asked).applied_to(Some(&known), at(0));
        assert_eq!(changed, Ok(Definition { keep: 3, ..manual(&[10, 20]) }));
        assert_eq!(BoardChange::Create.applied_to(Some(&known), at(0)), Ok(known));
        assert_eq!(BoardChange::Create.applied_to(None, at(0)), Ok(Definition::default()));
        let refused = BoardChange::Define(manual(&[])).applied_to(Some(&Definition::default()), at(0));
        let told = refused.expect_err("other windows").to_string();
        assert!(
            told.contains("the list of windows is all, not season; season is none, not manual."),
            "{told}"
        );
    }

    #[test]
    fn a_change_that_makes_the_definition_invalid_is_refused() {
        let seasonal = |every, grace_micros| Definition {
            windows: vec![Window::Season],
            seasons: Some(Seasons::regular(at(0), every)),
            grace_micros,
            ..Definition::default()
        };
        // The seasons that were are short, so that the grace may not be long, whatever the next ones are.
        let (minute, day) = (60_000_000, 86_400_000_000);
        let known = seasonal(minute, 0);
        let long = BoardChange::Define(seasonal(day, 10_000 * day));
        let refused = long.applied_to(Some(&known), at(5));
        assert!(matches!(refused, Err(DefineRefused::Invalid(_))), "{refused:?}");
        assert!(BoardChange::Define(seasonal(day, 10_000 * minute)).applied_to(Some(&known), at(5)).is_ok());
    }
}
