//! Says that a new service begins, because no stream had its prefix. A mistyped prefix begins one, too, so
//! the prefixes of other services on the server are said with it.
//!
//! Must not know: how streams are made.

use std::collections::BTreeSet;

use futures_util::TryStreamExt as _;

use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::names::Names;

/// So many prefixes of others are named.
const NAMED_MAX: usize = 20;

/// Logs it once, with what the server lets this node see.
pub async fn tell_of_new_service(managing: Connection, prefix: String) {
    let names = managing.context.stream_names().try_collect::<BTreeSet<String>>().await;
    match names.map(|names| others_in(&names, &prefix)) {
        Ok(others) if others.is_empty() => {
            tracing::info!(prefix, "a new service begins: no streams had this prefix, and they are made");
        }
        Ok(others) => {
            let others = others.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join(" ");
            tracing::warn!(
                prefix,
                others,
                "a new service begins: no streams had this prefix, and they are made. The server has streams \
                 under other prefixes, too: if one of those was meant, stop this node, and start it with that \
                 --prefix and another --data-dir"
            );
        }
        Err(error) => {
            let reason = managing.explain(&error);
            tracing::info!(
                prefix,
                reason,
                "a new service begins: no streams had this prefix, and they are made. Which others the server \
                 has cannot be seen"
            );
        }
    }
}

/// The other prefixes under which there are services, in lower case: the names of streams do not tell the
/// case.
fn others_in(names: &BTreeSet<String>, own: &str) -> BTreeSet<String> {
    let prefixes = names.iter().filter_map(|name| name.strip_suffix("_BOARDS"));
    let is_service = |prefix: &&str| names.contains(&Names::new(prefix).floors_bucket().stream());
    let others = prefixes.filter(is_service).map(str::to_lowercase);
    others.filter(|prefix| *prefix != own.to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_other_services_are_those_whose_streams_are_ours_in_form() {
        let names = [
            "RANKTREE_BOARDS",
            "KV_RANKTREE_FLOORS",
            "RANKTREE_JOBS_0",
            "EU_X-2_BOARDS",
            "KV_EU_X-2_FLOORS",
            "SNOW_BOARDS",
            "KV_GAME_FLOORS",
            "OWN_BOARDS",
            "KV_OWN_FLOORS",
        ];
        let names = names.map(str::to_owned).into();
        let others: Vec<String> = others_in(&names, "own").into_iter().collect();
        assert_eq!(others, ["eu_x-2", "ranktree"]);
    }
}
