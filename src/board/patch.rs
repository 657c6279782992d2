//! What a request names of a board's definition: the rest stays as it is.
//!
//! Knows: what each field becomes, of a board that is there and of one that is new. Must not know: which
//! changes are allowed ([`Definition::agrees_with`]), or how a request is written.

use crate::board::definition::{
    Beyond, Definition, InvalidDefinition, Key, KeyType, Kind, Order, Policy, Ties,
};
use crate::types::{Double, Number, Timestamp};
use crate::window::{Seasons, Window};

/// What a request says of a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Field<T> {
    /// Nothing: it keeps its value, or has the default on a new board.
    #[default]
    Absent,
    /// It gets the default.
    Default,
    Value(T),
}

impl<T> Field<T> {
    fn set(self, field: &mut T, default: T) {
        match self {
            Self::Absent => {}
            Self::Default => *field = default,
            Self::Value(value) => *field = value,
        }
    }
}

/// A key, by its name. What it does not name stays as the board's key of this name has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPatch {
    pub name: String,
    pub order: Field<Order>,
    pub key_type: Field<KeyType>,
    pub min: Field<Number>,
    pub max: Field<Number>,
    pub below_min: Field<Beyond>,
    pub above_max: Field<Beyond>,
}

/// When seasons begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeasonsPatch {
    Manual,
    /// `every` in microseconds. What is `None` stays as the board has it.
    Regular {
        starts: Option<Timestamp>,
        every: Option<i64>,
    },
}

/// What a request names of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefinitionPatch {
    pub keys: Field<Vec<KeyPatch>>,
    pub kind: Field<Kind>,
    pub policy: Field<Policy>,
    pub ties: Field<Ties>,
    pub windows: Field<Vec<Window>>,
    pub seasons: Field<SeasonsPatch>,
    pub utc_offset_minutes: Field<i16>,
    pub keep: Field<u32>,
    pub grace_micros: Field<i64>,
    pub entry_ttl_micros: Field<i64>,
    pub capacity: Field<u64>,
    pub movement: Field<bool>,
    pub expires_at: Field<Timestamp>,
    pub expires_after_micros: Field<i64>,
}

impl DefinitionPatch {
    /// The definition that a board is asked to have.
    ///
    /// # Arguments
    /// `known`: the board's definition. `None`: it is new.
    ///
    /// # Errors
    /// When a bound is no number of its key; or regular seasons are begun without saying when, or how long
    /// they are. What else makes a definition invalid, [`Definition::validate`] says.
    pub fn onto(self, known: Option<&Definition>) -> Result<Definition, InvalidDefinition> {
        let default = Definition::default();
        let mut asked = known.cloned().unwrap_or_default();
        let names_policy = matches!(self.policy, Field::Value(_));
        asked.keys = match self.keys {
            Field::Absent => asked.keys,
            Field::Default => default.keys,
            Field::Value(keys) => {
                keys.into_iter().map(|key| key.onto(&asked.keys)).collect::<Result<_, _>>()?
            }
        };
        self.kind.set(&mut asked.kind, default.kind);
        self.policy.set(&mut asked.policy, default.policy);
        if asked.is_top_k() && !names_policy {
            // It has no other: there is nothing to choose.
            asked.policy = Policy::Incr;
        }
        self.ties.set(&mut asked.ties, default.ties);
        match self.windows {
            Field::Value(windows) => {
                // Those that are there keep their order.
                let (there, new): (Vec<Window>, Vec<Window>) = match known {
                    Some(known) => windows.iter().partition(|window| known.windows.contains(window)),
                    None => (Vec::new(), windows),
                };
                asked.windows.retain(|window| there.contains(window) && known.is_some());
                asked.windows.extend(new);
            }
            windows => windows.set(&mut asked.windows, default.windows),
        }
        asked.seasons = match self.seasons {
            Field::Absent => asked.seasons,
            Field::Default => None,
            Field::Value(seasons) => Some(seasons.onto(asked.seasons.as_ref())?),
        };
        self.utc_offset_minutes.set(&mut asked.utc_offset_minutes, default.utc_offset_minutes);
        self.keep.set(&mut asked.keep, default.keep);
        self.grace_micros.set(&mut asked.grace_micros, default.grace_micros);
        optional(self.entry_ttl_micros).set(&mut asked.entry_ttl_micros, default.entry_ttl_micros);
        optional(self.capacity).set(&mut asked.capacity, default.capacity);
        self.movement.set(&mut asked.movement, default.movement);
        optional(self.expires_at).set(&mut asked.expires_at, default.expires_at);
        optional(self.expires_after_micros)
            .set(&mut asked.expires_after_micros, default.expires_after_micros);
        Ok(asked)
    }
}

