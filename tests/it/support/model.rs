//! The oracle: a board as a list that is sorted anew for every question. Too simple to be wrong.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use ranktree::board::{Order, Ties};
use ranktree::types::Timestamp;

/// A member's score, and when it was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub score: Vec<i64>,
    pub reached: Timestamp,
}

/// Where an entry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub member: String,
    pub score: Vec<i64>,
    pub rank: usize,
    pub position: usize,
    pub better: usize,
    /// Itself included.
    pub tied: usize,
    pub worse: usize,
}

#[derive(Debug)]
pub struct Board {
    orders: Vec<Order>,
    ties: Ties,
    entries: BTreeMap<String, Entry>,
}

impl Board {
    pub fn new(orders: &[Order], ties: Ties) -> Self {
        Self { orders: orders.to_vec(), ties, entries: BTreeMap::new() }
    }

    /// One descending key, ties to the first: what a board is that nobody defined.
    pub fn with_defaults() -> Self {
        Self::new(&[Order::Descending], Ties::First)
    }

    pub fn set(&mut self, member: &str, score: &[i64], at: Timestamp) {
        // A score that stays as it was keeps its place among its ties.
        if self.entries.get(member).is_none_or(|entry| entry.score != score) {
            self.entries.insert(member.to_owned(), Entry { score: score.to_vec(), reached: at });
        }
    }

    pub fn best(&mut self, member: &str, score: &[i64], at: Timestamp) {
        if self.entries.get(member).is_none_or(|entry| self.compare_scores(score, &entry.score).is_lt()) {
            self.set(member, score, at);
        }
    }

    pub fn incr(&mut self, member: &str, step: &[i64], at: Timestamp) {
        let before =
            self.entries.get(member).map_or_else(|| vec![0; step.len()], |entry| entry.score.clone());
        let after: Vec<_> = before.iter().zip(step).map(|(before, step)| before + step).collect();
        self.set(member, &after, at);
    }

    pub fn remove(&mut self, member: &str) {
        self.entries.remove(member);
    }

    /// Every entry, best first.
    pub fn standings(&self) -> Vec<Standing> {
        let mut sorted: Vec<_> = self.entries.iter().collect();
        sorted.sort_by(|left, right| self.compare(*left, *right));
        let standing = |(index, (member, entry)): (usize, &(&String, &Entry))| {
            let (mut better, mut tied, mut worse) = (0, 0, 0);
            for (_, other) in &sorted {
                match self.compare_scores(&other.score, &entry.score) {
                    Ordering::Less => better += 1,
                    Ordering::Equal => tied += 1,
                    Ordering::Greater => worse += 1,
                }
            }
            let (member, score) = ((*member).clone(), entry.score.clone());
            Standing { member, score, rank: better + 1, position: index + 1, better, tied, worse }
        };
        sorted.iter().enumerate().map(standing).collect()
    }

    /// Less is better.
    fn compare_scores(&self, left: &[i64], right: &[i64]) -> Ordering {
        let keys = self.orders.iter().zip(left.iter().zip(right));
        keys.map(|(order, (left, right))| match order {
            Order::Ascending => left.cmp(right),
            Order::Descending => right.cmp(left),
        })
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
    }

    /// Less comes first.
    fn compare(&self, left: (&String, &Entry), right: (&String, &Entry)) -> Ordering {
        let by_tie_rule = || match self.ties {
            Ties::First => left.1.reached.cmp(&right.1.reached),
            Ties::Last => right.1.reached.cmp(&left.1.reached),
            Ties::Member | Ties::MemberDesc => Ordering::Equal,
        };
        let by_member = || {
            let ids = left.0.as_bytes().cmp(right.0.as_bytes());
            if self.ties == Ties::MemberDesc { ids.reverse() } else { ids }
        };
        self.compare_scores(&left.1.score, &right.1.score).then_with(by_tie_rule).then_with(by_member)
    }
}

/// An entry and up to that many on each side, of a board's standings.
pub fn around(standings: &[Standing], position: usize, above: usize, below: usize) -> &[Standing] {
    let start = (position - 1).saturating_sub(above);
    let end = (position + below).min(standings.len());
    standings.get(start..end).expect("start and end lie within the list")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000).expect("in range")
    }

    fn check(board: &Board, expect: &[(&str, usize, usize)]) {
        let standings = board.standings();
        let found: Vec<_> = standings.iter().map(|s| (s.member.as_str(), s.rank, s.position)).collect();
        assert_eq!(found, expect);
        for standing in &standings {
            assert_eq!(standing.better + standing.tied + standing.worse, expect.len());
        }
    }

    #[test]
    fn the_oracle_knows_the_examples_of_the_contract() {
        let mut board = Board::with_defaults();
        for (second, (member, score)) in (0..).zip([("c", 5), ("b", 7), ("a", 5), ("d", 1)]) {
            board.set(member, &[score], at(second));
        }
        check(&board, &[("b", 1, 1), ("c", 2, 2), ("a", 2, 3), ("d", 4, 4)]);
        board.set("c", &[5], at(9));
        board.best("b", &[6], at(9));
        check(&board, &[("b", 1, 1), ("c", 2, 2), ("a", 2, 3), ("d", 4, 4)]);
        board.incr("d", &[4], at(1));
        board.remove("b");
        check(&board, &[("c", 1, 1), ("d", 1, 2), ("a", 1, 3)]);
        board.incr("z", &[-1], at(0));
        assert_eq!(around(&board.standings(), 4, 1, 5).len(), 2);

        let mut race = Board::new(&[Order::Descending, Order::Ascending], Ties::Last);
        for (second, (member, score)) in
            (0..).zip([("a", [1, 9]), ("b", [1, 8]), ("c", [1, 8]), ("d", [2, 99])])
        {
            race.set(member, &score, at(second));
        }
        check(&race, &[("d", 1, 1), ("c", 2, 2), ("b", 2, 3), ("a", 4, 4)]);
    }
}
