//! What a loaded entry is.

use super::*;
use crate::types::Score;

/// Extras are copied later than the tree's pages: a member is on the board there, and removed or hidden
/// here.
#[test]
fn a_loaded_entry_is_listed_or_not_and_never_both() {
    let definition = Arc::new(Definition::default());
    let board = BoardName::new("b").expect("a good name");
    let score = Score::new(&[1]).expect("one key");
    let words = definition.entry_words(&score, Timestamp::default(), b"m");
    let not_listed = [Some(Unlisted::Removed), Some(Unlisted::Hidden(Box::new(words))), None];
    for (unlisted, all_together) in not_listed.iter().flat_map(|how| [(how, false), (how, true)]) {
        let extra = Extra {
            updated_at: Timestamp::MAX,
            version: Some(7),
            has_metadata: true,
            unlisted: unlisted.clone(),
        };
        let tree = Tree::from_sorted(definition.columns(), [(words, Handle(3))]);
        let mut window = WindowTree::from_tree(board.clone(), Arc::clone(&definition), tree);
        if all_together {
            let tie_break_times = window.tie_break_times(4).expect("a quarter of the members is listed");
            let extras = [(Handle(3), extra.clone()), (Handle(4), extra)];
            window.load_extras(&extras, Some(&tie_break_times));
        } else {
            window.load_extra(Handle(3), &extra);
            window.load_extra(Handle(4), &extra);
        }
        assert_eq!(window.handles().collect::<Vec<_>>(), [Handle(3), Handle(4)]);
        let loaded = |handle| window.entry(handle).map(|entry| (entry.state, entry.version));
        assert_eq!(loaded(Handle(3)), Some((EntryState::Listed(words), Some(7))));
        let state = match unlisted {
            Some(Unlisted::Hidden(_)) => EntryState::Hidden(words),
            Some(Unlisted::Removed) | None => EntryState::Removed,
        };
        assert_eq!(loaded(Handle(4)), Some((state, Some(7))));
        assert_eq!(window.entry(Handle(4)).map(|entry| entry.updated_at), Some(Timestamp::MAX));
    }
}
