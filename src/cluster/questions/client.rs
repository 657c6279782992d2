//! Asks shards: those of this node in memory, the others over NATS.
//!
//! An owner of the shard is asked. If it has not replied after a short while, another one is asked as well,
//! once; whichever replies first is taken, and the other one is forgotten. An owner that says that it does
//! not answer, or that is not there, is followed by the next one at once. All of it ends at a deadline.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use metrics::Histogram;

use crate::cluster::questions::latency::Latency;
use crate::cluster::questions::level::Level;
use crate::cluster::questions::link::{AskSubjects, Link};
use crate::cluster::questions::mailbox::Mailbox;
use crate::cluster::questions::owners::{Choice, Owners};
use crate::cluster::questions::parts::Arrived;
use crate::cluster::questions::refusal::Reason;
use crate::cluster::questions::wire::{self, AskedQuestion};
use crate::metrics::{QUESTION_FAILURES_TOTAL, QUESTION_SECONDS, QUESTIONS_HEDGED_TOTAL};
use crate::query::question::{Question, ShardReply, is_consistent};
use crate::query::{AnsweringShard, AskTerms, NoReply, NotAnswered, ShardClient};
use crate::traces::{self, Kind, Span};
use crate::types::ShardId;

/// How long a shard is waited for, unless the read waits for a sequence of it and says for how long.
const DEADLINE: Duration = Duration::from_secs(2);
/// How long an owner may wait for a sequence before it says that it has not applied it. It is asked again
/// then. So an owner that has failed is noticed although the read waits for long.
const WAIT_AT_ONCE: Duration = Duration::from_millis(500);
/// An owner that was asked for a sequence and has said nothing for so long does not only wait. If no owner
/// says anything for so long, the next one is asked, whatever is known of it.
const MAY_WAIT: Duration = Duration::from_millis(750);
/// How often owners are asked for one question: what is refused at once must not become a busy loop.
const EXCHANGES_MAX: u32 = 256;

/// The shards of this node that may be asked in memory.
pub type NodeShards = Vec<(AnsweringShard, Arc<Level>)>;

/// Asks all shards.
pub struct AskingShards {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) subjects: AskSubjects,
    pub(super) owners: Arc<Owners>,
    shards: Vec<AskedShard>,
}

/// One shard, as it is asked.
struct AskedShard {
    own: Option<(AnsweringShard, Arc<Level>)>,
    latency: Latency,
    took: Histogram,
}

impl AskingShards {
    /// # Arguments
    /// `own`: the shards that are in this node's memory. `shard_count`: of all shards.
    ///
    /// # Errors
    /// When the client is gone.
    pub async fn open(
        link: Link,
        subjects: AskSubjects,
        owners: Arc<Owners>,
        shard_count: u16,
        own: NodeShards,
    ) -> Result<Self, String> {
        let mailbox = Mailbox::open(link.client).await?;
        for shard in (0..shard_count).map(ShardId) {
            // So that there is a zero before there is a one.
            count_hedged(shard, 0);
            metrics::counter!(QUESTION_FAILURES_TOTAL, "shard" => shard.to_string(), "reason" => "silent")
                .increment(0);
        }
        let shard = |shard: ShardId| AskedShard {
            own: own.iter().find(|(own, _)| own.id == shard).cloned(),
            latency: Latency::default(),
            took: metrics::histogram!(QUESTION_SECONDS, "shard" => shard.to_string()),
        };
        let shards = (0..shard_count).map(ShardId).map(shard).collect();
        Ok(Self { mailbox, subjects, owners, shards })
    }

