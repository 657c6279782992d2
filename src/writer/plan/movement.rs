//! Plans what is kept of entries of `all` that change, so that readers learn where they were when the current
//! instance of another window began.
//!
//! Knows: that an entry is kept when it changes for the first time since, and that both parts of what is kept
//! are trees like those of instances. Must not know: how a position follows from them (`query::movement`).
//!
//! Per window there are two trees ([`MovementPart`]), of the members that changed since its instance began:
//! their entries as they were then, and as they are now. A member that came since is in the second only, and
//! one that left is in the first only. The time of a change is the effective time of its message.

use std::sync::Arc;

use crate::board::Definition;
use crate::state::{Entry, EntryState, Incarnation, TreeId};
use crate::tree::{Handle, Words};
use crate::types::{BoardName, MemberId};
use crate::window::{MovementPart, Span, Window};
use crate::writer::plan::Batch;

/// What is kept since the current instance of a window began.
#[derive(Clone)]
pub(super) struct KeptMovement {
    /// Of the board.
    incarnation: Incarnation,
    /// Of the instance.
    span: Span,
    then: KeptPart,
    now: KeptPart,
}

#[derive(Clone)]
struct KeptPart {
    name: BoardName,
    /// `None`: nothing is in it yet.
    tree: Option<TreeId>,
}

/// A board, with its life and its definition.
type OfBoard<'a> = (&'a BoardName, Incarnation, &'a Arc<Definition>);

impl KeptMovement {
    pub(super) fn trees(&self) -> impl Iterator<Item = TreeId> {
        [self.then.tree, self.now.tree].into_iter().flatten()
    }
}

impl Batch<'_> {
    /// After an entry of a board or an instance changed: keeps what movement needs of it, if the board has
    /// movement and the entry is one of `all`.
    pub(super) fn note_movement(
        &mut self,
        (name, incarnation, definition): OfBoard<'_>,
        member: (&MemberId, Handle),
        (before, after): (Option<&Entry>, Option<&Entry>),
    ) {
        if !definition.movement || name.is_instance() {
            return;
        }
        // A hidden entry has no position, as if it were not there.
        let (before, after) = (before.and_then(Entry::listed), after.and_then(Entry::listed));
        if before == after {
            return;
        }
        for window in definition.windows.iter().copied().filter(|window| *window != Window::All) {
            let Some(kept) = self.kept_movement((name, incarnation, definition), window) else { continue };
            let entry = |batch: &Self, part: &KeptPart| batch.entry(part.tree?, member.1);
            let (then, now) = (entry(self, &kept.then), entry(self, &kept.now));
            let board = (incarnation, definition);
            if then.is_none() && now.is_none() {
                self.keep(&kept.then, board, member, (None, before));
            }
            self.keep(&kept.now, board, member, (now, after));
        }
    }

    /// Puts words into a part of what is kept, or takes them out.
    fn keep(
        &mut self,
        part: &KeptPart,
        (incarnation, definition): (Incarnation, &Arc<Definition>),
        (member, handle): (&MemberId, Handle),
        (before, words): (Option<Entry>, Option<Words>),
    ) {
        let after = words.map(|words| entry_of(definition, words));
        if before == after {
            return;
        }
        let define = |batch: &mut Self| batch.define(&part.name, incarnation, None, Arc::clone(definition));
        let tree = part.tree.unwrap_or_else(|| define(self));
        self.hash_entry((&part.name, incarnation), member, (before.as_ref(), after.as_ref()));
        self.change(tree, handle, before.as_ref(), after);
    }

    /// What is kept since the instance of a window began that is current at the message. `None`: there is no
    /// such instance, as no season has begun.
    fn kept_movement(
        &mut self,
        (board, incarnation, definition): OfBoard<'_>,
        window: Window,
    ) -> Option<KeptMovement> {
        let now = self.time;
        let known = self.movements.get(board, window);
        if let Some(known) =
            known.filter(|known| known.incarnation == incarnation && known.span.contains(now))
        {
            return Some(known.clone());
        }
        let calendar = definition.calendar();
        let instance = calendar.instance_at(window, now)?;
        let span = calendar.span(instance)?;
        let part = |part: MovementPart| {
            let name = part.name_on_shards(instance, board);
            let known = self.board(&name).filter(|known| known.incarnation == incarnation);
            let tree = known.map(|known| known.tree);
            KeptPart { name, tree }
        };
        let kept =
            KeptMovement { incarnation, span, then: part(MovementPart::Then), now: part(MovementPart::Now) };
        self.movements.insert(board, window, kept.clone());
        Some(kept)
    }
}

/// An entry of these words that needs no more memory than they do.
fn entry_of(definition: &Definition, words: Words) -> Entry {
    let updated_at = definition.reached_at(words.as_slice()).unwrap_or_default();
    Entry { state: EntryState::Listed(words), updated_at, version: None, has_metadata: false }
}
