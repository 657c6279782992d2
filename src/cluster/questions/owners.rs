//! Which owners of a shard are asked, and in which order.
//!
//! Knows: who owns a shard by the nodes' own entries, and who failed lately. A node that failed is passed
//! over until it was heard of again, unless there is no other. Must not know: how a question travels.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::queue::nats::Peers;
use crate::types::{NodeName, ShardId};

/// How often it is looked at who owns what. Entries are renewed every two seconds.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Another node, as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownOwner {
    pub name: NodeName,
    /// When it was last heard of.
    pub heard_at: Instant,
    /// The shards that it owns.
    pub shards: Vec<KnownShard>,
}

/// A shard of another node, as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownShard {
    pub id: ShardId,
    pub is_live: bool,
    /// What it has applied, as the node said last.
    pub applied: u64,
}

impl KnownOwner {
    fn shard(&self, id: ShardId) -> Option<KnownShard> {
        self.shards.iter().find(|owned| owned.id == id).copied()
    }
}

/// Tells which other nodes there are.
pub trait OwnerSource: Send + Sync {
    /// Those that are alive.
    fn owners(&self) -> Vec<KnownOwner>;
}

impl OwnerSource for Peers {
    fn owners(&self) -> Vec<KnownOwner> {
        let now = Instant::now();
        let alive = self.all().into_iter().filter(|node| node.is_alive);
        let owner = |node: crate::queue::nats::KnownNode| KnownOwner {
            heard_at: now.checked_sub(node.silent).unwrap_or(now),
            // A shard whose state was not said is one of which only a floor is known. Data of another stream
            // are not this shard's, and tokens mean nothing to them.
            shards: node
                .shards
                .iter()
                .filter(|shard| !shard.is_of_another_stream)
                .filter_map(|shard| {
                    let is_live = shard.state.as_deref()? == "live";
                    Some(KnownShard { id: shard.shard, is_live, applied: shard.applied.unwrap_or_default() })
                })
                .collect(),
            name: node.name,
        };
        alive.map(owner).collect()
    }
}

/// Whom to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `None`: whoever of the queue group gets the question.
    pub node: Option<NodeName>,
    /// Whether the shard may be behind there.
    pub may_be_behind: bool,
}

impl Choice {
    const ANY: Self = Self { node: None, may_be_behind: false };
}

/// The owners of all shards.
pub struct Owners {
    source: Arc<dyn OwnerSource>,
    known: RwLock<Arc<Vec<KnownOwner>>>,
    failed: Mutex<HashMap<(NodeName, Option<ShardId>), Instant>>,
    turn: AtomicUsize,
}

impl Owners {
    /// Looks now and then at who owns what, for as long as this is held.
    pub fn start(source: Arc<dyn OwnerSource>) -> Arc<Self> {
        let this = Arc::new(Self::new(source));
        tokio::spawn(Self::run(Arc::downgrade(&this)));
        this
    }

    fn new(source: Arc<dyn OwnerSource>) -> Self {
        let known = RwLock::new(Arc::new(source.owners()));
        Self { source, known, failed: Mutex::default(), turn: AtomicUsize::new(0) }
    }