    async fn ask_others(
        &self,
        shard: ShardId,
        asked: &AskedShard,
        question: &Question<'_>,
        terms: AskTerms,
    ) -> Result<ShardReply, NoReply> {
        let started = Instant::now();
        // The read's deadline is for what it waits to be applied. Otherwise a short one would make a shard
        // unavailable that is there, and a long one would keep the client waiting for one that is not.
        let until = terms.until.filter(|_| terms.least.0 > 0).unwrap_or(started + DEADLINE);
        let mut exchange = Exchange {
            asking: self,
            shard,
            question,
            terms,
            until,
            choices: self.owners.choices(shard).into(),
            in_flight: FuturesUnordered::new(),
            last: LastProblem::default(),
            asked_at: started,
            exchanges: 0,
        };
        let found = exchange.run(asked.latency.hedge_after()).await;
        match &found {
            Ok(_) => {
                asked.took.record(started.elapsed());
                // What waited for a sequence says nothing about the owner.
                if terms.least.0 == 0 {
                    asked.latency.note(started.elapsed());
                }
            }
            Err(_) => count_failure(shard, exchange.last.reason()),
        }
        found
    }
}

impl ShardClient for AskingShards {
    fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        terms: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        async move {
            let Some(asked) = self.shards.get(shard.index()) else {
                return Err(NoReply::unavailable(shard, "there is no such shard"));
            };
            let own = asked.own.as_ref().filter(|(own, _)| own.health.is_filled());
            let Some((own, level)) = own else {
                let others = self.ask_others(shard, asked, question, terms).await;
                return others.map_err(|why| match why {
                    NoReply::Unavailable(why) if asked.own.is_some() => {
                        NoReply::unavailable(shard, format!("{}; {}", NotAnswered::Unfilled, why.reason))
                    }
                    why => why,
                });
            };
            if !level.is_level(own)
                && self.owners.has_live(shard)
                && let Ok(reply) = self.ask_others(shard, asked, question, terms).await
            {
                return Ok(reply);
            }
            let reply = match own.answer(question, terms).await {
                // What this disk lacks, another one may have.
                Err(NotAnswered::Unreadable(why)) => {
                    let others = self.ask_others(shard, asked, question, terms).await;
                    return others.map_err(|_| NoReply::unavailable(shard, why));
                }
                reply => reply,
            };
            let mut reply = reply.map_err(|why| match why {
                NotAnswered::NotYetApplied { .. } => NoReply::NotYetApplied(shard),
                NotAnswered::OtherHistory(_) => NoReply::OtherHistory(shard),
                NotAnswered::Invalid(_)
                | NotAnswered::Unfilled
                | NotAnswered::Ending
                | NotAnswered::TooBusy(_)
                | NotAnswered::Unreadable(_) => NoReply::unavailable(shard, why.to_string()),
            })?;
            reply.is_live &= level.is_level(own);
            Ok(reply)
        }
        .boxed()
    }
}

/// A question on its way to a shard.
struct Exchange<'a> {
    asking: &'a AskingShards,
    shard: ShardId,
    question: &'a Question<'a>,
    terms: AskTerms,
    until: Instant,
    /// Whom to ask next.
    choices: VecDeque<Choice>,
    in_flight: FuturesUnordered<BoxFuture<'a, (Choice, Result<Arrived, String>)>>,
    last: LastProblem,
    /// When an owner was asked last.
    asked_at: Instant,
    exchanges: u32,
}

/// What went wrong last, for the error.
#[derive(Default)]
struct LastProblem {
    words: Option<(&'static str, String)>,
    /// Some owner has not applied what is asked for, and nothing else is wrong with it.
    is_behind: bool,
}

impl LastProblem {
    fn reason(&self) -> &'static str {
        self.words.as_ref().map_or("silent", |(reason, _)| reason)
    }
}

/// Notes why an exchange brought no reply.
fn note_failure(span: &mut Span, arrived: &Result<Arrived, String>) {
    match arrived {
        Ok(Arrived::Reply(_)) => {}
        Ok(Arrived::Refused(refusal)) => span.fail(refusal.to_string()),
        Ok(Arrived::NobodyThere) => span.fail("no node that is up owns the shard"),
        Ok(Arrived::Garbage) => span.fail("the node sent what is no reply"),
        Err(why) => span.fail(why.as_str()),
    }
}

