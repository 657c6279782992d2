//! Watches whether shards need copies, and tries until they have them.
//!
//! Knows: which owners failed lately, what is logged and counted, and how a checked copy gets to the writer.
//! Must not know: how a copy is fetched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot, watch};

use crate::cluster::copies::choose::{Owners, owners_of};
use crate::cluster::copies::fetch::{Fetch, NotFetched, StagedCopy};
use crate::metrics as names;
use crate::queue::nats::{Connection, CopyOutlook, Hearing, JetStream, NatsShard, NeededCopy};
use crate::snapshot::StagedCopies;
use crate::types::{NodeName, Sequence};
use crate::writer::CopyToInstall;

/// How often it is looked who owns a shard.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long an owner is passed over after a failure. It doubles with each.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The same after a copy that was damaged.
const PAUSE_DAMAGED: Duration = Duration::from_secs(300);
/// How long the writer may take to take up a copy: it may be at a batch, or at reopening its store.
const TAKEN_WITHIN: Duration = Duration::from_secs(300);
/// Why a shard gets no copy although another node might give one.
const DIFFERS: &str = "another replica of it was found to differ, which is to be settled first";

/// Fetches what this node's shards need.
pub struct Healer {
    nats: Arc<JetStream>,
    connection: Connection,
    staged: Arc<StagedCopies>,
    /// One copy at a time: checking one loads the shard into memory.
    turn: Mutex<()>,
}

/// Owners that failed, and until when each is passed over.
#[derive(Default)]
struct Failures(BTreeMap<NodeName, (Instant, Duration)>);

impl Failures {
    fn note(&mut self, node: &NodeName, damaged: bool) {
        let pause = self.0.get(node).map_or(PAUSE_FIRST, |(_, before)| (*before * 2).min(PAUSE_MAX));
        let pause = if damaged { PAUSE_DAMAGED } else { pause };
        self.0.insert(node.clone(), (Instant::now() + pause, pause));
    }

    fn is_passed_over(&self, node: &NodeName) -> bool {
        self.0.get(node).is_some_and(|(until, _)| Instant::now() < *until)
    }
}

impl Healer {
    pub fn new(nats: Arc<JetStream>, connection: Connection, staged: StagedCopies) -> Self {
        Self { nats, connection, staged: Arc::new(staged), turn: Mutex::default() }
    }

    /// Gets a shard whatever copy it needs, for as long as the service runs.
    pub async fn watch(&self, shard: &NatsShard) {
        let mut need = shard.stream.copies.need();
        let needed = metrics::gauge!(names::SHARD_COPY_NEEDED, "shard" => shard.id.to_string());
        for direction in ["fetched", "given"] {
            metrics::gauge!(names::COPIES_UNDER_WAY, "direction" => direction).increment(0.0);
            metrics::counter!(names::COPY_BYTES_TOTAL, "direction" => direction).increment(0);
        }
        for result in ["installed", "failed", "damaged"] {
            metrics::counter!(names::COPIES_TOTAL, "result" => result).increment(0);
        }
        loop {
            needed.set(0.0);
            if need.wait_for(Option::is_some).await.is_err() {
                return;
            }
            needed.set(1.0);
            self.heal(shard, &mut need).await;
            // It has the copy, or goes on without one.
            shard.stream.copies.hold_fetched(None);
            shard.health.set(|health| health.copying = None);
        }
    }

