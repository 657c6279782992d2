//! When a replica halts, and when a halted one goes on, as it hears of the others. Pure.
//!
//! Knows: nodes tell what they have every two seconds, each at its own time, and what was heard of one may be
//! older than what was heard of another. So a verdict that one more entry may change is waited with. Must not
//! know: what follows from hashes (`judge`), or where they are read.

use std::time::{Duration, Instant};

use crate::queue::nats::peers::hashes::{OtherHashes, OwnHashes};
use crate::queue::nats::peers::judge::{Judgement, Verdict, judge, leave_out_judged};
use crate::queue::nats::peers::owners::HashesOfOthers;
use crate::storage::codec::Divergence;

/// How long is waited until all owners have said what they have: a few renewals.
const OTHERS_HEARD_AFTER: Duration = Duration::from_secs(6);

/// What is remembered of a shard's earlier verdicts.
#[derive(Default)]
pub struct Deliberation {
    /// Since when another replica has differed without a verdict.
    differs_since: Option<Instant>,
    /// Since when the replica that this one is a copy of has gone on although another one is halted for
    /// differing from it, which this one is halted for as well.
    settled_since: Option<Instant>,
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    GoOn,
    /// It goes on, although others differ: more have its own hash.
    Outvoted(Divergence),
    /// It stays as it is, halted or not.
    Undecided,
    /// It was not halted, and halts.
    Halt(Divergence),
    /// It was halted, and goes on.
    Resume,
}

/// The decision, and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub decision: Decision,
    /// How many others differ.
    pub differing: usize,
    /// Whether another one is halted for a difference that is not judged; `None` if not all that are alive
    /// were heard, or there is none.
    pub asks: Option<bool>,
}

impl Deliberation {
    /// Decides on what is known now.
    ///
    /// # Arguments
    /// `halted`: why it is halted, if it is.
    pub fn decide(
        &mut self,
        own: &OwnHashes,
        others: HashesOfOthers,
        halted: Option<&Divergence>,
        now: Instant,
    ) -> Decided {
        let HashesOfOthers { said: mut others, unheard } = others;
        let is_settled = leave_out_judged(own, &mut others, halted);
        // The replica that was copied may be about to say that it is halted, too.
        let settled = waited(&mut self.settled_since, is_settled, now);
        let counting = halted.filter(|_| settled.is_none_or(|waited| waited < OTHERS_HEARD_AFTER));
        let Judgement { verdict, differing } = judge(own, &others, unheard, counting);
        let differs = waited(&mut self.differs_since, matches!(verdict, Verdict::Wait(_)), now);
        let decision = match verdict {
            Verdict::GoOn | Verdict::Outvoted(_) if halted.is_some() => Decision::Resume,
            Verdict::GoOn => Decision::GoOn,
            Verdict::Outvoted(found) => Decision::Outvoted(found),
            Verdict::Wait(_) | Verdict::Halt(_) if halted.is_some() => Decision::Undecided,
            Verdict::Wait(_) if differs.is_none_or(|waited| waited < OTHERS_HEARD_AFTER) => {
                Decision::Undecided
            }
            Verdict::Wait(found) | Verdict::Halt(found) => Decision::Halt(found),
        };
        let asks = others.iter().any(|other: &OtherHashes| other.diverged.is_some());
        Decided { decision, differing, asks: (!others.is_empty() && unheard == 0).then_some(asks) }
    }
}

