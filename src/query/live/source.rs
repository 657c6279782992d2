//! What a feed is computed from: the shards, and the boards that there are.

use std::sync::Arc;

use crate::query::entries::VisitEntries;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::live::asked::NotLive;
use crate::query::metadata::{fill_few, with_metadata};
use crate::query::node::Node;
use crate::query::read::{Answer, BoardRead, NoBoard, OfBoard, read};
use crate::query::remote_shards::{ReadError, ReadOptions};
use crate::types::{BoardName, Timestamp};
use crate::window::Instance;
use crate::writer::{RegisteredBoard, Registry};

/// What a read of a watched board found, and whether some shard does not apply what is published.
pub(super) type Found<A> = (Result<Answer<A>, NoBoard>, bool);

pub(super) struct LiveSource {
    pub(super) node: Arc<Node>,
    pub(super) registry: Arc<Registry>,
}

impl LiveSource {
    /// A board, and its instance at that time.
    pub(super) fn find(
        &self,
        board: &BoardName,
        choice: WindowChoice,
        time: Timestamp,
    ) -> Result<(RegisteredBoard, Instance), NotLive> {
        let registered = self.registry.get(board.as_str()).ok_or(NoBoard::Unknown)?;
        let instance = InstanceAsked { choice, now: time }.of(&registered.definition);
        let instance = instance.map_err(NoBoard::Window)?;
        Ok((registered, instance))
    }

    /// Reads a board, with the metadata of its entries.
    ///
    /// # Errors
    /// When some shard does not reply, or what was asked for kept changing.
    pub(super) async fn read<R>(&self, asked: OfBoard<R>) -> Result<Found<R::Answer>, ReadError>
    where
        R: BoardRead<Answer: VisitEntries> + 'static,
    {
        let reply = read(&self.node, &self.registry, &asked, &ReadOptions::default()).await?;
        let mut answer = reply.answer;
        if self.node.remote.is_some() {
            return Ok((answer, reply.is_stale));
        }
        if !fill_few(&self.node, &mut answer) {
            let (node, registry) = (Arc::clone(&self.node), Arc::clone(&self.registry));
            let again = move || with_metadata(&node, &registry, &asked, false);
            let read = tokio::task::spawn_blocking(again).await;
            // A read that panicked is tried again like one that gave up.
            answer = read.unwrap_or(Err(ReadError::KeptChanging(1)))?;
        }
        Ok((answer, self.node.is_stale()))
    }
}
