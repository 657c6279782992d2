//! A board's definition as JSON, in commands and in records of the boards' stream.
//!
//! A plain board has the fields that every version of ranktree knows. What it has beyond them is written only
//! where it differs from the default, so that older nodes read plain boards. What carries a definition that
//! they cannot read says so by its format ([`format_of`]).

use serde::{Deserialize, Serialize};

use std::sync::Arc;

use crate::board::{
    Beyond, DEFAULT_GRACE_MICROS, Definition, Key, KeyType, Kind, Order, Policy, ReadOnly, Ties,
};
use crate::types::Timestamp;
use crate::window::{Seasons, Series, Window};

/// A board's definition as the queue carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionJson {
    keys: Vec<KeyJson>,
    policy: String,
    ties: String,
    utc_offset_minutes: i16,
    keep: u32,
    /// Absent: only `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    windows: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    season: Option<SeasonsJson>,
    /// Absent: five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grace_micros: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry_ttl_micros: Option<i64>,
    /// Microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    final_until: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    movement: bool,
    /// Absent: `ranking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_only: Option<ReadOnlyJson>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadOnlyJson {
    reason: String,
    /// Microseconds since 1970.
    since: i64,
}

/// Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SeasonsJson {
    Regular(Vec<SeriesJson>),
    /// When each season begins.
    Manual(Vec<i64>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesJson {
    /// The number of the first season.
    first: u32,
    begin: i64,
    every: i64,
}

/// The formats of definitions, and so of the commands and records that carry them. Of format 2 are those of
/// boards that are not plain, which versions of ranktree before windows cannot read. Of format 3 are those of
/// what is read-only, by which a version that did not know it would take jobs that others refuse.
pub const DEFINITION_FORMAT_MAX: u32 = 3;

/// The format of a definition: the first version of the format that has all of it.
pub fn format_of(definition: &Definition) -> u32 {
    let Definition { seasons, grace_micros, entry_ttl_micros, final_until, capacity, .. } = definition;
    if definition.read_only.is_some() {
        return DEFINITION_FORMAT_MAX;
    }
    let is_plain = definition.has_only_all()
        && seasons.is_none()
        && *grace_micros == DEFAULT_GRACE_MICROS
        && entry_ttl_micros.is_none()
        && final_until.is_none()
        && capacity.is_none();
    if is_plain { 1 } else { 2 }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyJson {
    name: String,
    order: String,
    /// Absent: integer.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    key_type: Option<String>,
    /// Bounds of doubles are the integers of the same order.
    min: i64,
    max: i64,
    /// Absent: it is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    clamps_below_min: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    clamps_above_max: bool,
}

const ORDERS: [(Order, &str); 2] = [(Order::Ascending, "asc"), (Order::Descending, "desc")];
const POLICIES: [(Policy, &str); 3] = [(Policy::Set, "set"), (Policy::Best, "best"), (Policy::Incr, "incr")];

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
            key_type: (key.key_type == KeyType::Float).then(|| key.key_type.name().to_owned()),
            min: key.min,
            max: key.max,
            clamps_below_min: key.below_min == Beyond::Clamp,
            clamps_above_max: key.above_max == Beyond::Clamp,
        };
        Self {
            keys: definition.keys.iter().map(key).collect(),
            policy: name_of(&definition.policy, &POLICIES),
            ties: definition.ties.name().to_owned(),
            utc_offset_minutes: definition.utc_offset_minutes,
            keep: definition.keep,
            windows: (!definition.has_only_all())
                .then(|| definition.windows.iter().map(|window| window.name().to_owned()).collect()),
            season: definition.seasons.as_ref().map(SeasonsJson::from),
            grace_micros: Some(definition.grace_micros).filter(|grace| *grace != DEFAULT_GRACE_MICROS),
            entry_ttl_micros: definition.entry_ttl_micros,
            final_until: definition.final_until.map(Timestamp::as_micros),
            capacity: definition.capacity,
            movement: definition.movement,
            kind: definition.is_top_k().then(|| definition.kind.name().to_owned()),
            read_only: definition.read_only.as_ref().map(|read_only| ReadOnlyJson {
                reason: read_only.reason.clone(),
                since: read_only.since.as_micros(),
            }),
        }
    }
}

