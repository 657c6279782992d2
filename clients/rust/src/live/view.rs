//! What is watched, put together from events.

use crate::Token;
use crate::live::LiveEvent;
use crate::types::{ListedEntry, LiveChanges};

/// The board as the events so far have told it.
///
/// ```no_run
/// # async fn example() -> Result<(), ranktree_client::Error> {
/// use futures_util::TryStreamExt;
/// use ranktree_client::{LiveView, Ranktree};
///
/// let client = Ranktree::new("http://127.0.0.1:8080")?;
/// let mut events = client.live("arena").top(10).members(["p42"]).stream();
/// let mut view = LiveView::default();
/// while let Some(event) = events.try_next().await? {
///     view.apply(event);
///     println!("{:?} {:?}", view.entries.first(), view.members.first());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LiveView {
    /// The instance that is watched, once it is known.
    pub window: Option<String>,
    /// Entries of the instance.
    pub total: u64,
    /// The top, best first.
    pub entries: Vec<ListedEntry>,
    /// Those of the watched members that are on the board, best first.
    pub members: Vec<ListedEntry>,
    /// Those that are not.
    pub not_found: Vec<String>,
    /// The sequences that this is exact at.
    pub as_of: Option<Token>,
    /// A shard does not answer, or does not apply what is published, so that this may be old.
    pub is_stale: bool,
    /// The connection is there. Without one, this is what was known before it was lost.
    pub is_connected: bool,
}

impl LiveView {
    /// Brings it up to date.
    pub fn apply(&mut self, event: LiveEvent) {
        match event {
            LiveEvent::State(state) => {
                *self = Self {
                    window: Some(state.window),
                    total: state.total,
                    entries: state.entries,
                    members: state.members,
                    not_found: state.not_found,
                    as_of: Some(state.as_of),
                    is_stale: state.stale,
                    is_connected: true,
                };
                self.members.sort_by_key(|entry| entry.position);
            }
            LiveEvent::Changes(changes) => self.change(changes),
            LiveEvent::Disconnected { .. } => self.is_connected = false,
        }
    }

    fn change(&mut self, changes: LiveChanges) {
        self.window = Some(changes.window);
        self.total = changes.total;
        self.as_of = Some(changes.as_of);
        self.is_stale = changes.stale;
        self.is_connected = true;
        self.not_found.retain(|member| !changes.members.iter().any(|entry| entry.member == *member));
        replace(&mut self.entries, changes.entries, &changes.left);
        replace(&mut self.members, changes.members, &changes.not_found);
        for member in changes.not_found {
            if !self.not_found.contains(&member) {
                self.not_found.push(member);
            }
        }
    }
}

/// Puts entries in the place of those of the same member, and takes others away.
fn replace(entries: &mut Vec<ListedEntry>, changed: Vec<ListedEntry>, left: &[String]) {
    entries.retain(|entry| {
        !left.contains(&entry.member) && !changed.iter().any(|other| other.member == entry.member)
    });
    entries.extend(changed);
    entries.sort_by_key(|entry| entry.position);
}
