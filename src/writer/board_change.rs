//! What a client or a job asks of a board's definition, and what the definition becomes.
//!
//! Knows: what of a definition may change. Must not know: where boards are decided. The registry decides them
//! without NATS, and the boards' stream with it; both ask here.

use std::sync::Arc;

use crate::board::{Definition, DefinitionPatch, InvalidDefinition, ReadOnly};
use crate::types::Timestamp;
use crate::writer::season_change::{SeasonChange, SeasonRefused};

/// Boards per node; definitions are small, but every board costs each shard a tree.
pub const MAX_BOARDS: usize = 100_000;

/// What is asked of a board's definition.
#[derive(Debug, Clone)]
pub enum BoardChange {
    /// That it has these fields, as far as they may change.
    Define(DefinitionPatch),
    /// That there is one: the default one, unless the board exists.
    Create,
    /// That its seasons change.
    Season(SeasonChange),
    /// That it is read-only for a reason, or not any more.
    ReadOnly(Option<Arc<str>>),
    /// The same of the service, in whose place there is no board.
    ServiceReadOnly(Option<Arc<str>>),
}

/// Why a definition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefineRefused {
    #[error(
        "the board exists already, with another definition: {0}. Only policy, keep, grace, entry_ttl, capacity, \
         the every of season and the bounds of keys with below_min and above_max can change, and windows be \
         added; for more, define another board, or export this one (--rows-only), drop it with all its \
         scores, define it and import it again"
    )]
    Conflict(String),
    #[error("this node holds {MAX_BOARDS} boards, which is its limit; drop boards that are not needed")]
    TooMany,
    #[error(transparent)]
    Invalid(#[from] InvalidDefinition),
    #[error("there is no board of this name")]
    Unknown,
    #[error(transparent)]
    Season(#[from] SeasonRefused),
    #[error("the board is read-only: {}", .0.reason)]
    ReadOnly(Arc<ReadOnly>),
}

impl DefineRefused {
    /// The refusal of a definition that differs from the existing board's.
    pub fn conflict(is: &Definition, asked: &Definition) -> Self {
        Self::Conflict(is.differences(asked).join("; "))
    }
}

impl BoardChange {
    /// Whether it is only of a board that there is.
    pub fn needs_board(&self) -> bool {
        matches!(self, Self::Season(_) | Self::ReadOnly(_))
    }

    /// What a board's definition becomes. One that is read-only stays as it is; what would change nothing is
    /// not refused.
    ///
    /// # Arguments
    /// - `known`: the present definition. `None`: there is no such board.
    /// - `now`: seasons that have begun by then stay as they are.
    ///
    /// # Errors
    /// When the definition cannot become what is asked, or there is none to change.
    pub fn applied_to(
        &self,
        known: Option<&Definition>,
        now: Timestamp,
    ) -> Result<Definition, DefineRefused> {
        let changed = self.asked_of(known, now);
        match (self, known.and_then(|known| known.read_only.as_ref())) {
            (Self::ReadOnly(_) | Self::ServiceReadOnly(_), _) | (_, None) => changed,
            (_, Some(_)) if changed.as_ref().ok() == known => changed,
            (_, Some(read_only)) => Err(DefineRefused::ReadOnly(Arc::clone(read_only))),
        }
    }

    fn asked_of(&self, known: Option<&Definition>, now: Timestamp) -> Result<Definition, DefineRefused> {
        match (self, known) {
            (Self::Define(patch), None) => {
                let definition = patch.clone().onto(None)?;
                definition.validate()?;
                Ok(definition)
            }
            (Self::Define(patch), Some(known)) => {
                let asked = patch.clone().onto(Some(known))?;
                if !known.agrees_with(&asked)
                    || !known.may_start_as(&asked, now)
                    || !known.windows_missing_in(&asked).is_empty()
                {
                    return Err(DefineRefused::conflict(known, &asked));
                }
                Ok(known.changed_to(&asked, now)?)
            }
            (Self::Create, known) => Ok(known.cloned().unwrap_or_default()),
            (Self::Season(_) | Self::ReadOnly(_), None) => Err(DefineRefused::Unknown),
            (Self::ReadOnly(reason), Some(known)) => Ok(known.read_only_for(reason.as_deref(), now)),
            (Self::ServiceReadOnly(reason), known) => {
                Ok(known.cloned().unwrap_or_default().read_only_for(reason.as_deref(), now))
            }
            (Self::Season(change), Some(known)) => {
                let seasons = known.seasons.as_ref().ok_or(SeasonRefused::NoSeasons)?;
                let changed = Definition { seasons: Some(change.applied_to(seasons, now)?), ..known.clone() };
                changed.validate()?;
                Ok(changed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Field, Policy};
    use crate::window::{Seasons, Window};

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    fn manual(begins: &[i64]) -> Definition {
        let seasons = Seasons::Manual(begins.iter().map(|begin| at(*begin)).collect());
        Definition { windows: vec![Window::Season], seasons: Some(seasons), ..Definition::default() }
    }

    #[test]
    fn what_was_opened_or_created_stays_whatever_is_defined_again() {
        let (known, asked) = (manual(&[10, 20]), Definition { keep: 3, ..manual(&[]) });
        let changed = BoardChange::Define(asked.into()).applied_to(Some(&known), at(0));
        assert_eq!(changed, Ok(Definition { keep: 3, ..manual(&[10, 20]) }));
        assert_eq!(BoardChange::Create.applied_to(Some(&known), at(0)), Ok(known));
        assert_eq!(BoardChange::Create.applied_to(None, at(0)), Ok(Definition::default()));
        let refused = BoardChange::Define(manual(&[]).into()).applied_to(Some(&Definition::default()), at(0));
        let told = refused.expect_err("other windows").to_string();
        assert!(told.contains("the list of windows is all, not season."), "{told}");
    }

    #[test]
    fn what_is_read_only_stays_as_it_is_until_it_is_not() {
        let reason = |text: &str| Some(Arc::from(text));
        let frozen = BoardChange::ReadOnly(reason("the end")).applied_to(Some(&manual(&[10])), at(20));
        let frozen = frozen.expect("it is there");
        let next = BoardChange::Season(SeasonChange::Open { number: None, at: None, force: true });
        for change in [BoardChange::Define(Definition { keep: 3, ..manual(&[]) }.into()), next] {
            let refused = change.applied_to(Some(&frozen), at(30)).expect_err("it would change");
            assert_eq!(refused.to_string(), "the board is read-only: the end");
        }
        for change in [BoardChange::Define(manual(&[]).into()), BoardChange::Create] {
            assert_eq!(change.applied_to(Some(&frozen), at(30)), Ok(frozen.clone()));
        }
        let freed = BoardChange::ReadOnly(None).applied_to(Some(&frozen), at(40));
        assert_eq!(freed, Ok(manual(&[10])));
        assert_eq!(BoardChange::ReadOnly(None).applied_to(None, at(0)), Err(DefineRefused::Unknown));
        let service = BoardChange::ServiceReadOnly(reason("a move")).applied_to(None, at(0));
        assert!(service.is_ok_and(|service| service.read_only.is_some()));
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
        let long = BoardChange::Define(seasonal(day, 10_000 * day).into());
        let refused = long.applied_to(Some(&known), at(5));
        assert!(matches!(refused, Err(DefineRefused::Invalid(_))), "{refused:?}");
        let short = BoardChange::Define(seasonal(day, 10_000 * minute).into());
        assert!(short.applied_to(Some(&known), at(5)).is_ok());
    }

    #[test]
    fn a_board_that_its_first_job_made_can_become_what_was_meant() {
        let asked = Definition {
            policy: Policy::Best,
            windows: vec![Window::Day, Window::Season, Window::All],
            seasons: Some(Seasons::Manual(Vec::new())),
            ..Definition::default()
        };
        let made = Definition::default();
        let changed = BoardChange::Define(asked.clone().into()).applied_to(Some(&made), at(0));
        let windows = vec![Window::All, Window::Day, Window::Season];
        assert_eq!(changed, Ok(Definition { windows, ..asked.clone() }));
        // A window that is there stays.
        let patch =
            DefinitionPatch { windows: Field::Value(vec![Window::All]), ..DefinitionPatch::default() };
        let refused = BoardChange::Define(patch).applied_to(Some(&asked), at(0));
        assert!(matches!(refused, Err(DefineRefused::Conflict(_))), "{refused:?}");
    }
}
