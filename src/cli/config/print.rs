//! Settings as text: as a configuration file, and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::config::{Secrecy, Setting, SettingOrigin, Settings};

const MASKED: &str = "***";

pub fn toml(settings: &Settings) -> String {
    let mut out = String::new();
    let width = settings.all.iter().map(|setting| line(setting).chars().count()).max().unwrap_or(0);
    for setting in &settings.all {
        // Padded, so that where values come from reads as a column.
        writeln!(out, "{:width$}  # {}", line(setting), origin(&setting.origin))
            .expect("writing to a String does not fail");
    }
    out
}

pub fn json(settings: &Settings) -> String {
    let one = |setting: &Setting| {
        let (value, _) = masked(setting);
        let (kind, from) = match &setting.origin {
            SettingOrigin::Flag(flag) => ("flag", json!(flag)),
            SettingOrigin::Environment(variable) => ("environment", json!(variable)),
            SettingOrigin::File { path, line } => ("file", json!(format!("{}:{line}", path.display()))),
            SettingOrigin::Default => ("default", Value::Null),
        };
        json!({
            "key": setting.key, "value": value_json(&value, setting.several), "secret": setting.secret.is_some(),
            "origin": kind, "from": from, "default": value_json(&setting.defaults, setting.several),
        })
    };
    let all: Vec<_> = settings.all.iter().map(one).collect();
    format!("{:#}\n", Value::from(all))
}

/// `key = value`, commented out where it would not do to be read back.
fn line(setting: &Setting) -> String {
    let (values, hidden) = masked(setting);
    match value_toml(&values, setting.several) {
        Some(value) if !hidden => format!("{} = {value}", setting.key),
        Some(value) => format!("# {} = {value}", setting.key),
        None => format!("# {} =", setting.key),
    }
}

fn origin(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Flag(flag) => format!("flag {flag}"),
        SettingOrigin::Environment(variable) => format!("environment {variable}"),
        SettingOrigin::File { path, line } => format!("file {}, line {line}", path.display()),
        SettingOrigin::Default => "default".to_owned(),
    }
}

/// A setting's values, and whether something of them is left out.
fn masked(setting: &Setting) -> (Vec<String>, bool) {
    let Some(secrecy) = setting.secret else {
        return (setting.values.clone(), false);
    };
    let values: Vec<_> = setting.values.iter().map(|value| mask(secrecy, value)).collect();
    let hidden = values != setting.values;
    (values, hidden)
}

fn mask(secrecy: Secrecy, secret: &str) -> String {
    let is_urls = secret.split(',').all(|url| url.contains("://"));
    if secrecy == Secrecy::Whole || !is_urls {
        return MASKED.to_owned();
    }
    let mask = |url: &str| match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{MASKED}@{host}"),
        _ => url.to_owned(),
    };
    secret.split(',').map(mask).collect::<Vec<_>>().join(",")
}

/// As a file would have it; `None` for no value.
pub fn value_toml(values: &[String], several: bool) -> Option<String> {
    if several {
        let words: Vec<_> = values.iter().map(|value| word_toml(value)).collect();
        return (!words.is_empty()).then(|| format!("[{}]", words.join(", ")));
    }
    values.first().map(|value| word_toml(value))
}

fn word_toml(word: &str) -> String {
    if is_bare(word) { word.to_owned() } else { toml::Value::from(word).to_string() }
}

fn value_json(values: &[String], several: bool) -> Value {
    let word = |word: &String| match word.parse::<i64>() {
        Ok(number) if is_bare(word) => json!(number),
        _ if is_bare(word) => json!(word == "true"),
        _ => json!(word),
    };
    if several { values.iter().map(word).collect() } else { values.first().map_or(Value::Null, word) }
}

/// Whether a word is a number or a truth value that reads back as the same letters.
fn is_bare(word: &str) -> bool {
    matches!(word, "true" | "false") || word.parse::<i64>().is_ok_and(|number| number.to_string() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_secret_nothing_is_shown_and_of_a_url_its_host() {
        for (secret, expect) in [
            ("s3cret", "***"),
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("nats://a:b@h1:1,nats://h2:2", "nats://***@h1:1,nats://h2:2"),
            ("nats://user:p@ss@h:1", "nats://***@h:1"),
            ("user:pw@host:1", "***"),
        ] {
            assert_eq!(mask(Secrecy::InUrls, secret), expect);
            assert_eq!(mask(Secrecy::Whole, secret), "***", "a password may look like a URL");
        }
    }

    #[test]
    fn words_read_back_as_they_are() {
        for (word, expect) in [
            ("1", "1"),
            ("007", "\"007\""),
            ("true", "true"),
            ("yes", "\"yes\""),
            ("a\"b", "'a\"b'"),
            ("", "\"\""),
        ] {
            assert_eq!(word_toml(word), expect);
        }
    }
}