    async fn run(this: Weak<Self>) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let Some(this) = this.upgrade() else { return };
            this.look();
        }
    }

    fn look(&self) {
        let known = Arc::new(self.source.owners());
        let heard_at = |name: &NodeName| known.iter().find(|owner| owner.name == *name).map(|o| o.heard_at);
        self.failed.lock().retain(|(name, _), failed_at| heard_at(name).is_some_and(|at| at <= *failed_at));
        *self.known.write() = known;
    }

    /// A node did not answer in time, for any shard.
    pub fn note_silent(&self, node: &NodeName) {
        self.failed.lock().insert((node.clone(), None), Instant::now());
    }

    /// A node does not answer for a shard.
    pub fn note_absent(&self, node: &NodeName, shard: ShardId) {
        self.failed.lock().insert((node.clone(), Some(shard)), Instant::now());
    }

    /// Whom to ask, one after the other: owners that are live, in turn; those that failed; the queue group;
    /// and in the end owners that may be behind, that which has applied most first.
    pub fn choices(&self, shard: ShardId) -> Vec<Choice> {
        let known = Arc::clone(&*self.known.read());
        let owning = |live: bool| {
            let owned = known.iter().filter_map(move |owner| Some((owner.shard(shard)?, owner)));
            let mut owned: Vec<_> = owned.filter(|(owned, _)| owned.is_live == live).collect();
            if !live {
                owned.sort_by_key(|(owned, _)| std::cmp::Reverse(owned.applied));
            }
            owned.into_iter().map(|(_, owner)| owner.name.clone()).collect::<Vec<_>>()
        };
        let (mut live, behind) = (owning(true), owning(false));
        if live.len() > 1 {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % live.len();
            live.rotate_left(turn);
            let failed = self.failed.lock();
            let has_failed = |name: &NodeName| {
                failed.contains_key(&(name.clone(), None))
                    || failed.contains_key(&(name.clone(), Some(shard)))
            };
            live.sort_by_cached_key(has_failed);
        }
        let mut choices: Vec<Choice> =
            live.into_iter().map(|node| Choice { node: Some(node), may_be_behind: false }).collect();
        // An owner may have come that is not known yet.
        choices.push(Choice::ANY);
        choices.extend(behind.into_iter().map(|node| Choice { node: Some(node), may_be_behind: true }));
        choices
    }

    /// Whether another node is known to have the shard live.
    pub fn has_live(&self, shard: ShardId) -> bool {
        self.known.read().iter().any(|owner| owner.shard(shard).is_some_and(|owned| owned.is_live))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Told(Mutex<Vec<KnownOwner>>);

    impl OwnerSource for Told {
        fn owners(&self) -> Vec<KnownOwner> {
            self.0.lock().clone()
        }
    }

    fn name(text: &str) -> NodeName {
        NodeName::new(text).expect("a good name")
    }

    fn owner(text: &str, live: bool) -> KnownOwner {
        let shards = vec![KnownShard { id: ShardId(0), is_live: live, applied: 0 }];
        KnownOwner { name: name(text), heard_at: Instant::now(), shards }
    }

    fn asked(owners: &Owners) -> Vec<String> {
        let text = |choice: Choice| {
            let node = choice.node.map_or("any".to_owned(), |node| node.to_string());
            if choice.may_be_behind { format!("({node})") } else { node }
        };
        owners.choices(ShardId(0)).into_iter().map(text).collect()
    }

    #[test]
    fn of_owners_that_are_behind_the_one_that_has_applied_most_is_asked_first() {
        let with = |text: &str, applied| {
            let mut owner = owner(text, false);
            owner.shards[0].applied = applied;
            owner
        };
        let told = Told(Mutex::new(vec![with("a", 0), with("b", 7), with("c", 5), owner("d", true)]));
        let owners = Owners::new(Arc::new(told));
        assert_eq!(asked(&owners), ["d", "any", "(b)", "(c)", "(a)"]);
    }

    #[test]
    fn a_node_that_failed_comes_last_until_it_is_heard_of_again() {
        let told = Arc::new(Told(Mutex::new(vec![owner("a", true), owner("b", true), owner("c", false)])));
        let source: Arc<dyn OwnerSource> = Arc::<Told>::clone(&told);
        let owners = Owners::new(source);
        assert_eq!(asked(&owners), ["a", "b", "any", "(c)"]);
        assert_eq!(asked(&owners), ["b", "a", "any", "(c)"]);
        owners.note_silent(&name("a"));
        owners.look();
        for _ in 0..3 {
            assert_eq!(asked(&owners), ["b", "a", "any", "(c)"]);
        }
        owners.note_absent(&name("b"), ShardId(0));
        owners.note_absent(&name("b"), ShardId(1));
        assert_eq!(asked(&owners).len(), 4, "if all have failed, all are asked");
        *told.0.lock() = vec![owner("a", true), owner("c", false)];
        owners.look();
        assert_eq!(asked(&owners), ["a", "any", "(c)"]);
        *told.0.lock() = vec![owner("c", false)];
        owners.look();
        assert_eq!(asked(&owners), ["any", "(c)"]);
        assert!(owners.failed.lock().is_empty(), "what is not known any more is forgotten");
    }
}
