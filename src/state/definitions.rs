//! Equal definitions, kept once.
//!
//! Where there are thousands of boards, most have equal definitions: matches, clans, levels. Must not know
//! which board has which definition.

use std::collections::HashSet;
use std::sync::Arc;

use crate::board::Definition;

/// Different definitions that are remembered. Further boards keep definitions of their own, which costs
/// nothing extra if all differ. The bound keeps the search for unused ones to microseconds.
const REMEMBERED_MAX: usize = 256;

/// Definitions by their content.
#[derive(Default)]
pub struct Definitions {
    known: HashSet<Arc<Definition>>,
}

impl Definitions {
    /// The remembered definition that equals this one, or else this one.
    pub fn share(&mut self, definition: &Arc<Definition>) -> Arc<Definition> {
        if let Some(known) = self.known.get(definition) {
            return Arc::clone(known);
        }
        if self.known.len() >= REMEMBERED_MAX {
            self.known.retain(|known| Arc::strong_count(known) > 1);
        }
        if self.known.len() < REMEMBERED_MAX {
            self.known.insert(Arc::clone(definition));
        }
        Arc::clone(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeping(keep: usize) -> Arc<Definition> {
        let keep = u32::try_from(keep).expect("a small number");
        Arc::new(Definition { keep, ..Definition::default() })
    }

    #[test]
    fn equal_definitions_become_one() {
        let mut definitions = Definitions::default();
        let first = definitions.share(&keeping(1));
        assert!(Arc::ptr_eq(&first, &definitions.share(&keeping(1))));
        assert!(!Arc::ptr_eq(&first, &definitions.share(&keeping(2))));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_makes_room_for_what_is_in_use() {
        let mut definitions = Definitions::default();
        let held: Vec<_> = (0..REMEMBERED_MAX + 9).map(|keep| definitions.share(&keeping(keep))).collect();
        assert_eq!(definitions.known.len(), REMEMBERED_MAX);
        let surplus = definitions.share(&keeping(REMEMBERED_MAX + 1));
        assert!(!held.iter().any(|other| Arc::ptr_eq(&surplus, other)), "it was not remembered");
        drop(held);
        let shared = definitions.share(&keeping(REMEMBERED_MAX + 1));
        assert!(Arc::ptr_eq(&shared, &definitions.share(&keeping(REMEMBERED_MAX + 1))));
        assert_eq!(definitions.known.len(), 1, "those that nobody has are forgotten");
    }
}
