//! Boards that are watched: what watchers see, computed once for all who ask the same, and again only when
//! something has changed. `docs/internals/live.md` has the design.
//!
//! Knows: which boards are watched, how often each may be computed, and which of them have changed. Must not
//! know: HTTP, or how a state is written.
//!
//! - `asked`: what a watcher asks for
//! - `read`: one computation: the top, and members
//! - `state`: what one view shows at one moment
//! - `view`: what watchers of the same question share
//! - `source`: the shards and boards that all is computed from
//! - `found`: what one computation found
//! - `feed`: the views of one board, window and rate, which share a computation
//! - `check`: asks shards which boards have changed
//! - `watching`: one watcher
//! - `feeds`: all feeds, and which of them are watched
//! - `watched`: what is asked from outside, and the task that keeps them up to date

mod asked;
mod read;
mod state;

mod view;

mod source;

mod found;

mod feed;

mod check;
mod feeds;
mod watching;

mod watched;

pub use asked::{LiveAsked, LiveStart, NotLive};
pub use state::{LiveChange, LiveState};
pub use view::{Past, Shown};
pub use watched::{WatchedBoards, keep_live};
pub use watching::{LiveNews, Watching};
