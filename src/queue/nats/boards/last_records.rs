//! The records of the boards' stream, as they were when it was read from the beginning.

use std::collections::{HashMap, HashSet};

use crate::queue::nats::boards::decision::Record;
use crate::state::Incarnation;
use crate::types::BoardName;

/// The last record of each board, when the stream was read from the beginning.
#[derive(Default)]
pub struct LastRecords {
    pub records: HashMap<BoardName, Record>,
    /// Boards whose last record cannot be read. A newer version may have written it.
    pub unreadable: HashSet<BoardName>,
}

impl LastRecords {
    /// Whether the stream has a life of a board, or a later one.
    pub fn has_life(&self, name: &BoardName, life: Incarnation) -> bool {
        self.records.get(name).is_some_and(|recorded| recorded.decision.incarnation >= life)
    }
}
