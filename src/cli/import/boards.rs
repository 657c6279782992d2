//! The boards that rows name: of each, the service is asked what it is. What its board would refuse of a row
//! is known before the row is sent, and so is which end is best of a board that the import makes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::board::{Key, KeyType};
use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::best_end::BestEnd;
use crate::cli::import::in_use::{InUse, other_windows};
use crate::cli::import::key_order::check_key_order;
use crate::cli::import::read::{RejectedLine, Row, advice};
use crate::cli::import::send::{BoardFacts, Connection, KeyFacts};
use crate::cli::import::tally::Tally;
use crate::job::{Job, Op, RejectCode, Targets};
use crate::types::{BoardName, Number, Score, Timestamp};
use crate::wire::{BoardNames, decode_plain, decode_strictly};

/// A time that is so far after its message's is rejected.
const FUTURE_MICROS: i64 = 5 * 60 * 1_000_000;

/// What the command line says about boards.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Making {
    /// One for all keys, or one for each.
    pub order: Vec<BestEnd>,
    /// What the keys of a score are called in the file, if that is known.
    pub key_names: Vec<String>,
    /// What files say of boards is passed over.
    pub rows_only: bool,
    /// Rows of one window may change other windows of their board.
    pub into_all_windows: bool,
    /// Rows before the first one that is read were sent already.
    pub goes_on: bool,
    /// Nothing is to be sent.
    pub is_dry: bool,
    /// Rows are for members who have no entry.
    pub if_absent: bool,
    /// Times in the rows are not read.
    pub drops_times: bool,
}

/// Boards that a message is about; of more, one message tells.
const BOARDS_TOLD: usize = 10;

/// A board that a row named, and what is known of it.
pub struct Board {
    facts: BoardFacts,
    /// A line of the file says what it is.
    is_described: bool,
    /// Of the first row.
    keys: usize,
    /// A row of this pass named it.
    is_named: bool,
}

/// What is known of boards, by name.
pub type Known = HashMap<Arc<str>, Board>;

pub struct Boards<'a> {
    /// `None`: the service is not asked.
    connection: Option<Connection<'a>>,
    tally: &'a Tally,
    making: &'a Making,
    /// Rows are sent, and boards made; else they are only checked.
    is_sent: bool,
    known: Known,
    told: usize,
    /// Most rows name the same board as the one before, and share its name.
    last: Option<(Arc<str>, Option<bool>)>,
    names: BoardNames,
    /// A board is not there, and nobody makes it.
    has_unmade: bool,
    in_use: InUse,
    now: Timestamp,
    /// As far ahead as the time of a row may be.
    latest: Timestamp,
}