/// For how long something has been so, if it is.
fn waited(since: &mut Option<Instant>, is_so: bool, now: Instant) -> Option<Duration> {
    if !is_so {
        *since = None;
        return None;
    }
    Some(now.saturating_duration_since(*since.get_or_insert(now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::peers::hashes::DivergedEntry;
    use crate::state::{HashPoint, LogHash, LogHashes};
    use crate::types::{NodeName, Sequence};

    const RIGHT: u64 = 1;
    const WRONG: u64 = 9;

    fn name(text: &str) -> NodeName {
        NodeName::new(text).expect("a good name")
    }

    /// A replica that has applied up to message 32.
    fn other(node: &str, hash: u64, halted_for: Option<&str>) -> OtherHashes {
        let diverged = halted_for.map(|other| DivergedEntry {
            node: other.to_owned(),
            sequence: 32,
            by: node.to_owned(),
        });
        let points = vec![HashPoint { sequence: Sequence(32), hash }];
        OtherHashes { node: name(node), points, diverged, copied_from: None }
    }

    /// The node c, which has a copy of what the node a had at message 32.
    struct Copy {
        own: OwnHashes,
        deliberation: Deliberation,
        halted: Option<Divergence>,
        now: Instant,
    }

    impl Copy {
        fn of(origin: &str) -> Self {
            let point = HashPoint { sequence: Sequence(32), hash: RIGHT };
            let own = OwnHashes {
                node: name("c"),
                stream: "S@1".to_owned(),
                hashes: LogHashes::new(LogHash::at(point), []),
                found: None,
                copied_from: Some(name(origin)),
                accepted_through: Sequence(0),
            };
            Self { own, deliberation: Deliberation::default(), halted: None, now: Instant::now() }
        }

        /// What it does after it has heard this for so many seconds: whether it is halted.
        fn hears(&mut self, said: &[OtherHashes], unheard: usize, seconds: u64) -> bool {
            for look in 0..=seconds * 2 {
                let others = HashesOfOthers { said: said.to_vec(), unheard };
                self.now += Duration::from_millis(if look == 0 { 1 } else { 500 });
                match self.deliberation.decide(&self.own, others, self.halted.as_ref(), self.now).decision {
                    Decision::Halt(found) => {
                        assert_eq!(self.halted, None, "it halts once");
                        self.halted = Some(found);
                    }
                    Decision::Resume => self.halted = None,
                    Decision::GoOn | Decision::Outvoted(_) | Decision::Undecided => {}
                }
            }
            self.halted.is_some()
        }
    }

    /// The operator has just started a anew, as the one that is right, and b says what it has before a does.
    #[test]
    fn a_copy_waits_until_the_copied_replica_says_that_it_goes_on() {
        let (a, b) = (other("a", RIGHT, None), other("b", WRONG, Some("a")));
        let mut copy = Copy::of("a");
        assert!(!copy.hears(std::slice::from_ref(&b), 1, 5), "a has not said anything yet");
        assert!(!copy.hears(&[a, b.clone()], 0, 60));
        assert!(!copy.hears(std::slice::from_ref(&b), 1, 5), "a is started again");
        assert!(copy.hears(std::slice::from_ref(&b), 1, 2), "it has not said anything for long");
        let mut copy = Copy::of("a");
        assert!(copy.hears(&[b], 0, 0), "there is no other one");
    }

    #[test]
    fn a_halted_copy_goes_on_once_the_copied_replica_does() {
        let (a, b) = (other("a", RIGHT, None), other("b", WRONG, Some("a")));
        let halted = other("a", RIGHT, Some("b"));
        let mut copy = Copy::of("a");
        assert!(copy.hears(&[halted.clone(), b.clone()], 0, 60));
        assert!(copy.hears(std::slice::from_ref(&b), 1, 60), "a is started again");
        assert!(copy.hears(&[a.clone(), b.clone()], 0, 5), "it may be about to halt");
        assert!(!copy.hears(&[a.clone(), b.clone()], 0, 1));
        assert!(!copy.hears(&[a.clone(), b.clone()], 0, 60));
        // What was heard of a may be older than what was heard of b.
        let mut copy = Copy::of("a");
        assert!(copy.hears(&[other("b", WRONG, None)], 0, 0));
        assert!(copy.hears(&[a.clone(), b.clone()], 0, 3));
        assert!(copy.hears(&[halted, b.clone()], 0, 3));
        assert!(copy.hears(&[a.clone(), b.clone()], 0, 3), "it has gone on for six seconds without halting");
        // Another one that differs is not judged with it.
        let d = other("d", WRONG, None);
        assert!(copy.hears(&[a.clone(), b.clone(), d], 0, 60));
        assert!(!copy.hears(&[a, b], 0, 0));
    }

    /// The replica that was copied was a copy itself, of a node that was taken out of service.
    #[test]
    fn a_copy_of_a_copy_goes_on_with_it() {
        let a = OtherHashes { copied_from: Some("gone".to_owned()), ..other("a", RIGHT, None) };
        let b = other("b", WRONG, Some("a"));
        let mut copy = Copy::of("gone");
        assert!(copy.hears(std::slice::from_ref(&b), 0, 1));
        assert!(!copy.hears(&[a, b], 0, 6));
    }

    /// Else a mended replica would no longer say what the halted one waits for, when that one is restarted.
    #[test]
    fn it_is_not_known_that_nobody_waits_before_all_are_heard() {
        let (own, now) = (Copy::of("a").own, Instant::now());
        let asks = |said: &[OtherHashes], unheard| {
            let others = HashesOfOthers { said: said.to_vec(), unheard };
            Deliberation::default().decide(&own, others, None, now).asks
        };
        let (d, waits) = (other("d", RIGHT, None), other("e", RIGHT, Some("c")));
        assert_eq!(asks(std::slice::from_ref(&d), 0), Some(false));
        assert_eq!(asks(&[d.clone(), waits], 0), Some(true));
        assert_eq!((asks(&[d], 1), asks(&[], 0)), (None, None));
    }

    #[test]
    fn a_difference_waits_for_owners_that_have_not_been_heard() {
        let mut own = Copy::of("a");
        own.own.copied_from = None;
        let (b, d) = (other("b", WRONG, None), other("d", RIGHT, None));
        assert!(!own.hears(std::slice::from_ref(&b), 1, 5));
        assert!(!own.hears(&[b.clone(), d], 0, 60), "more have its hash");
        assert!(!own.hears(std::slice::from_ref(&b), 1, 5), "the third one is started again");
        assert!(own.hears(&[b], 1, 1));
    }
}