    /// Tries until the shard has a copy, or needs none any more.
    async fn heal(&self, shard: &NatsShard, need: &mut watch::Receiver<Option<NeededCopy>>) {
        let (mut failures, mut unread_since, mut logged) = (Failures::default(), None, String::new());
        let known = shard.stream.copies.outlook();
        loop {
            let Some(needed) = need.borrow_and_update().clone() else { return };
            let owners = match shard.health.divergence() {
                // Its writer takes up nothing until that is settled.
                Some(_) => Err(CopyOutlook::Nobody(DIFFERS.to_owned())),
                None => self.owners(shard, &needed, &mut unread_since),
            };
            match owners {
                Ok(givers) => {
                    if let Some(giver) = givers.iter().find(|giver| !failures.is_passed_over(giver)) {
                        if self.try_from(shard, giver, &needed, need, &mut failures).await {
                            return;
                        }
                        continue;
                    }
                }
                Err(outlook) => {
                    if let CopyOutlook::Nobody(why) = &outlook
                        && logged != *why
                    {
                        tracing::warn!(shard = %shard.id, reason = needed.reason, why, "the shard needs a copy of another node's data, and none can be had");
                        logged.clone_from(why);
                    }
                    // It stays halted until there is a giver, also while nobody can be heard.
                    let is_halted = matches!(*known.borrow(), CopyOutlook::Nobody(_));
                    if outlook != CopyOutlook::Looking || !is_halted {
                        shard.stream.copies.set_outlook(outlook);
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                _ = need.changed() => {}
            }
        }
    }

    /// The nodes that may be asked, or what is to be said instead.
    fn owners(
        &self,
        shard: &NatsShard,
        needed: &NeededCopy,
        unread_since: &mut Option<Instant>,
    ) -> Result<Vec<NodeName>, CopyOutlook> {
        let peers = &self.nats.peers;
        // Before the nodes: what is said of these is as of then or later.
        let hearing = peers.hearing();
        let unread = match hearing {
            Hearing::Unread => unread_since.get_or_insert_with(Instant::now).elapsed(),
            Hearing::Listening | Hearing::Heard => {
                *unread_since = None;
                Duration::ZERO
            }
        };
        let advice = match shard.stream.copies.lost() {
            Some(_) => "restore the data directory from a snapshot, or move all of it away to begin with empty boards".to_owned(),
            None => format!(
                "replace this shard's directory with a copy from a node that has applied them, or start with --accept-gap {} to continue without them",
                shard.id
            ),
        };
        match owners_of(shard.id, &peers.all(), needed.first) {
            Owners::Givers(names) => Ok(names),
            owners => Err(owners.outlook(hearing, unread, &advice)),
        }
    }

    /// Whether the shard goes on from a copy now, or needs none any more.
    async fn try_from(
        &self,
        shard: &NatsShard,
        giver: &NodeName,
        needed: &NeededCopy,
        need: &mut watch::Receiver<Option<NeededCopy>>,
        failures: &mut Failures,
    ) -> bool {
        let copies = &shard.stream.copies;
        copies.set_outlook(CopyOutlook::Coming(format!(
            "it is to get a copy from the node {giver}, one shard of this node after the other"
        )));
        let turn = self.turn.lock().await;
        if need.borrow().is_none() {
            return true;
        }
        copies.set_outlook(CopyOutlook::Coming(format!("a copy from the node {giver} is on its way")));
        tracing::warn!(shard = %shard.id, node = %giver, reason = needed.reason, "the shard needs a copy of another node's data; asking for one");
        let under_way = metrics::gauge!(names::COPIES_UNDER_WAY, "direction" => "fetched");
        under_way.set(1.0);
        let (nats, connection, staged) = (&*self.nats, &self.connection, &self.staged);
        let fetch = Fetch { nats, connection, staged, shard, giver };
        let fetched = tokio::select! {
            fetched = fetch.run(needed) => Some(fetched),
            _ = need.wait_for(Option::is_none) => None,
        };
        // The next one may be fetched, whatever this shard's writer is at.
        drop(turn);
        let installed = match fetched {
            Some(Ok(copy)) => Some(self.install(shard, giver, copy).await),
            Some(Err(error)) => Some(Err(error)),
            None => None,
        };
        under_way.set(0.0);
        shard.health.set(|health| health.copying = None);
        let result = |result: &'static str| {
            metrics::counter!(names::COPIES_TOTAL, "result" => result).increment(1);
        };
        let failed = match installed {
            Some(Ok(())) => {
                result("installed");
                return true;
            }
            None => {
                tracing::info!(shard = %shard.id, "the stream continues what was applied again, so no copy is needed");
                self.discard(shard);
                return true;
            }
            Some(Err(failed)) => failed,
        };
        // The floor stays at the copy's until there is another one: it is no greater than that one's.
        self.discard(shard);
        let is_damaged = matches!(failed, NotFetched::Damaged(_));
        result(if is_damaged { "damaged" } else { "failed" });
        failures.note(giver, is_damaged);
        let (NotFetched::Failed(why) | NotFetched::Damaged(why) | NotFetched::NotHere(why)) = failed;
        tracing::warn!(shard = %shard.id, node = %giver, why, is_damaged, "no copy of the shard could be got from another node; trying again");
        copies.set_outlook(CopyOutlook::Coming(format!(
            "the last attempt to get a copy from the node {giver} failed ({why}), and another one follows"
        )));
        false
    }

    /// Hands a staged copy to the writer, and waits until the shard goes on from it.
    async fn install(&self, shard: &NatsShard, from: &NodeName, copy: StagedCopy) -> Result<(), NotFetched> {
        let (done, is_done) = oneshot::channel();
        let (staged, stream, id) = (Arc::clone(&self.staged), Arc::clone(&shard.stream), shard.id);
        let put_in_place = move || {
            staged.put_in_place(id)?;
            stream.copies.set_lost(None);
            Ok(())
        };
        shard.stream.copies.install(CopyToInstall {
            from: from.clone(),
            applied: Sequence(copy.applied),
            put_in_place: Box::new(put_in_place),
            done,
        });
        self.wait_for_writer(shard, is_done).await?;
        tracing::info!(shard = %shard.id, applied = copy.applied, bytes = copy.bytes, "a copy of another node's data is in place");
        Ok(())
    }

    /// Waits until the writer has taken the copy up. Takes it back if the writer does not come to it.
    async fn wait_for_writer(
        &self,
        shard: &NatsShard,
        mut is_done: oneshot::Receiver<()>,
    ) -> Result<(), NotFetched> {
        let began = Instant::now();
        loop {
            tokio::select! {
                done = &mut is_done => {
                    let not_taken = |_| NotFetched::NotHere("the writer did not take the copy".to_owned());
                    return done.map_err(not_taken);
                }
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            let why = if shard.health.divergence().is_some() {
                DIFFERS
            } else if began.elapsed() >= TAKEN_WITHIN {
                "the shard's writer does not come to it"
            } else {
                continue;
            };
            // Else the writer has it, and goes on until it is in place.
            if shard.stream.copies.take_to_install().is_some() {
                return Err(NotFetched::NotHere(why.to_owned()));
            }
        }
    }

    fn discard(&self, shard: &NatsShard) {
        if let Err(error) = self.staged.discard(shard.id) {
            tracing::warn!(shard = %shard.id, %error, "an incomplete copy could not be removed; a start removes it");
        }
    }
}