fn optional<T>(field: Field<T>) -> Field<Option<T>> {
    match field {
        Field::Absent => Field::Absent,
        Field::Default => Field::Default,
        Field::Value(value) => Field::Value(Some(value)),
    }
}

impl KeyPatch {
    fn onto(self, known: &[Key]) -> Result<Key, InvalidDefinition> {
        let default = Key { name: self.name, ..Key::score() };
        let mut key =
            known.iter().find(|key| key.name == default.name).cloned().unwrap_or_else(|| default.clone());
        self.order.set(&mut key.order, default.order);
        self.key_type.set(&mut key.key_type, default.key_type);
        // The bound that excludes nothing is none.
        let bound = |bound: Field<Number>, none: Double, key: &Key| match bound {
            Field::Absent => Ok(Field::Absent),
            Field::Default => Ok(Field::Default),
            Field::Value(number) if key.key_type == KeyType::Float && number.double() == none => {
                Ok(Field::Default)
            }
            Field::Value(number) => match key.ordered(number) {
                Ok(ordered) => Ok(Field::Value(ordered)),
                Err(_) => Err(InvalidDefinition::KeyBound(number)),
            },
        };
        bound(self.min, Double::NEGATIVE_INFINITY, &key)?.set(&mut key.min, default.min);
        bound(self.max, Double::INFINITY, &key)?.set(&mut key.max, default.max);
        self.below_min.set(&mut key.below_min, default.below_min);
        self.above_max.set(&mut key.above_max, default.above_max);
        Ok(key)
    }
}

impl SeasonsPatch {
    fn onto(self, known: Option<&Seasons>) -> Result<Seasons, InvalidDefinition> {
        match self {
            Self::Manual => Ok(match known {
                Some(known @ Seasons::Manual(_)) => known.clone(),
                _ => Seasons::Manual(Vec::new()),
            }),
            Self::Regular { starts, every } => {
                let series = match known {
                    Some(Seasons::Regular(series)) => series.as_slice(),
                    _ => &[],
                };
                let begin = starts.or_else(|| series.first().map(|first| first.begin));
                let every = every.or_else(|| series.last().map(|last| last.every));
                match (begin, every) {
                    (Some(begin), Some(every)) => Ok(Seasons::regular(begin, every)),
                    _ => Err(InvalidDefinition::SeasonParts),
                }
            }
        }
    }
}

impl From<Definition> for DefinitionPatch {
    /// A request that names all of it.
    fn from(definition: Definition) -> Self {
        let Definition { keys, kind, policy, ties, windows, seasons, utc_offset_minutes, .. } = definition;
        let Definition { keep, grace_micros, entry_ttl_micros, capacity, movement, .. } = definition;
        let Definition { expires_at, expires_after_micros, .. } = definition;
        let key = |key: Key| KeyPatch {
            order: Field::Value(key.order),
            key_type: Field::Value(key.key_type),
            min: Field::Value(key.number(key.min)),
            max: Field::Value(key.number(key.max)),
            below_min: Field::Value(key.below_min),
            above_max: Field::Value(key.above_max),
            name: key.name,
        };
        let seasons = match seasons {
            None => Field::Default,
            Some(Seasons::Manual(_)) => Field::Value(SeasonsPatch::Manual),
            Some(Seasons::Regular(series)) => Field::Value(SeasonsPatch::Regular {
                starts: series.first().map(|first| first.begin),
                every: series.last().map(|last| last.every),
            }),
        };
        Self {
            keys: Field::Value(keys.into_iter().map(key).collect()),
            kind: Field::Value(kind),
            policy: Field::Value(policy),
            ties: Field::Value(ties),
            windows: Field::Value(windows),
            seasons,
            utc_offset_minutes: Field::Value(utc_offset_minutes),
            keep: Field::Value(keep),
            grace_micros: Field::Value(grace_micros),
            entry_ttl_micros: entry_ttl_micros.map_or(Field::Default, Field::Value),
            capacity: capacity.map_or(Field::Default, Field::Value),
            movement: Field::Value(movement),
            expires_at: expires_at.map_or(Field::Default, Field::Value),
            expires_after_micros: expires_after_micros.map_or(Field::Default, Field::Value),
        }
    }
}
