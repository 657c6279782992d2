//! What a board is: its keys and their directions, its policy, how it orders ties. Pure.
//!
//! Knows: how a score becomes words whose ascending order is best first, and back. Must not know: where
//! definitions are kept, or how they are written as JSON.
//!
//! - `definition`: what a definition consists of, and which are valid; `changed`: how one may change
//! - `read_only`: that a board, or the service, takes no writes
//! - `patch`: what a request names of a definition
//! - `times`: when instances close and are dropped, and when entries expire
//! - `scores`: scores and the words of a tree
//! - `combine`: scores of several boards combined
//! - `told`: a definition in words

mod changed;
mod combine;
mod definition;
mod patch;
mod read_only;
mod scores;
mod times;
mod told;

#[cfg(test)]
mod tests;

pub use combine::{
    Aggregate, COMBINED_ENTRIES_MAX, COMBINED_LOOKUPS_MAX, COMBINED_WEIGHT_MAX, Combination, CombinedColumn,
    CombinedScore, CombinedScores, ENTRIES_MAX, combine_scores, is_exact_weight, why_no_result,
};
pub use definition::{
    Beyond, DEFAULT_GRACE_MICROS, Definition, INSTANCES_MAX, InvalidDefinition, Key, KeyType, Kind,
    MAX_CAPACITY, MAX_DURATION_MICROS, MAX_KEEP, MIN_TTL_MICROS, OPEN_INSTANCES_MAX, Order, Policy, Ties,
};
pub use patch::{DefinitionPatch, Field, KeyPatch, SeasonsPatch};
pub use read_only::{MAX_REASON_BYTES, ReadOnly};
pub use scores::{ScoreRefused, decode, encode};
pub use told::offset;
