//! Answers with entries, whose metadata is filled in once the answer is worked out.

use crate::query::answer::{Entry, Listed, Page};
use crate::query::lookup::Lookup;

/// An answer with entries in it.
pub trait HoldsEntries {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed));
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

impl HoldsEntries for Lookup {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for (listed, _) in &mut self.entries {
            visit(listed);
        }
    }
}