/// What is known after a message of an owner.
enum Next {
    Reply(Box<ShardReply>),
    /// What every owner would say that has the shard's data as they are.
    Refused(NoReply),
    /// Another owner is to be asked.
    Another,
}

impl Exchange<'_> {
    async fn run(&mut self, hedge_after: Duration) -> Result<ShardReply, NoReply> {
        // Those that were asked and have not replied, in order.
        let mut silent: Vec<Choice> = Vec::new();
        let mut is_first_hedge = true;
        self.send_next(&mut silent);
        let mut hedge = std::pin::pin!(tokio::time::sleep(hedge_after));
        loop {
            if self.in_flight.is_empty() {
                return Err(self.unavailable(None));
            }
            tokio::select! {
                Some((choice, arrived)) = self.in_flight.next() => {
                    silent.retain(|asked| *asked != choice);
                    match self.take(choice, arrived) {
                        Next::Reply(reply) => {
                            // The one that was asked first has lost to the second one.
                            self.pass_over(&silent);
                            return Ok(*reply);
                        }
                        Next::Refused(why) => {
                            self.pass_over(&silent);
                            return Err(why);
                        }
                        Next::Another => {
                            self.send_next(&mut silent);
                            if !is_first_hedge {
                                hedge.as_mut().reset(tokio::time::Instant::now() + MAY_WAIT);
                            }
                        }
                    }
                }
                () = &mut hedge => {
                    hedge.as_mut().reset(tokio::time::Instant::now() + MAY_WAIT);
                    // The group may choose the owner that was asked first, and one that may be behind gives a
                    // stale answer: both are for when nobody else has replied for long.
                    let may_be_next = |choice: &Choice| {
                        !is_first_hedge || (choice.node.is_some() && !choice.may_be_behind)
                    };
                    if self.choices.front().is_some_and(may_be_next) {
                        count_hedged(self.shard, 1);
                        self.send_next(&mut silent);
                    }
                    is_first_hedge = false;
                }
                () = tokio::time::sleep_until(self.until.into()) => {
                    self.pass_over(&silent);
                    return Err(self.unavailable(Some(silent)));
                }
            }
        }
    }

    /// Asks the next owner, if there is one.
    fn send_next(&mut self, silent: &mut Vec<Choice>) {
        if self.exchanges == EXCHANGES_MAX {
            return;
        }
        let Some(choice) = self.choices.pop_front() else { return };
        self.exchanges += 1;
        self.asked_at = Instant::now();
        silent.push(choice.clone());
        let left = self.until.saturating_duration_since(Instant::now());
        let asked = AskedQuestion {
            question: self.question.clone(),
            least: self.terms.least,
            wait_ms: u32::try_from(left.min(WAIT_AT_ONCE).as_millis()).unwrap_or(u32::MAX),
            may_be_behind: choice.may_be_behind,
            profiles: self.terms.profiles,
        };
        let bytes = wire::encode_question(&asked);
        let bytes = bytes.map_err(|why| format!("the question is too large: {why}"));
        let subject = match &choice.node {
            Some(node) => self.asking.subjects.of_node(self.shard, node),
            None => self.asking.subjects.any(self.shard),
        };
        let mailbox = Arc::clone(&self.asking.mailbox);
        let mut span = traces::child(Kind::Client, "ask");
        if let Some(span) = &mut span {
            span.attribute("ranktree.shard", u64::from(self.shard.0));
            choice.node.iter().for_each(|node| span.attribute("ranktree.node", node.to_string()));
        }
        let exchange = async move {
            let caller = span.as_ref().map(Span::context);
            let arrived = match bytes {
                Ok(bytes) => match mailbox.send(subject, bytes, caller).await {
                    Ok(mut in_flight) => Ok(in_flight.arrived().await),
                    Err(why) => Err(why),
                },
                Err(why) => Err(why),
            };
            if let Some(span) = &mut span {
                note_failure(span, &arrived);
            }
            (choice, arrived)
        };
        self.in_flight.push(exchange.boxed());
    }

    /// What follows from a message.
    fn take(&mut self, choice: Choice, arrived: Result<Arrived, String>) -> Next {
        let (asking, shard) = (self.asking, self.shard);
        let absent = |choice: &Choice| {
            choice.node.iter().for_each(|node| asking.owners.note_absent(node, shard));
        };
        match arrived {
            Ok(Arrived::Reply(bytes)) => match wire::decode_reply(&bytes) {
                Ok(reply)
                    if is_consistent(self.question, &reply.reply) && reply.sequence >= self.terms.least =>
                {
                    return Next::Reply(Box::new(reply));
                }
                Ok(_) => {
                    absent(&choice);
                    self.note("garbage", "a node's reply does not fit the question".to_owned());
                }
                Err(why) => {
                    absent(&choice);
                    self.note("garbage", format!("a node's reply was not understood: {why}"));
                }
            },
            Ok(Arrived::Refused(refusal)) => {
                self.note(refusal.reason.name(), refusal.to_string());
                match refusal.reason {
                    // Asked again if no other owner is better.
                    Reason::NotLevel => {
                        self.choices.push_back(Choice { may_be_behind: true, ..choice });
                    }
                    Reason::NotYetApplied => {
                        self.last.is_behind = true;
                        self.choices.push_back(choice);
                    }
                    Reason::OtherHistory => return Next::Refused(NoReply::OtherHistory(self.shard)),
                    // Other questions may well be answered there.
                    Reason::Overloaded | Reason::Unreadable | Reason::NoWrites | Reason::Unknown => {}
                    Reason::Ending
                    | Reason::Format
                    | Reason::Invalid
                    | Reason::TooLarge
                    | Reason::Other(_) => {
                        absent(&choice);
                    }
                }
            }
            Ok(Arrived::NobodyThere) => {
                absent(&choice);
                self.note("nobody_there", "no node that is up owns it".to_owned());
            }
            Ok(Arrived::Garbage) => {
                absent(&choice);
                self.note("garbage", "a node sent what is no reply".to_owned());
            }
            Err(why) => self.note("not_sent", why),
        }
        Next::Another
    }

    fn note(&mut self, reason: &'static str, words: String) {
        if reason != Reason::NotYetApplied.name() {
            count_failure(self.shard, reason);
        }
        self.last.words = Some((reason, words));
    }

    /// Owners that were asked and have not replied.
    fn pass_over(&self, silent: &[Choice]) {
        // An owner may have waited for the sequence.
        if self.terms.least.0 == 0 {
            silent.iter().filter_map(|choice| choice.node.as_ref()).for_each(|node| {
                self.asking.owners.note_silent(node);
            });
        }
    }

    fn unavailable(&mut self, silent: Option<Vec<Choice>>) -> NoReply {
        // An owner that waits for the sequence says nothing for a while, and the read may end before.
        let may_wait = self.terms.least.0 > 0 && silent.is_some() && self.asked_at.elapsed() < MAY_WAIT;
        if self.last.is_behind || may_wait {
            return NoReply::NotYetApplied(self.shard);
        }
        let reason = match (silent, &self.last.words) {
            (Some(_), None) => "no owner replied in time".to_owned(),
            (Some(_), Some((_, words))) => format!("no owner replied in time; before that: {words}"),
            (None, Some((_, words))) => words.clone(),
            (None, None) => "nobody was asked".to_owned(),
        };
        NoReply::unavailable(self.shard, reason)
    }
}

fn count_hedged(shard: ShardId, questions: u64) {
    metrics::counter!(QUESTIONS_HEDGED_TOTAL, "shard" => shard.to_string()).increment(questions);
}

fn count_failure(shard: ShardId, reason: &'static str) {
    metrics::counter!(QUESTION_FAILURES_TOTAL, "shard" => shard.to_string(), "reason" => reason).increment(1);
}
