//! Instances that have not begun by the time of their shard.

use std::collections::BTreeSet;

use crate::types::{BoardName, Timestamp};

/// Instances by the time at which they begin. Only jobs of a leap enter such; see
/// [`ShardTime`](crate::state::ShardTime).
pub type EarlyInstances = BTreeSet<(Timestamp, BoardName)>;
