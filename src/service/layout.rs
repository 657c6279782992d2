//! Which shards this node owns, and of how many, before any of them is opened.
//!
//! Knows: with `--own`, the number of shards is what `--shards` says, else what the data directory records,
//! else what the streams say. It is never guessed from the list. A new directory is made only for a number
//! that the streams do not contradict, as far as they can be asked at once; they are compared again when they
//! are set up. Must not know: how shards are opened.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use crate::config::ServeConfig;
use crate::queue::nats;
use crate::service::ServiceError;
use crate::storage::{DataLayout, known_layout};

/// How long the streams are asked for the number of shards. Without an answer, a new directory is made.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// Decides the layout; `None` if `shutdown` completes while NATS is waited for.
///
/// # Errors
/// When the number of shards cannot be known, or there is no shard of a number that is to be owned.
pub async fn decide(
    config: &ServeConfig,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<DataLayout>, ServiceError> {
    let Some(settings) = &config.nats else {
        return Ok(Some(DataLayout::all(config.shards.unwrap_or(1))));
    };
    let recorded = recorded(&config.data_dir)?;
    let told = told(config, recorded);
    if let Some(wanted) = told.filter(|_| recorded.is_none()) {
        tokio::select! {
            checked = check_with_streams(settings, wanted) => checked?,
            () = &mut *shutdown => return Ok(None),
        }
    }
    let shards = if let Some(shards) = told {
        shards
    } else {
        tokio::select! {
            found = nats::find_shards(settings) => {
                found?.ok_or_else(|| ServiceError::UnknownShards { prefix: settings.prefix.clone() })?
            }
            () = shutdown => return Ok(None),
        }
    };
    of(config, shards).map(Some)
}

/// The number of shards, as far as the settings and the data directory say it.
pub fn told(config: &ServeConfig, recorded: Option<u16>) -> Option<u16> {
    match &config.own {
        Some(_) => config.shards.or(recorded),
        None => Some(config.shards.unwrap_or(1)),
    }
}

/// Which of so many shards this node owns.
///
/// # Errors
/// When it is to own one that there is not.
pub fn of(config: &ServeConfig, shards: u16) -> Result<DataLayout, ServiceError> {
    let Some(own) = &config.own else { return Ok(DataLayout::all(shards)) };
    match own.highest().filter(|highest| highest.0 >= shards) {
        Some(beyond) => Err(ServiceError::OwnBeyondShards { own: beyond, shards }),
        None => Ok(DataLayout { shards, own: own.clone() }),
    }
}

/// Refuses a number of shards for a new directory that the streams contradict. Asks them for a moment only: a
/// node starts without NATS, too.
async fn check_with_streams(settings: &nats::Settings, wanted: u16) -> Result<(), ServiceError> {
    let asked = tokio::time::timeout(ASK_TIMEOUT, nats::find_shards(settings)).await;
    match asked.unwrap_or(Ok(None))? {
        Some(found) if found != wanted => {
            Err(ServiceError::OtherShardsInStreams { prefix: settings.prefix.clone(), found, wanted })
        }
        Some(_) | None => Ok(()),
    }
}

fn recorded(data_dir: &Path) -> Result<Option<u16>, ServiceError> {
    let known = known_layout(data_dir).map_err(ServiceError::DataDirectory)?;
    Ok(known.map(|known| known.shards))
}
