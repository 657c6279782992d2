//! Which rows are on their way: whatever the connections do, everything before the first of these is settled.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::cli::import::read::Place;

/// A batch on its way: where its first row is, and a number of its own.
pub type Ticket = (Place, u64);

/// Batches that were begun and are not settled. Held for one insertion or removal a batch.
#[derive(Debug, Default)]
pub struct Pending(Mutex<(u64, BTreeSet<Ticket>)>);

impl Pending {
    pub fn begin(&self, first: Place) -> Ticket {
        let mut pending = self.0.lock();
        pending.0 += 1;
        let ticket = (first, pending.0);
        pending.1.insert(ticket);
        ticket
    }

    /// All rows of the batch are applied, or rejected.
    pub fn settle(&self, ticket: Ticket) {
        self.0.lock().1.remove(&ticket);
    }

    /// The first row that is not settled. `None`: there is none.
    pub fn first(&self) -> Option<Place> {
        self.0.lock().1.first().map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_is_not_settled_is_known_whatever_the_order() {
        let pending = Pending::default();
        assert_eq!(pending.first(), None);
        let [one, two, three] = [1, 2, 9].map(|line| pending.begin(Place::from(line)));
        pending.settle(two);
        assert_eq!(pending.first(), Some(Place::from(1)));
        pending.settle(one);
        assert_eq!(pending.first(), Some(Place::from(9)));
        pending.settle(three);
        assert_eq!(pending.first(), None);
    }
}
