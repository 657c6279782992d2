//! A board's definition as JSON, in commands and in records of the boards' stream.

use serde::{Deserialize, Serialize};

use crate::board::{Definition, Key, Order, Policy, Ties};

/// A board's definition as the queue carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionJson {
    keys: Vec<KeyJson>,
    policy: String,
    ties: String,
    utc_offset_minutes: i16,
    keep: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyJson {
    name: String,
    order: String,
    min: i64,
    max: i64,
}

const ORDERS: [(Order, &str); 2] = [(Order::Ascending, "asc"), (Order::Descending, "desc")];
const POLICIES: [(Policy, &str); 3] = [(Policy::Set, "set"), (Policy::Best, "best"), (Policy::Incr, "incr")];
const TIES: [(Ties, &str); 3] = [(Ties::First, "first"), (Ties::Last, "last"), (Ties::Member, "member")];

fn name_of<T: PartialEq>(value: &T, names: &[(T, &'static str)]) -> String {
    let found = names.iter().find(|(known, _)| known == value);
    found.expect("every value has a name").1.to_owned()
}

fn named<T: Copy>(name: &str, names: &[(T, &str)]) -> Option<T> {
    names.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

impl From<&Definition> for DefinitionJson {
    fn from(definition: &Definition) -> Self {
        let key = |key: &Key| KeyJson {
            name: key.name.clone(),
            order: name_of(&key.order, &ORDERS),
            min: key.min,
            max: key.max,
        };
        Self {
            keys: definition.keys.iter().map(key).collect(),
            policy: name_of(&definition.policy, &POLICIES),
            ties: name_of(&definition.ties, &TIES),
            utc_offset_minutes: definition.utc_offset_minutes,
            keep: definition.keep,
        }
    }
}

impl DefinitionJson {
    /// `None` if it is no valid definition.
    pub fn read(self) -> Option<Definition> {
        let key = |key: KeyJson| {
            Some(Key { name: key.name, order: named(&key.order, &ORDERS)?, min: key.min, max: key.max })
        };
        let definition = Definition {
            keys: self.keys.into_iter().map(key).collect::<Option<_>>()?,
            policy: named(&self.policy, &POLICIES)?,
            ties: named(&self.ties, &TIES)?,
            utc_offset_minutes: self.utc_offset_minutes,
            keep: self.keep,
            ..Definition::default()
        };
        definition.validate().ok()?;
        Some(definition)
    }
}