impl From<&Seasons> for SeasonsJson {
    fn from(seasons: &Seasons) -> Self {
        let series = |series: &Series| SeriesJson {
            first: series.first,
            begin: series.begin.as_micros(),
            every: series.every,
        };
        match seasons {
            Seasons::Regular(all) => Self::Regular(all.iter().map(series).collect()),
            Seasons::Manual(begins) => Self::Manual(begins.iter().map(|begin| begin.as_micros()).collect()),
        }
    }
}

impl SeasonsJson {
    fn read(self) -> Option<Seasons> {
        let series = |SeriesJson { first, begin, every }| {
            Some(Series { first, begin: Timestamp::from_micros(begin).ok()?, every })
        };
        let begin = |micros| Timestamp::from_micros(micros).ok();
        Some(match self {
            Self::Regular(all) => Seasons::Regular(all.into_iter().map(series).collect::<Option<_>>()?),
            Self::Manual(begins) => Seasons::Manual(begins.into_iter().map(begin).collect::<Option<_>>()?),
        })
    }
}

impl DefinitionJson {
    /// `None` if it is no valid definition.
    pub fn read(self) -> Option<Definition> {
        let key = |key: KeyJson| {
            let beyond = |clamps| if clamps { Beyond::Clamp } else { Beyond::Reject };
            Some(Key {
                name: key.name,
                order: named(&key.order, &ORDERS)?,
                key_type: match key.key_type {
                    Some(name) => [KeyType::Float].into_iter().find(|key_type| key_type.name() == name)?,
                    None => KeyType::Integer,
                },
                min: key.min,
                max: key.max,
                below_min: beyond(key.clamps_below_min),
                above_max: beyond(key.clamps_above_max),
            })
        };
        let windows = match self.windows {
            Some(windows) => windows.iter().map(|name| Window::of_name(name)).collect::<Option<_>>()?,
            None => vec![Window::All],
        };
        let seasons = match self.season {
            Some(seasons) => Some(seasons.read()?),
            None => None,
        };
        let final_until = match self.final_until {
            Some(micros) => Some(Timestamp::from_micros(micros).ok()?),
            None => None,
        };
        let kind = match self.kind {
            Some(name) => [Kind::TopK].into_iter().find(|kind| kind.name() == name)?,
            None => Kind::Ranking,
        };
        let read_only = match self.read_only {
            Some(ReadOnlyJson { reason, since }) => {
                Some(Arc::new(ReadOnly { reason, since: Timestamp::from_micros(since).ok()? }))
            }
            None => None,
        };
        let definition = Definition {
            kind,
            read_only,
            keys: self.keys.into_iter().map(key).collect::<Option<_>>()?,
            policy: named(&self.policy, &POLICIES)?,
            ties: Ties::ALL.into_iter().find(|ties| ties.name() == self.ties)?,
            utc_offset_minutes: self.utc_offset_minutes,
            keep: self.keep,
            windows,
            seasons,
            grace_micros: self.grace_micros.unwrap_or(DEFAULT_GRACE_MICROS),
            entry_ttl_micros: self.entry_ttl_micros,
            final_until,
            capacity: self.capacity,
            movement: self.movement,
        };
        definition.validate().ok()?;
        Some(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    fn check(definition: &Definition, format: u32, json: &str) {
        definition.validate().expect("a good definition");
        let written = serde_json::to_string(&DefinitionJson::from(definition)).expect("it has no maps");
        let plain = r#"{"keys":[{"name":"score","order":"desc","min":-9223372036854775808,"max":9223372036854775807}],"policy":"set","ties":"first","utc_offset_minutes":0,"keep":12"#;
        assert_eq!(written, format!("{plain}{json}}}"));
        assert_eq!(format_of(definition), format);
        let read: DefinitionJson = serde_json::from_str(&written).expect("its own JSON");
        assert_eq!(read.read().as_ref(), Some(definition));
    }

    #[test]
    fn only_what_differs_from_the_default_is_written() {
        let plain = Definition::default();
        check(&plain, 1, "");
        check(&Definition { grace_micros: 0, ..plain.clone() }, 2, r#","grace_micros":0"#);
        let ttl = Some(86_400_000_000);
        check(
            &Definition { entry_ttl_micros: ttl, ..plain.clone() },
            2,
            r#","entry_ttl_micros":86400000000"#,
        );
        check(&Definition { capacity: Some(100), ..plain.clone() }, 2, r#","capacity":100"#);
        let read_only = ReadOnly { reason: "the move".to_owned(), since: at(7) };
        check(
            &Definition { read_only: Some(Arc::new(read_only)), ..plain.clone() },
            3,
            r#","read_only":{"reason":"the move","since":7}"#,
        );
        let windows = vec![Window::Day, Window::All];
        check(
            &Definition { windows: windows.clone(), final_until: Some(at(7)), ..plain.clone() },
            2,
            r#","windows":["day","all"],"final_until":7"#,
        );
        check(&Definition { windows: windows.clone(), ..plain.clone() }, 2, r#","windows":["day","all"]"#);
        check(
            &Definition { windows, movement: true, ..plain.clone() },
            2,
            r#","windows":["day","all"],"movement":true"#,
        );
        let counting =
            Definition { kind: Kind::TopK, policy: Policy::Incr, capacity: Some(9), ..plain.clone() };
        let written = serde_json::to_string(&DefinitionJson::from(&counting)).expect("it has no maps");
        assert!(written.ends_with(r#""keep":12,"capacity":9,"kind":"top_k"}"#), "{written}");
        let read: DefinitionJson = serde_json::from_str(&written).expect("its own JSON");
        assert_eq!((format_of(&counting), read.read()), (2, Some(counting)));
        let seasonal =
            |seasons| Definition { windows: vec![Window::Season], seasons: Some(seasons), ..plain.clone() };
        check(
            &seasonal(Seasons::Manual(vec![at(5), at(6)])),
            2,
            r#","windows":["season"],"season":{"manual":[5,6]}"#,
        );
        let regular = Seasons::regular(at(7), 120_000_000).with_length(60_000_000, at(8));
        check(
            &seasonal(regular.expect("a good length")),
            2,
            r#","windows":["season"],"season":{"regular":[{"first":1,"begin":7,"every":120000000},{"first":2,"begin":120000007,"every":60000000}]}"#,
        );
    }

    #[test]
    fn a_definition_with_anything_unknown_is_none() {
        let plain = r#""keys":[{"name":"a","order":"asc","min":0,"max":1}],"policy":"set","ties":"first","utc_offset_minutes":0,"keep":12"#;
        let reads = |more: &str| {
            let read = serde_json::from_str::<DefinitionJson>(&format!("{{{plain}{more}}}"));
            read.ok().and_then(DefinitionJson::read).is_some()
        };
        assert!(reads("") && reads(r#","windows":["day"]"#));
        for more in [
            r#","windows":["year"]"#,
            r#","windows":[]"#,
            r#","windows":["season"]"#,
            r#","windows":["season"],"season":{"manual":[-1]}"#,
            r#","windows":["season"],"season":{"manual":[5,5]}"#,
            r#","windows":["season"],"season":{"regular":[]}"#,
            r#","windows":["season"],"season":{"lunar":[]}"#,
            r#","windows":["season"],"season":{"manual":[],"regular":[]}"#,
            r#","grace_micros":-1"#,
            r#","capacity":0"#,
            r#","final_until":-1"#,
            r#","read_only":{"reason":"","since":1}"#,
            r#","read_only":{"reason":"a"}"#,
            r#","movement":true"#,
            r#","windows":["all","day"],"movement":1"#,
            r#","later":1"#,
        ] {
            assert!(!reads(more), "{more}");
        }
    }
}
