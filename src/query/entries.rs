//! Traits to visit the entries of answers and of their parts.

use crate::query::answer::{Listed, MemberEntry, Page};
use crate::types::AsOf;

/// Entries, whose metadata may still be on disk.
pub trait VisitEntries {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed));
}

/// An answer whose entries all belong to one `as_of`.
pub trait ConsistentAnswer {
    /// Visits each entry, with the sequences that the answer is exact at.
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf));
}

impl VisitEntries for MemberEntry {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        visit(&mut self.listed);
    }
}

impl<E: VisitEntries> VisitEntries for Option<E> {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        if let Some(entries) = self {
            entries.each_entry(visit);
        }
    }
}

impl<V: VisitEntries, E> VisitEntries for Result<V, E> {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        if let Ok(entries) = self {
            entries.each_entry(visit);
        }
    }
}

impl<E: VisitEntries> VisitEntries for Vec<E> {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for entry in self {
            entry.each_entry(visit);
        }
    }
}

impl VisitEntries for Listed {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        visit(self);
    }
}

impl VisitEntries for Page {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        self.entries.each_entry(visit);
    }
}

impl<A: ConsistentAnswer, E> ConsistentAnswer for Result<A, E> {
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf)) {
        if let Ok(answer) = self {
            answer.each_entry_as_of(visit);
        }
    }
}
