//! A definition in words, for clients that sent what does not fit it.

use crate::board::definition::{Definition, Key};
use crate::board::scores::ScoreRefused;
use crate::types::{Number, Score, quoted};
use crate::window::Seasons;

impl Definition {
    /// Why a score that [`Definition::typed`] refuses is none of this board, for the client that
    /// sent it in JSON.
    pub fn refused(&self, refused: ScoreRefused, found: &Score) -> String {
        match refused {
            ScoreRefused::KeyCount => self.not_a_score(found),
            other => format!("not a score: {other}"),
        }
    }

    /// The same in a query.
    pub fn refused_in_query(&self, refused: ScoreRefused, found: &Score) -> String {
        match refused {
            ScoreRefused::KeyCount => self.not_a_score_in_query(found),
            other => format!("not a score: {other}"),
        }
    }

    /// What a score of this board looks like in JSON, for a client that sent one with another number of keys.
    pub(super) fn not_a_score(&self, found: &Score) -> String {
        let keys = self.score_example();
        let form = if keys.len() == 1 { keys.concat() } else { format!("[{}]", keys.join(", ")) };
        format!("{}: send {form}, not {found}{}", self.keys_told(), self.default_told())
    }

    pub(super) fn not_a_score_in_query(&self, found: &Score) -> String {
        let form = |keys: Vec<String>| format!("score={}", keys.join(","));
        let found = form(found.numbers().map(|number| number.to_string()).collect());
        let example = form(self.score_example());
        format!("{}: send {example}, not {found}{}", self.keys_told(), self.default_told())
    }

    fn keys_told(&self) -> String {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name.as_str()).collect();
        let (count, plural) = (names.len(), if names.len() == 1 { "" } else { "s" });
        format!("a score of this board has {count} key{plural} ({})", names.join(", "))
    }

    /// A board of the default definition may have it because nobody defined it in time.
    fn default_told(&self) -> &'static str {
        if *self == Self::default() {
            "; this is the default definition, which a board has if its first job created it. For several \
             keys, define the board with PUT /v1/boards/{board} before its first job; one that exists has to \
             be dropped before, with all its scores: export them first"
        } else {
            ""
        }
    }

    /// A value for each key.
    fn score_example(&self) -> Vec<String> {
        // 1200 points in a minute and a half, or what of them the bounds allow.
        let examples = [1_200, 90_000].into_iter().chain(std::iter::repeat(0)).map(Number::Integer);
        let keys = self.keys.iter().zip(examples);
        let within = |(key, example): (&Key, Number)| {
            let ordered = key.ordered(example).unwrap_or_default();
            key.number(ordered.clamp(key.min, key.max)).to_string()
        };
        keys.map(within).collect()
    }

    /// In what `asked` differs from this, of all that can never change: how it is, and how it would be.
    pub fn differences(&self, asked: &Self) -> Vec<String> {
        let mut told = Vec::new();
        let mut differ = |name: &str, is: String, asked: String| {
            if is != asked {
                told.push(format!("{name} is {is}, not {asked}"));
            }
        };
        if self.keys.len() == asked.keys.len() {
            for (number, (key, asked)) in (1..).zip(self.keys.iter().zip(&asked.keys)) {
                differ(&format!("the name of key {number}"), quoted(&key.name), quoted(&asked.name));
                let order = format!("the order of key {}", key.name);
                differ(&order, key.order.name().to_owned(), asked.order.name().to_owned());
                let type_of = format!("the type of key {}", key.name);
                differ(&type_of, key.key_type.name().to_owned(), asked.key_type.name().to_owned());
            }
        } else {
            let names = |keys: &[Key]| {
                format!("[{}]", keys.iter().map(|key| quoted(&key.name)).collect::<Vec<_>>().join(", "))
            };
            differ("the list of keys", names(&self.keys), names(&asked.keys));
        }
        differ("kind", self.kind.name().to_owned(), asked.kind.name().to_owned());
        if self.is_top_k() && asked.is_top_k() {
            let told = |definition: &Self| definition.capacity.unwrap_or_default().to_string();
            differ("capacity of top_k", told(self), told(asked));
        }
        differ("ties", self.ties.name().to_owned(), asked.ties.name().to_owned());
        let windows = |definition: &Self| {
            definition.windows.iter().map(|window| window.name()).collect::<Vec<_>>().join(", ")
        };
        if !self.windows_missing_in(asked).is_empty() {
            differ("the list of windows", windows(self), windows(asked));
        }
        if self.seasons.is_some() {
            differ("season", seasons_told(self), seasons_told(asked));
        }
        differ("movement", self.movement.to_string(), asked.movement.to_string());
        differ("utc_offset", offset(self.utc_offset_minutes), offset(asked.utc_offset_minutes));
        told
    }
}

/// When a board's seasons start, in words.
fn seasons_told(definition: &Definition) -> String {
    match &definition.seasons {
        None => "none".to_owned(),
        Some(Seasons::Manual(_)) => "manual".to_owned(),
        Some(Seasons::Regular(series)) => {
            series.first().map_or_else(String::new, |first| format!("from {} on", first.begin))
        }
    }
}

/// Minutes east of UTC, as definitions have them.
pub fn offset(minutes: i16) -> String {
    let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}
