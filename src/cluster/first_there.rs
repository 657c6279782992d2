//! Which of several owners is there: work that must not be sent twice goes to the first one that says so.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::types::NodeName;

/// How long it is waited for one of several owners to say that it is there.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The only owner, or the first one that says that it is there; `None` if none does within
/// [`PROBE_TIMEOUT`].
///
/// # Arguments
/// `probe`: asks an owner what costs it nothing, and returns whether it has answered.
pub async fn first_there<'o, F>(owners: &'o [NodeName], probe: impl Fn(&'o NodeName) -> F) -> Option<NodeName>
where
    F: Future<Output = bool>,
{
    if let [] | [_] = owners {
        return owners.first().cloned();
    }
    let mut probes: FuturesUnordered<_> = owners
        .iter()
        .map(|node| {
            let probe = probe(node);
            async move { probe.await.then_some(node) }
        })
        .collect();
    let first = async {
        while let Some(answered) = probes.next().await {
            if answered.is_some() {
                return answered.cloned();
            }
        }
        None
    };
    tokio::time::timeout(PROBE_TIMEOUT, first).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::future;

    use super::*;

    fn owners(names: &[&str]) -> Vec<NodeName> {
        names.iter().map(|name| NodeName::new(name).expect("a good name")).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_owner_that_answers_is_there_and_none_is_waited_for_for_ever() {
        let probed = |owners: Vec<NodeName>| async move {
            let there = first_there(&owners, |node| {
                let name = node.as_str();
                async move {
                    match name {
                        "frozen" => future::pending().await,
                        "slow" => tokio::time::sleep(PROBE_TIMEOUT / 2).await,
                        _ => {}
                    }
                    name != "gone"
                }
            });
            there.await.map(|node| node.to_string())
        };
        assert_eq!(probed(owners(&[])).await, None);
        assert_eq!(probed(owners(&["gone"])).await.as_deref(), Some("gone"), "there is no other choice");
        assert_eq!(probed(owners(&["frozen", "gone", "slow"])).await.as_deref(), Some("slow"));
        assert_eq!(probed(owners(&["gone", "gone"])).await, None);
        assert_eq!(probed(owners(&["frozen", "gone"])).await, None);
    }
}