impl<'a> Boards<'a> {
    /// # Arguments
    /// - `is_sent`: rows are sent, and not only checked.
    /// - `known`: what an earlier pass found, and told.
    pub fn new(
        connection: Option<Connection<'a>>,
        tally: &'a Tally,
        making: &'a Making,
        is_sent: bool,
        mut known: Known,
    ) -> Self {
        for board in known.values_mut() {
            board.is_named = false;
        }
        let now = jiff::Timestamp::now().as_microsecond();
        let time = |micros| Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX);
        Self {
            connection,
            tally,
            making,
            is_sent,
            known,
            told: 0,
            last: None,
            names: BoardNames::default(),
            has_unmade: false,
            in_use: InUse::default(),
            now: time(now),
            latest: time(now + FUTURE_MICROS),
        }
    }

    /// What was found, for the next pass.
    pub fn into_known(self) -> Known {
        self.known
    }

    /// A line of the file says what a board is.
    ///
    /// # Errors
    /// When `--order` says something of it, too, or the service has another board of the name.
    pub fn describe(&mut self, line: &BoardLine) -> Result<(), ImportError> {
        if self.making.rows_only {
            return Ok(());
        }
        if line.instance.is_some() && self.making.drops_times {
            return Err(ImportError::InstanceTimes);
        }
        let making = self.making;
        let facts = BoardFacts::of_file(line);
        if !self.is_sent
            && let Some(connection) = &self.connection
        {
            let in_use = connection.agrees(line, !making.is_dry, making.into_all_windows)?;
            if !making.goes_on && !making.if_absent {
                self.in_use.add(&line.board, facts.keys.clone().unwrap_or_default(), in_use);
            }
        }
        if !self.making.order.is_empty() {
            return Err(ImportError::OrderOfExport);
        }
        let windows = other_windows(line).filter(|_| !making.into_all_windows);
        if let Some(windows) = windows.filter(|_| !self.known.contains_key(line.board.as_str())) {
            self.tally.note(&format!(
                "board {} has the windows {windows}, too: a row of all enters those that are open at its time, with its \
                 score of all times",
                line.board
            ));
        }
        // What was known of it is of before.
        self.last = None;
        let board = Board { facts, is_described: true, keys: 0, is_named: false };
        self.known.insert(line.board.as_str().into(), board);
        Ok(())
    }

    /// Tells of the row's boards if they are new, and decides whether the row adds. Returns whether it does
    /// for sure: where that is not known, a request whose answer is lost is not sent twice either.
    ///
    /// # Errors
    /// When the service cannot be reached, or does not make a board.
    pub fn note(&mut self, row: &mut Row) -> Result<bool, ImportError> {
        let mut adds_for_sure = row.adds;
        for board in &row.boards {
            let adds = self.adds(board, &row.job)?;
            if row.is_undecided {
                adds_for_sure |= adds == Some(true);
                row.adds |= adds != Some(false);
            }
        }
        Ok(adds_for_sure)
    }

    /// Whether jobs of the board that name no operation add.
    fn adds(&mut self, board: &Arc<str>, job: &str) -> Result<Option<bool>, ImportError> {
        if let Some((last, adds)) = &self.last
            && Arc::ptr_eq(last, board)
        {
            return Ok(*adds);
        }
        if self.known.get(board).is_none_or(|known| !known.is_named) {
            self.tally.named(board);
            self.name(board, job)?;
        }
        let adds = self.known.get(board).and_then(|known| known.facts.adds);
        self.last = Some((Arc::clone(board), adds));
        Ok(adds)
    }

    /// The first row of this pass that names a board.
    fn name(&mut self, board: &Arc<str>, job: &str) -> Result<(), ImportError> {
        let earlier = self.known.remove(board);
        let is_told = earlier.as_ref().is_some_and(|known| known.facts.is_there.is_some());
        let is_described = earlier.as_ref().is_some_and(|known| known.is_described);
        let mut known = match earlier {
            Some(known) if is_told && !is_described => known,
            earlier => {
                let facts = self.connection.as_ref().map(|connection| connection.facts(board)).transpose()?;
                let mut facts = facts.unwrap_or_default();
                if facts.is_there != Some(true)
                    && let Some(described) = earlier.filter(|known| known.is_described)
                {
                    (facts.keys, facts.open) = (described.facts.keys, described.facts.open);
                }
                let keys = self.keys_of(board, job).unwrap_or(1);
                Board { facts, is_described, keys, is_named: true }
            }
        };
        known.is_named = true;
        if !is_described {
            self.make(board, &known, is_told)?;
        }
        self.known.insert(Arc::clone(board), known);
        self.has_unmade |= self.is_made_by_nobody(board);
        Ok(())
    }

    /// Makes the board if the first job would not make the right one, or compares it with what `--order`
    /// says.
    fn make(&mut self, board: &str, known: &Board, is_told: bool) -> Result<(), ImportError> {
        let Board { facts, keys, .. } = known;
        let making = self.making;
        let order = &making.order;
        if order.len() > 1 && order.len() != *keys {
            return Err(ImportError::OrderCount { board: board.to_owned(), given: order.len(), keys: *keys });
        }
        let end = |key: usize| order.get(key).or(order.first()).copied().unwrap_or(BestEnd::Desc).name();
        match facts.is_there {
            Some(true) => {
                if making.if_absent && !facts.windows.is_empty() && !is_told {
                    self.tally.note(&format!(
                        "board {board} has the windows {}, too: a row enters each that is open at its time and has no \
                         entry of its member",
                        facts.windows.join(", ")
                    ));
                }
                check_key_order(board, facts.keys.as_deref().unwrap_or_default(), &making.key_names)?;
                let found: Vec<&str> = facts.keys.iter().flatten().map(|key| key.order.as_str()).collect();
                let differs = (0..).zip(&found).any(|(key, found)| *found != end(key));
                if !order.is_empty() && differs {
                    let given = order.iter().map(|end| end.name()).collect::<Vec<_>>().join(",");
                    return Err(ImportError::OtherOrder {
                        board: board.to_owned(),
                        found: found.join(","),
                        given,
                    });
                }
            }
            Some(false) => {
                let made: Vec<(String, &'static str)> =
                    (0..*keys).map(|key| (self.key_name(key, *keys), end(key))).collect();
                let is_defined = self.defines(*keys);
                if self.is_sent && is_defined {
                    let connection = self.connection.as_ref();
                    connection.map_or(Ok(()), |connection| connection.make(board, &made))?;
                }
                if !is_told && (is_defined || facts.may_be_made != Some(false)) {
                    self.tell_made(board, &made);
                }
            }
            None if !order.is_empty() && self.connection.is_some() => {
                let to = self.connection.as_ref().map(Connection::to).unwrap_or_default();
                let reason = facts.reason.clone();
                return Err(ImportError::OrderUnknown { to, board: board.to_owned(), reason });
            }
            None => {}
        }
        Ok(())
    }

    fn tell_made(&mut self, board: &str, keys: &[(String, &'static str)]) {
        self.told += 1;
        if self.told > BOARDS_TOLD {
            if self.told == BOARDS_TOLD + 1 {
                self.tally.note("further boards are new, too");
            }
            return;
        }
        let words = match keys {
            [(_, order)] => format!("the {} score leads", BestEnd::words(order)),
            keys => {
                let each: Vec<String> = keys
                    .iter()
                    .map(|(name, order)| format!("the {} {name}", BestEnd::words(order)))
                    .collect();
                format!("{} leads", each.join(", then "))
            }
        };
        let advice = match keys {
            _ if !self.making.order.is_empty() => String::new(),
            [_] => "; --order asc makes it the lowest".to_owned(),
            _ => "; --order says otherwise, such as --order desc,asc".to_owned(),
        };
        self.tally.note(&format!("board {board} is new, and this import makes it: {words}{advice}"));
    }

    fn key_name(&self, key: usize, keys: usize) -> String {
        if keys == 1 {
            return "score".to_owned();
        }
        let names = &self.making.key_names;
        let fits = |name: &&String| {
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
            let is_alone = names.iter().filter(|other| other == name).count() == 1;
            name.len() <= 64 && !is_number && is_alone
        };
        let name =
            Some(names).filter(|names| names.len() == keys).and_then(|names| names.get(key)).filter(fits);
        name.cloned().unwrap_or_else(|| format!("key_{}", key + 1))
    }

    fn keys_of(&mut self, board: &str, job: &str) -> Option<usize> {
        let job = self.decoded(job).ok()?;
        scores(&job).find(|(name, _)| name.as_str() == board).map(|(_, score)| score.keys().len())
    }

    /// What the service would say of the row, as far as that is known before.
    pub fn refusal(&mut self, row: &Row) -> Option<RejectedLine> {
        let refused = |code, why: String| Some(RejectedLine::new(row.place, code, why));
        let job = match self.decoded(&row.job) {
            Ok(job) => job,
            Err((code, why)) => {
                let advice = advice(&row.job, code, &why);
                return refused(code, why + &advice);
            }
        };
        if let Some(at) = job.at.filter(|at| *at > self.latest) {
            return refused(
                RejectCode::FutureTime,
                format!("{at} is more than five minutes ahead of now; --column at= leaves times out"),
            );
        }
        let mut boards = job.boards().filter(|_| self.has_unmade);
        if let Some(board) = boards.find(|board| self.is_made_by_nobody(board.as_str())) {
            return refused(
                RejectCode::UnknownBoard,
                format!(
                    "there is no board {board}, and the service makes none for jobs (--no-auto-create); make it with PUT \
                     /v1/boards/{board}, or let the import make it with --order desc, which takes a token with the scope admin"
                ),
            );
        }
        for (board, score) in scores(&job) {
            let board = board.as_str();
            let known = self.known.get(board);
            if let Some(why) = known.and_then(|known| unlike_double(board, known, score)) {
                return refused(RejectCode::BadScore, why);
            }
            let mut keys = known.and_then(|known| known.facts.keys.as_ref()).into_iter().flatten();
            let no_integer = score.numbers().find_map(|number| {
                let is_float = keys.next().is_some_and(|key| key.key.key_type == KeyType::Float);
                if is_float { None } else { number.integer().err() }
            });
            if let Some(why) = no_integer {
                let why = row.no_integer.as_ref().map_or_else(
                    || {
                        let why = format!("not a score: {why}");
                        let advice = advice(&row.job, RejectCode::BadScore, &why);
                        why + &advice
                    },
                    ToString::to_string,
                );
                return refused(RejectCode::BadScore, why);
            }
            let Some(known) = known else { continue };
            let at = job.at.unwrap_or(self.now);
            if known.facts.open.as_ref().is_some_and(|open| !open.take(at, self.now, self.latest)) {
                let why = format!(
                    "no window of board {board} that {at} falls in is open; give the board a grace that reaches back to \
                     it (PUT /v1/boards/{board}), import, and shorten the grace again"
                );
                return refused(RejectCode::ClosedWindow, why);
            }
            if let Some(keys) = &known.facts.keys {
                if keys.len() != score.keys().len() {
                    let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
                    return refused(
                        RejectCode::BadScore,
                        wrong_keys(board, &names.join(", "), keys.len(), score),
                    );
                }
                let is_set = match job.op {
                    Some(op) => matches!(op, Op::Set | Op::Best),
                    None => known.facts.adds == Some(false),
                };
                let outside = keys.iter().zip(score.numbers()).find(|(known, number)| {
                    let Key { min, max, .. } = known.key;
                    known.key.ordered(*number).is_ok_and(|value| value < min || value > max)
                });
                if let Some((KeyFacts { name, key, .. }, value)) = outside.filter(|_| is_set) {
                    let (min, max) = (key.number(key.min), key.number(key.max));
                    let why = format!("{name} of board {board} must be {min} to {max}; got {value}");
                    return refused(RejectCode::OutOfRange, why);
                }
            } else if !known.is_described
                && known.facts.is_there == Some(false)
                && known.keys != score.keys().len()
            {
                return refused(
                    RejectCode::BadScore,
                    wrong_keys(board, "of the first row", known.keys, score),
                );
            }
        }
        None
    }

    /// Looks whether the row would replace what its member has in an instance that is in use.
    ///
    /// # Errors
    /// When it does; when the service cannot be reached.
    pub fn compare(&mut self, row: &Row) -> Result<(), ImportError> {
        if self.in_use.is_empty() {
            return Ok(());
        }
        let (Ok(job), Some(connection)) = (self.decoded(&row.job), &self.connection) else { return Ok(()) };
        scores(&job).try_for_each(|(board, score)| {
            let at = job.at.unwrap_or(self.now);
            self.in_use.compare(connection, board, at, job.member.as_str(), score)
        })
    }

    /// The same for what is left behind the last row.
    ///
    /// # Errors
    /// As [`Boards::compare`].
    pub fn compare_rest(&mut self) -> Result<(), ImportError> {
        self.connection.as_ref().map_or(Ok(()), |connection| self.in_use.compare_rest(connection))
    }

    /// Whether a board is not there, and is made neither by the import nor by a job.
    fn is_made_by_nobody(&self, board: &str) -> bool {
        self.known.get(board).is_some_and(|Board { facts, is_described, keys, .. }| {
            let is_defined = *is_described || self.defines(*keys);
            facts.is_there == Some(false) && facts.may_be_made == Some(false) && !is_defined
        })
    }

    /// Whether the import defines a board that is not there, because the first job would not make it so.
    fn defines(&self, keys: usize) -> bool {
        !self.making.order.is_empty() || keys > 1
    }

    fn decoded(&mut self, job: &str) -> Result<Job, (RejectCode, String)> {
        let mut plain = None;
        if decode_plain(&mut self.names, job.as_bytes(), |job| plain = Some(job))
            && let Some(job) = plain
        {
            return Ok(job);
        }
        let decoded = decode_strictly(job.as_bytes()).and_then(|jobs| jobs.into_iter().next().transpose());
        match decoded {
            Ok(Some(job)) => Ok(job),
            Ok(None) => Err((RejectCode::Malformed, "there is no job".to_owned())),
            Err(reject) => Err((reject.code, reject.detail)),
        }
    }
}

fn scores(job: &Job) -> impl Iterator<Item = (&BoardName, &Score)> {
    let boards: &[_] = match &job.targets {
        Targets::Boards(boards) => boards,
        Targets::EveryBoard | Targets::Profile(_) => &[],
    };
    boards.iter().filter_map(|(board, score)| Some((board, score.as_ref()?)))
}

/// Why a score would become another one on a board of doubles.
fn unlike_double(board: &str, known: &Board, score: &Score) -> Option<String> {
    let keys = known.facts.keys.iter().flatten();
    let is_changed = |(key, number): &(&KeyFacts, Number)| {
        key.key.key_type == KeyType::Float && !number.is_kept_as_double()
    };
    let (KeyFacts { name, .. }, number) = keys.zip(score.numbers()).find(is_changed)?;
    Some(format!(
        "{name} of board {board} has the type float, whose number nearest to {number} is {:.0}; a board whose key is an \
         integer keeps it",
        number.double().value()
    ))
}

fn wrong_keys(board: &str, names: &str, keys: usize, score: &Score) -> String {
    let found = score.keys().len();
    format!(
        "a score of board {board} has {keys} keys ({names}), and this one has {found}; each key is a column of its own, \
         as in --column score=A --column score=B"
    )
}
