//! Metadata that a request sent with its jobs, echoed in its answer.

use crate::job::Metadata;
use crate::query::{EntryChange, ListedMetadata};
use crate::types::{BoardName, MemberId};

/// The metadata that a message's jobs have sent so far. The disk only has what the last of them left.
#[derive(Default)]
pub struct SentMetadata<'a>(Vec<(&'a MemberId, BoardName, &'a Metadata)>);

impl<'a> SentMetadata<'a> {
    /// Fills in the metadata of the entry as the job left it, if the message says it.
    ///
    /// # Arguments
    /// `sent`: what this job sent.
    pub fn fill_in(&mut self, member: &'a MemberId, sent: Option<&'a Metadata>, change: &mut EntryChange) {
        let is_same = |other: &MemberId, board: &BoardName| *other == *member && *board == change.board.name;
        let known = self.0.iter().position(|(other, board, _)| is_same(other, board));
        // A job that leaves the entry as it is, such as a `best` that is not better, leaves its metadata as
        // well.
        if let (Some(meta), true) = (sent, change.takes_metadata) {
            match known.and_then(|known| self.0.get_mut(known)) {
                Some((_, _, known)) => *known = meta,
                None => self.0.push((member, change.board.name.clone(), meta)),
            }
        }
        let known = self.0.iter().find(|(other, board, _)| is_same(other, board));
        if let (Some((_, _, meta)), Some(entry)) = (known, &mut change.entry)
            && matches!(entry.listed.metadata, ListedMetadata::OnDisk(..))
        {
            entry.listed.metadata = ListedMetadata::Json(meta.0.clone());
        }
    }
}
