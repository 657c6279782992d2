//! This node answers questions to its shards.
//!
//! Each shard has two subscriptions. The one under the node's own name is there from the start to the end.
//! The one in the queue group of all owners is there only while the shard is level. Questions are answered at
//! the same time, up to a limit; beyond it they are refused at once, so that the asking node goes to another
//! owner instead of waiting in a line.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, HeaderMap, Message, Subscriber};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::cluster::questions::level::{Level, PauseWatch, StreamEnds};
use crate::cluster::questions::link::{AskSubjects, GROUP, Link};
use crate::cluster::questions::parts::split;
use crate::cluster::questions::refusal::{Reason, Refusal};
use crate::cluster::questions::trims::Trimming;
use crate::cluster::questions::wire::{self, TRIM_FORMAT, Undecodable};
use crate::metrics::QUESTIONS_ANSWERED_TOTAL;
use crate::query::question::Question;
use crate::query::{AnsweringShard, AskTerms, NotAnswered};
use crate::queue::nats::trace_headers;
use crate::traces::{self, Caller, Kind, Span};
use crate::types::{NodeName, Sequence};

/// The pause after a failed subscription.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// A question waits at most so long for a sequence. The asking node asks again.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How much a node takes on.
#[derive(Debug, Clone, Copy)]
pub struct ServiceLimits {
    /// Questions that are answered at the same time.
    pub at_once: usize,
    /// Questions that wait for a sequence.
    pub waiting: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        // An answer takes microseconds of a core, or some milliseconds of the disk.
        Self { at_once: 256, waiting: 1_024 }
    }
}

/// Answers until it is dropped or told to end.
pub struct QuestionService {
    shards: Vec<(AnsweringShard, Arc<Level>)>,
    ending: watch::Sender<bool>,
}

struct Shared {
    client: Client,
    subjects: AskSubjects,
    node: NodeName,
    ends: Arc<dyn StreamEnds>,
    trimming: Arc<Trimming>,
    at_once: Arc<Semaphore>,
    waiting: Semaphore,
    ending: watch::Receiver<bool>,
}

impl QuestionService {
    /// Starts to answer.
    pub fn start(
        link: Link,
        subjects: AskSubjects,
        node: NodeName,
        shards: Vec<AnsweringShard>,
        ends: Arc<dyn StreamEnds>,
        trimming: Arc<Trimming>,
        limits: ServiceLimits,
    ) -> Self {
        let (ending, ended) = watch::channel(false);
        let Link { client, connected } = link;
        let shared = Arc::new(Shared {
            client,
            subjects,
            node,
            ends,
            trimming,
            at_once: Arc::new(Semaphore::new(limits.at_once)),
            waiting: Semaphore::new(limits.waiting),
            ending: ended,
        });
        let pauses = PauseWatch::start();
        let mut with_level = Vec::with_capacity(shards.len());
        for shard in shards {
            let level = Arc::new(Level::new(Arc::clone(&pauses), connected.clone()));
            with_level.push((shard.clone(), Arc::clone(&level)));
            tokio::spawn(Answering { shared: Arc::clone(&shared), shard, level }.run());
        }
        Self { shards: with_level, ending }
    }

    /// The shards that are answered for.
    pub fn shards(&self) -> Vec<(AnsweringShard, Arc<Level>)> {
        self.shards.clone()
    }

    /// Tells whether one of the shards may lack what came while this process did not run, or was cut off.
    pub fn whether_behind(&self) -> Box<dyn Fn() -> bool + Send + Sync> {
        let shards = self.shards();
        Box::new(move || shards.iter().any(|(shard, level)| !level.is_level(shard)))
    }

    /// Answers no further question, so that others are asked. Questions in work are answered.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }
}

/// One shard, as it is answered for.
#[derive(Clone)]
struct Answering {
    shared: Arc<Shared>,
    shard: AnsweringShard,
    level: Arc<Level>,
}

