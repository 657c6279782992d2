//! Settings of boards.

use clap::{ArgAction, Args};

use crate::config::switch;

#[derive(Debug, Clone, Args)]
pub struct BoardArgs {
    /// Reject jobs for boards that do not exist, instead of creating them with the defaults
    #[arg(long, env = "RANKTREE_NO_AUTO_CREATE", value_name = "true|false", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch(),
        hide_possible_values = true)]
    pub no_auto_create: bool,
}
