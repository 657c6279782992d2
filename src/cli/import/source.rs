//! Where rows come from: files and pipes, or a running Redis. Each is read once.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use indicatif::HumanBytes;

use crate::cli::import::args::Args;
use crate::cli::import::error::ImportError;
use crate::cli::import::progress::Progress;
use crate::cli::import::read::{
    FileRows, Grown, InputFile, Place, Reading, RedisRows, RedisSource, Rows, Rules,
};
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
            from: args.from_line,
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
                let files: Vec<InputFile> = files.collect::<Result<_, _>>()?;
                if args.from_line.file >= files.len() {
                    return Err(ImportError::FromFile { given: args.from_line.file + 1, files: files.len() });
                }
                Origin::Files(files)
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

    /// Says of each file that has grown since it was read where its rows ended, and how the others are
    /// imported.
    ///
    /// # Arguments
    /// `tell`: says it.
    pub fn tell_grown(&self, tell: &dyn Fn(&str)) {
        let Origin::Files(files) = &self.from else { return };
        for (number, file) in files.iter().enumerate() {
            let Some(Grown { bytes, line, may_be_cut }) = file.grown() else { continue };
            let place = Place { file: number, line: line + u64::from(!may_be_cut), is_shared: false }.told();
            let cut = if may_be_cut { ", which may have been cut there" } else { "" };
            tell(&format!(
                "{} has grown by {} since it was read, and what was written behind line {line} is not imported{cut}: the same \
                 import with --from-line {place} goes on there",
                file.name,
                HumanBytes(bytes)
            ));
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
        let name = files.get(place.file).map_or("", |file| file.name.as_str());
        let line = place.line.max(1);
        let caution =
            if adds { ". Rows behind it may be applied already, and these would count twice" } else { "" };
        format!(
            "{:<14}all rows before line {line} of {name} are settled{caution}: {}\n",
            "go on",
            command_from(&given_words(), place)
        )
    }
}

/// The command line that goes on at a place: what was given, with all files, because rows before it decide
/// about the order of rows of one time.
fn command_from(given: &[String], place: Place) -> String {
    let mut words = vec!["ranktree".to_owned(), "import".to_owned(), format!("--from-line {}", place.told())];
    let mut given = given.iter().skip(1);
    while let Some(word) = given.next() {
        if word == "--from-line" {
            given.next();
        } else if !word.starts_with("--from-line=") {
            words.push(shell_word(word));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_to_go_on_from_has_the_options_that_were_given() {
        for (given, place, expect) in [
            (
                &["import", "a.csv", "my file.csv", "--column", "score=Best time", "--blank", ""][..],
                "2:7",
                "a.csv 'my file.csv' --column 'score=Best time' --blank ''",
            ),
            (
                &["import", "--from-line", "3", "--rejects", "a.csv", "--to", "http://h:1", "a.csv", "a.csv"],
                "7",
                "--rejects a.csv --to http://h:1 a.csv a.csv",
            ),
            (
                &["import", "--round", "it's.csv", "--from-line=2", "--decimal=,"],
                "7",
                "--round 'it'\\''s.csv' --decimal=,",
            ),
        ] {
            let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
            let told = command_from(&given, Place::parse(place).expect("a place"));
            assert_eq!(told, format!("ranktree import --from-line {place} {expect}"));
        }
    }
}
