//! What follows from the hashes of a shard's replicas. Pure.
//!
//! Knows: of two replicas that differ, one is wrong, and nothing says which. So a replica halts if another
//! one differs, unless more replicas have its own hash than differ from it. A replica that is halted goes on
//! once that has changed: the other one was mended, or a third one shows who is right. That a replica falls
//! silent is no evidence, and a copy of its data is none either. Must not know: where entries are read, or
//! how a shard is halted.

use std::collections::BTreeSet;

use crate::queue::nats::peers::hashes::{OtherHashes, OwnHashes};
use crate::state::is_in_same_segment;
use crate::storage::codec::Divergence;
use crate::types::{NodeName, Sequence};

/// What a replica does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    GoOn,
    /// It goes on, although others differ: more have its own hash.
    Outvoted(Divergence),
    /// Others differ, and what further ones say is not known yet.
    Wait(Divergence),
    /// It halts, or stays halted.
    Halt(Divergence),
}

/// The verdict, and how many others differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub differing: usize,
}

/// Judges a replica.
///
/// # Arguments
/// - `others`: the other owners that are alive, and whose hashes can be compared
/// - `unheard`: how many further owners that are alive have not said yet what they have
/// - `halted`: why it is halted, if it is
pub fn judge(
    own: &OwnHashes,
    others: &[OtherHashes],
    unheard: usize,
    halted: Option<&Divergence>,
) -> Judgement {
    let mut differences: Vec<Divergence> =
        others.iter().filter_map(|other| first_difference(own, other)).collect();
    differences.sort_by_key(|found| found.sequence);
    let Some(found) = halted.or(differences.first()).cloned() else {
        return Judgement { verdict: Verdict::GoOn, differing: 0 };
    };
    let mut against: Vec<&NodeName> = differences.iter().map(|found| &found.node).collect();
    let with: Vec<&OtherHashes> = others
        .iter()
        .filter(|other| !against.contains(&&other.node) && agrees_at(own, other, found.sequence))
        .collect();
    // It differed when it was heard of last.
    if !against.contains(&&found.node) && !with.iter().any(|other| other.node == found.node) {
        against.push(&found.node);
    }
    // A copy of a replica's data has its hashes, and shows nothing else.
    let own_origin = own.origin(halted);
    let agreeing: BTreeSet<&str> =
        with.iter().map(|other| other.origin()).chain(std::iter::once(own_origin)).collect();
    let origin_of = |node: &'_ &NodeName| {
        let other = others.iter().find(|other| other.node == **node);
        other.map_or(node.as_str(), OtherHashes::origin).to_owned()
    };
    let against_origins: BTreeSet<String> = against.iter().map(origin_of).collect();
    let differing = against.len();
    let verdict = match (halted, agreeing.len() > against_origins.len()) {
        (_, true) if differing == 0 => Verdict::GoOn,
        (_, true) => Verdict::Outvoted(found),
        (None, false) if others.len() + unheard > with.len() + differing => Verdict::Wait(found),
        (_, false) => Verdict::Halt(found),
    };
    Judgement { verdict, differing }
}

/// Leaves out what has been judged already: an owner that is halted because it differs from the replica whose
/// copy this one is, or from another copy of that one. If that replica goes on, it was found to be right, by
/// an operator or by a majority, and its copies go on with it. If it halts as well, they are judged by their
/// own hashes again. Tells whether what this replica is halted for is judged in this way.
pub fn leave_out_judged(own: &OwnHashes, others: &mut Vec<OtherHashes>, halted: Option<&Divergence>) -> bool {
    let Some(origin) = &own.copied_from else { return false };
    // The replica that was copied may itself be a copy, of a node that is no more.
    let has_same_origin =
        |other: &OtherHashes| other.node == *origin || other.copied_from.as_deref() == Some(origin.as_str());
    let go_on = others.iter().filter(|other| has_same_origin(other) && other.diverged.is_none());
    let right: Vec<NodeName> = go_on.map(|other| other.node.clone()).collect();
    let is_judged = |other: &OtherHashes| {
        let halted_for = other.diverged.as_ref().map(|diverged| diverged.node.as_str());
        halted_for.is_some_and(|node| right.iter().any(|right| right.as_str() == node))
    };
    let is_settled =
        halted.is_some_and(|found| others.iter().any(|other| other.node == found.node && is_judged(other)));
    others.retain(|other| !is_judged(other));
    is_settled
}

/// The first sequence at which another replica differs.
fn first_difference(own: &OwnHashes, other: &OtherHashes) -> Option<Divergence> {
    other.points.iter().find_map(|point| {
        let hash = own.hash_at(point.sequence).filter(|hash| *hash != point.hash)?;
        Some(Divergence {
            stream: own.stream.clone(),
            sequence: point.sequence,
            by: own.node.clone(),
            own: hash,
            node: other.node.clone(),
            theirs: point.hash,
        })
    })
}

