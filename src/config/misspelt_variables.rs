//! Finds variables of the environment that are probably misspelt: one that nobody reads changes nothing, and
//! nothing else would say so.

use std::collections::BTreeSet;

use clap::Command;

use crate::config::nats_access::ENVIRONMENT_SECRETS;
use crate::config::{client, log_levels};

const PREFIX: &str = "RANKTREE_";
/// Letters that may be wrong, missing or too many. Other programs have variables of that prefix too, such as
/// those that Kubernetes makes for a service called ranktree.
const LETTERS_OFF: usize = 2;

/// The variables of the environment that are nearly ours, each with ours.
///
/// # Arguments
/// `command`: the whole command line, whose arguments say what variables there are.
pub fn misspelt_variables(command: &Command) -> Vec<(String, String)> {
    let known = known(command);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| meant(&name, &known).map(str::to_owned).map(|meant| (name, meant))).collect()
}

fn known(command: &Command) -> BTreeSet<String> {
    let secrets = ENVIRONMENT_SECRETS.iter().map(|secret| secret.variable);
    let others = secrets.chain(client::SECRETS).chain([log_levels::VARIABLE]);
    let mut known: BTreeSet<String> = others.map(str::to_owned).collect();
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let names = command.get_arguments().filter_map(clap::Arg::get_env);
        known.extend(names.map(|name| name.to_string_lossy().into_owned()));
    }
    known
}

/// The variable that an unknown one is nearly.
fn meant<'a>(name: &str, known: &'a BTreeSet<String>) -> Option<&'a str> {
    if !name.starts_with(PREFIX) || known.contains(name) {
        return None;
    }
    let distances = known.iter().map(|known| (strsim::osa_distance(known, name), known.as_str()));
    distances.min().filter(|(distance, _)| *distance <= LETTERS_OFF).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::config::ServeArgs;

    #[test]
    fn only_what_is_nearly_a_variable_of_ours_is_warned_of() {
        let known = known(&ServeArgs::augment_args(Command::new("serve")));
        for (name, expect) in [
            ("RANKTREE_SHARD", Some("RANKTREE_SHARDS")),
            ("RANKTREE_LISTNE", Some("RANKTREE_LISTEN")),
            ("RANKTREE_NATS_PASWORD", Some("RANKTREE_NATS_PASSWORD")),
            ("RANKTREE_SHARDS", None),
            ("RANKTREE_LOG", None),
            ("RANKTREE_TOKEN", None),
            // Of Kubernetes, of docker compose, and of nats-server.
            ("RANKTREE_SERVICE_HOST", None),
            ("RANKTREE_PORT", None),
            ("RANKTREE_PORT_8080_TCP_ADDR", None),
            ("RANKTREE_NODE_PASSWORD", None),
            ("RANKTREE_GAME_PASSWORD", None),
            ("SHARDS", None),
        ] {
            assert_eq!(meant(name, &known), expect, "{name}");
        }
    }
}
