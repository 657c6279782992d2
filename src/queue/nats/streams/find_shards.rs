//! How many shards there are, as the streams say: for a node that is not told.

use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::context::{ContextBuilder, GetStreamErrorKind};
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{Client, Event};

use crate::queue::nats::connect::connection::{explain_server_error, with_timeouts};
use crate::queue::nats::jetstream::{Settings, SetupError};
use crate::queue::nats::names::Names;
use crate::queue::nats::streams::boards_config::shards_of_service;
use crate::queue::nats::streams::jobs_config::shards_of;
use crate::types::{MAX_SHARDS, ShardId};

/// Between attempts while NATS cannot be reached.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long the server may take to answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The reason for waiting is logged this often.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The number of shards of the streams under this prefix; `None` if there are none, or they do not say.
/// Tries again for as long as NATS cannot be reached.
pub async fn find_shards(settings: &Settings) -> Result<Option<u16>, SetupError> {
    let names = Names::new(&settings.prefix);
    let client = connect(settings).await?;
    let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
    let mut logged: Option<Instant> = None;
    loop {
        let found = if client.connection_state() == State::Connected {
            find(&context, &names).await
        } else {
            Err("NATS cannot be reached".to_owned())
        };
        let reason = match found {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        };
        if logged.is_some_and(|logged| logged.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(
                reason,
                "it cannot be found out yet how many shards there are; trying again. With --shards this node \
                 starts without the answer"
            );
            logged = None;
        }
        logged.get_or_insert_with(Instant::now);
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// A connection for this alone. It has no metrics, because it does not last.
async fn connect(settings: &Settings) -> Result<Client, SetupError> {
    let access = &settings.access;
    let inbox = access.inbox.clone();
    let events = move |event| {
        match event {
            Event::ServerError(error) => {
                let error = explain_server_error(&error, &inbox);
                tracing::warn!(error, "the NATS server reported an error");
            }
            event => tracing::debug!("NATS: {event}"),
        }
        std::future::ready(())
    };
    with_timeouts(access.options())
        .name("ranktree find shards")
        .retry_on_initial_connect()
        .max_reconnects(None)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .event_callback(events)
        .connect(access.servers.addresses())
        .await
        .map_err(|error| SetupError::Connection(format!("no connection to {}: {error}", access.servers)))
}

async fn find(context: &Context, names: &Names) -> Result<Option<u16>, String> {
    if let Some(config) = config_of(context, &names.boards_stream()).await?
        && let Some(shards) = shards_of_service(&config)
    {
        return Ok(Some(shards));
    }
    // An operator has made the boards' stream, and it does not say; or it is lost. Any stream of jobs says
    // it. Mostly the first one is there.
    for shard in (0..MAX_SHARDS).map(ShardId) {
        if let Some(config) = config_of(context, &names.jobs_stream(shard)).await? {
            return Ok(shards_of(&config));
        }
    }
    Ok(None)
}

async fn config_of(context: &Context, stream: &str) -> Result<Option<Config>, String> {
    match context.get_stream(stream).await {
        Ok(stream) => Ok(Some(stream.cached_info().config.clone())),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Ok(None)
            }
            _ => Err(format!("it cannot be found out whether the stream {stream} exists: {error}")),
        },
    }
}