/// Whether another replica has the same hash of what was applied up to a sequence: there, or later in the
/// same segment.
fn agrees_at(own: &OwnHashes, other: &OtherHashes, sequence: Sequence) -> bool {
    other.points.iter().any(|point| {
        is_in_same_segment(sequence, point.sequence) && own.hash_at(point.sequence) == Some(point.hash)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::peers::hashes::DivergedEntry;
    use crate::state::{HashPoint, LogHash, LogHashes};

    fn point(sequence: u64, hash: u64) -> HashPoint {
        HashPoint { sequence: Sequence(sequence), hash }
    }

    fn name(text: &str) -> NodeName {
        NodeName::new(text).expect("a good name")
    }

    fn own(points: &[(u64, u64)]) -> OwnHashes {
        let points = points.iter().map(|(sequence, hash)| point(*sequence, *hash));
        let hashes = LogHashes::new(LogHash::default(), points);
        OwnHashes {
            node: name("a"),
            stream: "S@1".to_owned(),
            hashes,
            found: None,
            copied_from: None,
            accepted_through: Sequence(0),
        }
    }

    fn other(name: &str, points: &[(u64, u64)]) -> OtherHashes {
        let points = points.iter().map(|(sequence, hash)| point(*sequence, *hash)).collect();
        OtherHashes { node: self::name(name), points, diverged: None, copied_from: None }
    }

    fn found(name: &str, sequence: u64, own: u64, theirs: u64) -> Divergence {
        let (stream, by, node) = ("S@1".to_owned(), self::name("a"), self::name(name));
        Divergence { stream, sequence: Sequence(sequence), by, own, node, theirs }
    }

    fn verdict(own: &OwnHashes, others: &[OtherHashes], halted: Option<&Divergence>) -> (Verdict, usize) {
        let Judgement { verdict, differing } = judge(own, others, 0, halted);
        (verdict, differing)
    }

    #[test]
    fn one_of_two_that_differ_halts_at_the_first_difference() {
        let own = own(&[(4, 1), (8, 2), (12, 3)]);
        assert_eq!(verdict(&own, &[], None), (Verdict::GoOn, 0));
        let same = [other("b", &[(8, 2), (12, 3), (16, 9)])];
        assert_eq!(verdict(&own, &same, None), (Verdict::GoOn, 0));
        let nothing_in_common = [other("b", &[(16, 9), (20, 9)])];
        assert_eq!(verdict(&own, &nothing_in_common, None), (Verdict::GoOn, 0));
        let differs = [other("b", &[(4, 1), (8, 7), (12, 8)])];
        assert_eq!(verdict(&own, &differs, None), (Verdict::Halt(found("b", 8, 2, 7)), 1));
    }

    #[test]
    fn the_majority_goes_on_and_a_tie_halts() {
        let own = own(&[(4, 1), (8, 2), (12, 3)]);
        let (b, c) = (other("b", &[(8, 7)]), other("c", &[(12, 3)]));
        let found = found("b", 8, 2, 7);
        assert_eq!(verdict(&own, &[b.clone(), c.clone()], None), (Verdict::Outvoted(found.clone()), 1));
        // What the third one says is not known yet, or is of another segment.
        for silent in [other("c", &[]), other("c", &[(4, 1)]), other("c", &[(36, 5)])] {
            let judged = verdict(&own, &[b.clone(), silent], None);
            assert_eq!(judged, (Verdict::Wait(found.clone()), 1));
        }
        let judged = judge(&own, std::slice::from_ref(&b), 1, None).verdict;
        assert_eq!(judged, Verdict::Wait(found.clone()), "a third one has said nothing yet");
        let d = other("d", &[(12, 4)]);
        let judged = verdict(&own, &[b.clone(), c, d.clone()], None);
        assert_eq!(judged, (Verdict::Halt(found.clone()), 2), "two of four");
        assert_eq!(verdict(&own, &[b, d], None), (Verdict::Halt(found), 2), "one of three");
    }

    #[test]
    fn a_halted_replica_goes_on_once_the_other_one_agrees_or_a_third_one_does() {
        let own = own(&[(4, 1), (8, 2), (12, 3), (32, 5)]);
        let halted = found("b", 8, 2, 7);
        let stays = (Verdict::Halt(halted.clone()), 1);
        for others in
            [vec![], vec![other("b", &[(8, 7)])], vec![other("b", &[(40, 7)])], vec![other("b", &[(4, 1)])]]
        {
            assert_eq!(verdict(&own, &others, Some(&halted)), stays, "{others:?}");
        }
        for mended in [&[(8, 2)], &[(12, 3)], &[(32, 5)]] {
            let judged = verdict(&own, &[other("b", mended)], Some(&halted));
            assert_eq!(judged, (Verdict::GoOn, 0), "{mended:?}");
        }
        let third = [other("c", &[(12, 3)])];
        assert_eq!(verdict(&own, &third, Some(&halted)), (Verdict::Outvoted(halted), 1));
    }

    #[test]
    fn a_copy_goes_on_with_the_replica_that_it_is_of() {
        let own = OwnHashes { copied_from: Some(name("b")), ..own(&[(8, 2)]) };
        let c = |from: &str| {
            let diverged = DivergedEntry { node: from.to_owned(), sequence: 8, by: "c".to_owned() };
            OtherHashes { diverged: Some(diverged), ..other("c", &[(8, 7)]) }
        };
        let judged = |others: &[OtherHashes]| {
            let mut others = others.to_vec();
            leave_out_judged(&own, &mut others, None);
            verdict(&own, &others, None)
        };
        let b = other("b", &[(8, 2)]);
        assert_eq!(judged(&[b.clone(), c("b")]), (Verdict::GoOn, 0));
        let halts = (Verdict::Halt(found("c", 8, 2, 7)), 1);
        assert_eq!(judged(&[b.clone(), c("d")]), halts, "it differs from another one");
        assert_eq!(judged(&[c("b")]), halts, "the origin is not heard of");
        let diverged = DivergedEntry { node: "c".to_owned(), sequence: 8, by: "b".to_owned() };
        let halted = OtherHashes { diverged: Some(diverged), ..b };
        assert_eq!(judged(&[halted, c("b")]), halts, "the origin is halted");
        let sister = |copied_from: &str| OtherHashes {
            copied_from: Some(copied_from.to_owned()),
            ..other("d", &[(8, 2)])
        };
        assert_eq!(judged(&[sister("b"), c("d")]), (Verdict::GoOn, 0), "another copy goes on");
        let outvoted = (Verdict::Outvoted(found("c", 8, 2, 7)), 1);
        assert_eq!(judged(&[sister("e"), c("d")]), outvoted, "it is a copy of other data, and has a vote");
    }

    /// Else a wrong replica that is copied would outvote the right one.
    #[test]
    fn a_copy_of_a_halted_replica_has_no_vote_of_its_own() {
        let own = own(&[(8, 2), (12, 3)]);
        let halted = found("b", 8, 2, 7);
        let b = other("b", &[(8, 7)]);
        let c = |by: &str| {
            let diverged = DivergedEntry { node: "b".to_owned(), sequence: 8, by: by.to_owned() };
            OtherHashes { diverged: Some(diverged), ..other("c", &[(8, 2)]) }
        };
        // The copy, as the copied one sees it, and the other way round.
        let copied = Divergence { by: name("c"), ..halted.clone() };
        for (by, found) in [("a", &halted), ("c", &copied)] {
            let judged = verdict(&own, &[b.clone(), c(by)], Some(found));
            assert_eq!(judged, (Verdict::Halt(found.clone()), 1), "{by}");
        }
        // One that has found it by itself.
        for by in ["c", ""] {
            let judged = verdict(&own, &[b.clone(), c(by)], Some(&halted));
            assert_eq!(judged, (Verdict::Outvoted(halted.clone()), 1), "{by}");
        }
        let mended = other("b", &[(8, 2)]);
        assert_eq!(verdict(&own, &[mended, c("a")], Some(&halted)), (Verdict::GoOn, 0));
    }

    /// Else the copy that a node fetches while its giver is being found to differ would outvote a right one.
    #[test]
    fn a_copy_has_no_vote_of_its_own_on_either_side() {
        let b = other("b", &[(8, 7)]);
        let of = |copied: &str, hashes: &OtherHashes| OtherHashes {
            copied_from: Some(copied.to_owned()),
            ..hashes.clone()
        };
        let own = own(&[(8, 2), (12, 3)]);
        let (c, d) = (other("c", &[(8, 2)]), other("d", &[(8, 7)]));
        let found = found("b", 8, 2, 7);
        let halts = |differing| (Verdict::Halt(found.clone()), differing);
        // A copy of this node's data, and another one of the same node's as this node's.
        assert_eq!(verdict(&own, &[b.clone(), of("a", &c)], None), halts(1));
        let copied = OwnHashes { copied_from: Some(name("e")), ..own.clone() };
        assert_eq!(verdict(&copied, &[b.clone(), of("e", &c)], None), halts(1));
        // One that has applied the log itself counts, and so does a copy of a third one's data.
        for third in [c.clone(), of("e", &c)] {
            let judged = verdict(&own, &[b.clone(), third], None);
            assert_eq!(judged, (Verdict::Outvoted(found.clone()), 1));
        }
        // Of the others, too.
        assert_eq!(verdict(&own, &[b.clone(), c.clone(), d.clone()], None), halts(2));
        let judged = verdict(&own, &[b.clone(), c, of("b", &d)], None);
        assert_eq!(judged, (Verdict::Outvoted(found.clone()), 2));
    }
}
