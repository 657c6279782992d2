//! The configuration file: a flat TOML table, read into words as a flag would have them, each with its line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::config::ConfigError;
use crate::regular_file::read_text;

/// The least similarity at which a known key is suggested for an unknown one.
const SIMILARITY_MIN: f64 = 0.7;

#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    pub values: BTreeMap<String, Value>,
}

/// What the file says of one setting.
#[derive(Debug)]
pub struct Value {
    /// Counted from 1.
    pub line: usize,
    pub words: FileValue,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FileValue {
    One(String),
    Several(Vec<String>),
}

impl File {
    /// # Errors
    /// When it cannot be read, or is not a flat table.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text =
            read_text(path).map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
        let table = DeTable::parse(&text).map_err(|error| malformed(path, &text, &error))?;
        let mut values = BTreeMap::new();
        for (key, value) in table.get_ref() {
            let line = 1 + text.bytes().take(key.span().start).filter(|byte| *byte == b'\n').count();
            let key = key.get_ref().to_string();
            let words = words(value.get_ref()).map_err(|problem| ConfigError::Value {
                path: path.to_owned(),
                line,
                key: key.clone(),
                problem,
            })?;
            values.insert(key, Value { line, words });
        }
        Ok(Self { path: path.to_owned(), values })
    }

    /// # Arguments
    /// `known`: the keys, each with its variable.
    ///
    /// # Errors
    /// When the file has a key that is none of these; the error names the nearest one.
    pub fn check_keys(&self, known: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        let unknown = self.values.iter().filter(|(key, _)| !known.contains_key(*key));
        let Some((key, value)) = unknown.min_by_key(|(_, value)| value.line) else { return Ok(()) };
        let likeness = |known: &&String| strsim::jaro_winkler(known, &key.replace('-', "_").to_lowercase());
        // Some variables have a word more than their keys.
        let variable = format!("RANKTREE_{}", key.replace('-', "_").to_uppercase());
        let of_variable = known.iter().find(|(_, known)| **known == variable).map(|(key, _)| key);
        let nearest = known.keys().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let advice = match nearest {
            _ if of_variable.is_some() => {
                format!("; did you mean {}?", of_variable.map(String::as_str).unwrap_or_default())
            }
            Some(nearest) if likeness(&nearest) >= SIMILARITY_MIN => format!("; did you mean {nearest}?"),
            _ => "; `ranktree config print` lists all settings".to_owned(),
        };
        Err(ConfigError::UnknownKey { path: self.path.clone(), line: value.line, key: key.clone(), advice })
    }

    pub fn wrong_value(&self, key: &str, problem: String) -> ConfigError {
        let line = self.values.get(key).map_or(1, |value| value.line);
        ConfigError::Value { path: self.path.clone(), line, key: key.to_owned(), problem }
    }
}

/// Describes a syntax error by its place and kind. The parser's own error would show the line, which may hold
/// a secret.
fn malformed(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(text.len(), |span| span.start);
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    ConfigError::Malformed { path: path.to_owned(), line, column, problem: error.message().to_owned() }
}

fn words(value: &DeValue<'_>) -> Result<FileValue, String> {
    match value {
        DeValue::Array(values) => {
            let word = |value: &toml::Spanned<DeValue<'_>>| word(value.get_ref());
            values.iter().map(word).collect::<Result<_, _>>().map(FileValue::Several)
        }
        value => word(value).map(FileValue::One),
    }
}

fn word(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|_| format!("{number} is too large")),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(yes) => Ok(yes.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            Err("a string, a number, true or false is expected; sections are not supported".to_owned())
        }
    }
}
