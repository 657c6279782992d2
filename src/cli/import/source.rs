//! Where rows come from: files and pipes, or a running Redis. Each is read once.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::Args as _;

use crate::cli::import::args::Args;
use crate::cli::import::error::ImportError;
use crate::cli::import::progress::Progress;
use crate::cli::import::read::{FileRows, InputFile, Place, Reading, RedisRows, RedisSource, Rows, Rules};
use crate::cli::import::shell_word::shell_word;
use crate::config::given_words;
use crate::types::Timestamp;

pub struct Source {
    reading: Reading,
    from: Origin,
    /// Read of the files, before unpacking.
    bytes_read: Arc<AtomicU64>,
}

enum Origin {
    Files(Vec<InputFile>),
    Redis { url: String, key: String, password: Option<String>, rows: Option<Box<RedisRows>> },
}

impl Source {
    /// # Errors
    /// When there is no such file, or the command line does not say all of a Redis.
    pub fn find(args: &Args, rules: Rules) -> Result<Self, ImportError> {
        let now = jiff::Timestamp::now().to_string();
        let reading = Reading {
            rules,
            format: args.format,
            encoding: args.encoding,
            from_line: args.from_line,
            key: args.key.clone(),
            at: Timestamp::parse(&now).expect("a clock's time is one"),
        };
        let from = match (&args.redis, &args.key) {
            (Some(url), Some(key)) => {
                let password = args.redis_password.password()?;
                Origin::Redis { url: url.clone(), key: key.clone(), password, rows: None }
            }
            // The command line is checked for this, and a file of settings is not.
            (Some(_), None) => return Err(ImportError::RedisNeeds),
            (None, _) => {
                let files = args.files.iter().map(|path| InputFile::find(path));
                Origin::Files(files.collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { reading, from, bytes_read: Arc::default() })
    }

    /// The names of the files.
    pub fn names(&self) -> Vec<String> {
        match &self.from {
            Origin::Files(files) => files.iter().map(|file| file.name.clone()).collect(),
            Origin::Redis { .. } => Vec::new(),
        }
    }

    /// Begins: shows how far the reading is.
    ///
    /// # Errors
    /// When a Redis cannot be read.
    pub fn progress(&mut self) -> Result<Progress, ImportError> {
        match &mut self.from {
            Origin::Files(files) => {
                let total = files.iter().map(InputFile::bytes).sum::<Option<u64>>();
                Ok(Progress::new(Arc::clone(&self.bytes_read), total))
            }
            Origin::Redis { url, key, password, rows } => {
                let source = RedisSource { url, password: password.as_deref(), key };
                let opened = Box::new(RedisRows::open(&source, self.reading.redis_entries()?)?);
                Ok(Progress::of_rows(rows.insert(opened).total))
            }
        }
    }

    /// The rows, once it was begun.
    ///
    /// # Arguments
    /// `tell`: says what is found out about a file.
    ///
    /// # Errors
    /// When a Redis cannot be read.
    pub fn rows<'a>(&'a mut self, tell: &'a dyn Fn(&str)) -> Result<Box<dyn Rows + 'a>, ImportError> {
        match &mut self.from {
            Origin::Files(files) => {
                Ok(Box::new(FileRows::new(&self.reading, files, Arc::clone(&self.bytes_read), tell)))
            }
            Origin::Redis { rows, .. } => {
                let rows: Box<dyn Rows + 'a> = rows.take().ok_or(ImportError::RedisNeeds)?;
                Ok(rows)
            }
        }
    }

    /// For the operator of an import that was stopped: where to go on.
    ///
    /// # Arguments
    /// - `place`: of the first row that is not settled.
    /// - `adds`: rows add to scores, and sending them twice counts them twice.
    pub fn go_on(&self, place: Place, adds: bool) -> String {
        let Origin::Files(files) = &self.from else {
            return format!("{:<14}run the same import again\n", "go on");
        };
        let settled: Vec<&str> = files.iter().take(place.file).map(|file| file.name.as_str()).collect();
        let name = files.get(place.file).map_or("", |file| file.name.as_str());
        let line = place.line.max(1);
        let caution =
            if adds { ". Rows behind it may be applied already, and these would count twice" } else { "" };
        format!(
            "{:<14}all rows before line {line} of {name} are settled{caution}: {}\n",
            "go on",
            command_from(&given_words(), &settled, line)
        )
    }
}

/// The command line that goes on at a line: what was given, without the files that are settled.
fn command_from(given: &[String], settled: &[&str], line: u64) -> String {
    let known = Args::augment_args(clap::Command::new("import"));
    let takes_value = |word: &str| {
        let argument = known.get_arguments().find(|argument| {
            let names =
                argument.get_long().into_iter().chain(argument.get_all_aliases().into_iter().flatten());
            word.strip_prefix("--").is_some_and(|word| names.into_iter().any(|name| name == word))
        });
        argument.is_some_and(|argument| argument.get_action().takes_values())
    };
    let mut settled = settled.iter().peekable();
    let mut words = vec!["ranktree".to_owned(), "import".to_owned(), format!("--from-line {line}")];
    let mut given = given.iter().skip(1);
    while let Some(word) = given.next() {
        let value = if takes_value(word) { given.next() } else { None };
        let is_settled = !word.starts_with("--") && settled.next_if(|file| *file == word).is_some();
        if is_settled || word == "--from-line" || word.starts_with("--from-line=") {
            continue;
        }
        words.extend([Some(word), value].into_iter().flatten().map(|word| shell_word(word)));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_to_go_on_from_has_the_options_that_were_given() {
        let go_on = |given: &[&str], settled: &[&str]| {
            let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
            command_from(&given, settled, 7)
        };
        assert_eq!(
            go_on(
                &["import", "a.csv", "my file.csv", "--column", "score=Best time", "--blank", ""],
                &["a.csv"]
            ),
            "ranktree import --from-line 7 'my file.csv' --column 'score=Best time' --blank ''"
        );
        assert_eq!(
            go_on(
                &["import", "--from-line", "3", "--rejects", "a.csv", "--to", "http://h:1", "a.csv", "a.csv"],
                &["a.csv"]
            ),
            "ranktree import --from-line 7 --rejects a.csv --to http://h:1 a.csv",
            "an option's value is no file"
        );
        assert_eq!(
            go_on(&["import", "--round", "it's.csv", "--from-line=2", "--decimal=,"], &[]),
            "ranktree import --from-line 7 --round 'it'\\''s.csv' --decimal=,"
        );
    }
}
