//! The messages of one shard, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::nats::PublishError;
use crate::nats::batch::{Waiting, payload, take};
use crate::nats::link::Link;

/// Stores what comes, until nobody can send more.
pub(super) async fn run(link: Arc<Link>, shard: u32, mut incoming: mpsc::UnboundedReceiver<Waiting>) {
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            let Some(first) = incoming.recv().await else { return };
            waiting.push_back(first);
        }
        while let Ok(one) = incoming.try_recv() {
            waiting.push_back(one);
        }
        let message = take(&mut waiting);
        if !message.is_empty() {
            store(&link, shard, message).await;
        }
    }
}

async fn store(link: &Link, shard: u32, message: Vec<Waiting>) {
    let given = message.first().and_then(|one| one.message_id.clone());
    let message_id = given.unwrap_or_else(|| nuid::next().to_string());
    let outcome = link.store(shard, Bytes::from(payload(&message)), &message_id).await;
    for one in message {
        // Not the id of a shared message: the server would take one of its jobs, published again alone, for the
        // whole.
        let outcome = outcome.clone().map_err(|error| PublishError { message_id: one.message_id, ..error });
        // Nobody may wait any more.
        let _ = one.stored.send(outcome);
    }
}
