//! Traits to visit the entries of answers and of their parts.

use crate::query::answer::{Entry, Listed, Page};
use crate::types::AsOf;

/// Entries, whose metadata may still be on disk.
pub trait HoldsEntries {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed));
}

/// An answer whose entries all belong to one `as_of`.
pub trait OfOneMoment {
    /// Visits each entry, with the sequences that the answer is exact at.
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf));
}

impl HoldsEntries for Entry {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        visit(&mut self.listed);
    }
}

impl<E: HoldsEntries> HoldsEntries for Option<E> {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        if let Some(entries) = self {
            entries.each_entry(visit);
        }
    }
}

impl<E: HoldsEntries> HoldsEntries for Vec<E> {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for entry in self {
            entry.each_entry(visit);
        }
    }
}

impl HoldsEntries for Listed {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        visit(self);
    }
}

impl HoldsEntries for Page {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        self.entries.each_entry(visit);
    }
}
