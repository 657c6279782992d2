//! Which shards this node owns, and of how many, before any of them is opened.
//!
//! Knows: with `--own`, the number of shards is what `--shards` says, else what the data directory records,
//! else what the streams say. It is never guessed from the list. The streams are compared with it later,
//! when they are set up. Must not know: how shards are opened.

use std::future::Future;
use std::path::Path;

use crate::config::ServeConfig;
use crate::queue::nats;
use crate::service::ServiceError;
use crate::storage::{DataLayout, known_layout};

/// Decides the layout; `None` if `shutdown` completes while NATS is waited for.
///
/// # Errors
/// When the number of shards cannot be known, or there is no shard of a number that is to be owned.
pub async fn decide(
    config: &ServeConfig,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<DataLayout>, ServiceError> {
    let Some((own, settings)) = config.own.as_ref().zip(config.nats.as_ref()) else {
        return Ok(Some(DataLayout::all(config.shards.unwrap_or(1))));
    };
    let told = match config.shards {
        Some(shards) => Some(shards),
        None => recorded(&config.data_dir)?,
    };
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
    match own.highest().filter(|highest| highest.0 >= shards) {
        Some(beyond) => Err(ServiceError::OwnBeyondShards { own: beyond, shards }),
        None => Ok(Some(DataLayout { shards, own: own.clone() })),
    }
}

fn recorded(data_dir: &Path) -> Result<Option<u16>, ServiceError> {
    let known = known_layout(data_dir).map_err(ServiceError::DataDirectory)?;
    Ok(known.map(|known| known.shards))
}