impl Answering {
    async fn run(self) {
        let mut ending = self.shared.ending.clone();
        tokio::select! {
            () = self.answer_questions() => {}
            // An error means that the service was dropped.
            _ = ending.wait_for(|ending| *ending) => {}
        }
    }

    async fn answer_questions(&self) {
        let Shared { client, subjects, node, ends, .. } = &*self.shared;
        let mut own = loop {
            if let Ok(own) = client.subscribe(subjects.of_node(self.shard.id, node)).await {
                break own;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        };
        loop {
            tokio::select! {
                () = self.level.become_level(&self.shard, &**ends) => {}
                () = self.take_all(&mut own) => return,
            }
            let Ok(mut group) = client.queue_subscribe(subjects.any(self.shard.id), GROUP.to_owned()).await
            else {
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            };
            tokio::select! {
                () = self.level.lose(&self.shard) => {}
                () = self.take_all(&mut own) => return,
                () = self.take_all(&mut group) => {}
            }
            // It fails only if the client is gone.
            let _ = group.unsubscribe().await;
            // What is here already is refused, so that those who ask need not wait.
            while let Some(Some(message)) = group.next().now_or_never() {
                self.take(message);
            }
        }
    }

    /// Returns once the subscription is over, with the client.
    async fn take_all(&self, questions: &mut Subscriber) {
        while let Some(message) = questions.next().await {
            self.take(message);
        }
    }

    fn take(&self, message: Message) {
        let Some(reply_to) = message.reply else { return };
        if !self.shared.subjects.may_be_inbox(&reply_to) {
            return;
        }
        let this = self.clone();
        let Ok(permit) = Arc::clone(&this.shared.at_once).try_acquire_owned() else {
            let refusal = Refusal::new(Reason::Overloaded, "the node has too many questions in work");
            self.count(refusal.reason.name());
            tokio::spawn(async move {
                let _ = this.shared.client.publish(reply_to, refusal.encode().into()).await;
            });
            return;
        };
        tokio::spawn(async move {
            // Held until the last message is handed over: a reply that waits for the network takes memory.
            let mut permit = Some(permit);
            let span = this.span(message.headers.as_ref());
            let answering = pin!(this.answer(&message.payload, &mut permit));
            let answered = traces::within(span.as_ref(), answering).await;
            // It ends before the reply goes, so that it is within the span of the asking node.
            if let (Some(mut span), Err(refusal)) = (span, &answered) {
                span.fail(refusal.to_string());
            }
            let messages = answered.and_then(|reply| {
                split(&reply, this.shared.client.max_payload())
                    .ok_or_else(|| Refusal::new(Reason::TooLarge, "the reply is larger than 255 messages"))
            });
            this.count(messages.as_ref().map_or_else(|refusal| refusal.reason.name(), |_| "answered"));
            let messages = messages.unwrap_or_else(|refusal| vec![refusal.encode().into()]);
            for message in messages {
                // It fails only if the client is gone.
                let _ = this.shared.client.publish(reply_to.clone(), message).await;
            }
        });
    }

    /// The span of a question whose asking node traces it.
    fn span(&self, headers: Option<&HeaderMap>) -> Option<Span> {
        if !traces::is_on() {
            return None;
        }
        let caller = trace_headers::read_one(headers);
        // The traces of questions begin where the read does.
        if caller == Caller::None {
            return None;
        }
        let mut span = traces::begin(Kind::Server, "answer", || caller)?;
        span.attribute("ranktree.shard", u64::from(self.shard.id.0));
        Some(span)
    }

    fn count(&self, outcome: &'static str) {
        let shard = self.shard.id.to_string();
        metrics::counter!(QUESTIONS_ANSWERED_TOTAL, "shard" => shard, "outcome" => outcome).increment(1);
    }

    /// # Arguments
    /// `permit`: is given back while the question waits for a sequence.
    async fn answer(
        &self,
        bytes: &[u8],
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Vec<u8>, Refusal> {
        if bytes.first() == Some(&TRIM_FORMAT) {
            return self.trim(bytes, permit).await;
        }
        let asked = wire::decode_question(bytes).map_err(|why| not_understood(&why))?;
        self.check_goes_on()?;
        let terms = self.wait_for(Some(&asked.question), asked.least, asked.wait_ms, permit).await?;
        if !asked.may_be_behind && !self.level.is_level(&self.shard) {
            let words = "the shard may be behind what it could not see while the node was away";
            return Err(Refusal::new(Reason::NotLevel, words));
        }
        let terms = AskTerms { profiles: asked.profiles, ..terms };
        let mut reply = self.shard.answer(&asked.question, terms).await.map_err(refusal)?;
        reply.is_live &= self.level.is_level(&self.shard);
        wire::encode_reply(&mut reply)
            .map_err(|why| Refusal::new(Reason::TooLarge, format!("the reply is too large: {why}")))
    }

    /// Removes entries for another node.
    async fn trim(
        &self,
        bytes: &[u8],
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Vec<u8>, Refusal> {
        let asked = wire::decode_trim(bytes).map_err(|why| not_understood(&why))?;
        self.check_goes_on()?;
        self.wait_for(None, asked.least, asked.wait_ms, permit).await?;
        // It takes much longer than a question, and has a limit of its own.
        let trimmed = self.shared.trimming.step(self.shard.id, &asked.order);
        let trimmed = self.without_permit(trimmed, permit).await?;
        wire::encode_trimmed(&trimmed).map_err(|why| Refusal::new(Reason::TooLarge, why))
    }

    fn check_goes_on(&self) -> Result<(), Refusal> {
        if *self.shared.ending.borrow() {
            return Err(Refusal::new(Reason::Ending, "the node is shutting down"));
        }
        if !self.shard.health.is_filled() {
            return Err(refusal(NotAnswered::Unfilled));
        }
        Ok(())
    }

    /// Waits until the shard has applied what is asked for.
    ///
    /// # Arguments
    /// `question`: what is asked for, if it is a question.
    async fn wait_for(
        &self,
        question: Option<&Question<'_>>,
        least: Sequence,
        wait_ms: u32,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<AskTerms, Refusal> {
        let wait = Duration::from_millis(wait_ms.into()).min(WAIT_MAX);
        let terms = AskTerms { least, until: Some(Instant::now() + wait), profiles: false };
        if !self.shard.has_applied(question, least) {
            let Ok(_waiting) = self.shared.waiting.try_acquire() else {
                return Err(Refusal::new(Reason::Overloaded, "too many questions wait for the shard"));
            };
            self.without_permit(self.shard.wait_for(question, terms), permit).await.map_err(refusal)?;
        }
        Ok(terms)
    }

    /// Gives the permit back meanwhile: what waits keeps no other question out.
    async fn without_permit<T>(
        &self,
        waiting: impl Future<Output = T>,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> T {
        *permit = None;
        let waited = waiting.await;
        // As many as wait at most may come back at once.
        *permit = Arc::clone(&self.shared.at_once).acquire_owned().await.ok();
        waited
    }
}

fn not_understood(why: &Undecodable) -> Refusal {
    let reason = match why {
        Undecodable::Format { .. } => Reason::Format,
        Undecodable::Bytes(_) | Undecodable::TooLarge { .. } => Reason::Invalid,
    };
    Refusal::new(reason, format!("the question was not understood: {why}"))
}

fn refusal(why: NotAnswered) -> Refusal {
    let reason = match why {
        NotAnswered::Invalid(_) => Reason::Invalid,
        NotAnswered::NotYetApplied { .. } => Reason::NotYetApplied,
        NotAnswered::OtherHistory(_) => Reason::OtherHistory,
        NotAnswered::TooBusy(_) => Reason::Overloaded,
        // The same for whoever asks: another owner is asked, and this one is passed over.
        NotAnswered::Unfilled | NotAnswered::Ending => Reason::Ending,
        NotAnswered::Unreadable(_) => Reason::Unreadable,
    };
    Refusal::new(reason, why)
}
