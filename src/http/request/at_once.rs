//! A read of the plain form that is answered at once: from shards in memory, without the future, the call and
//! the permit of requests that may wait.
//!
//! Knows: what such a read may ask for. What it may not, and what would be refused, is left to the handler
//! that answers every request of the route: nothing is refused here, and nothing waits. So both give the same
//! answers, and this way has no errors to tell.

use crate::http::api::Api;
use crate::http::render::fields;
use crate::http::render::json::Object;
use crate::http::request::ask::INLINE_DISK_READS;
use crate::http::request::head::Segments;
use crate::http::request::params::Params;
use crate::http::request::plain::PlainRequest;
use crate::query::{
    Answer, BoardRead, InstanceAsked, OfBoard, VisitEntries, fill_metadata, missing_metadata, read_in_memory,
};
use crate::types::{AsOf, MemberId};

/// Parameters of reads that may wait, read more than the tree, or need no tree.
const NOT_AT_ONCE: [&str; 6] = ["after", "timeout_ms", "partial", "profile", "accuracy", "movement"];

/// Answers a read at once: appends the body, a JSON object. `None`: it is to be answered like any other, and
/// what was appended is not used.
pub type ReadAtOnce = fn(&AtOnce<'_>, &mut Vec<u8>) -> Option<()>;

/// A read that may be answered at once.
pub struct AtOnce<'r> {
    pub api: &'r Api,
    pub request: &'r PlainRequest<'r>,
    pub segments: &'r Segments,
}

impl<'r> AtOnce<'r> {
    fn segment(&self, name: &str) -> Option<&'r str> {
        let (_, place) = self.segments.iter().find(|(known, _)| *known == name)?;
        self.request.path().get(place.clone())
    }

    /// The board that the path names.
    pub fn board(&self) -> Option<&'r str> {
        self.segment("board")
    }

    pub fn member(&self) -> Option<MemberId> {
        MemberId::new(self.segment("member")?).ok()
    }

    /// The parameters, as [`Params::parse_read`] reads them.
    pub fn params(&self, known: &[&str]) -> Option<Params<'r>> {
        let params = Params::parse_read(self.request.query(), known).ok()?;
        if NOT_AT_ONCE.iter().any(|name| params.get(name).is_some()) { None } else { Some(params) }
    }

    /// Asks the board of the path for entries, with their metadata.
    pub fn ask_entries<R>(&self, params: &Params<'_>, read: R) -> Option<Answer<R::Answer>>
    where
        R: BoardRead<Answer: VisitEntries>,
    {
        let mut answer = self.ask(params, read)?;
        let missing = missing_metadata(&mut answer);
        if missing > INLINE_DISK_READS || (missing > 0 && !fill_metadata(&self.api.node, &mut answer)) {
            return None;
        }
        Some(answer)
    }

    /// Asks the board of the path for what needs no disk: counts.
    pub fn ask<R: BoardRead>(&self, params: &Params<'_>, read: R) -> Option<Answer<R::Answer>> {
        let Api { node, registry, .. } = self.api;
        if node.remote.is_some() {
            return None;
        }
        // The registry has the name already.
        let board = registry.name(self.board()?)?;
        let instance = InstanceAsked { choice: params.window().ok()?, now: self.api.now() };
        read_in_memory(node, registry, &OfBoard { board, instance, read }).ok()?.ok()
    }

    /// Writes what the answer was exact at, and whether it may be behind.
    pub fn write_answer_end(&self, object: &mut Object<'_>, as_of: &AsOf) {
        fields::as_of(object, as_of);
        self.write_freshness(object);
    }

    /// Writes that the answer may be behind, if that is so.
    pub fn write_freshness(&self, object: &mut Object<'_>) {
        if self.api.node.is_stale() {
            object.bool("stale", true);
        }
    }
}
