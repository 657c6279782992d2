//! Where the configuration and the data are.

use std::path::PathBuf;

use clap::Args;

/// The file that holds the settings which flags and the environment do not decide.
#[derive(Debug, Clone, Args)]
pub struct FileArgs {
    /// TOML file with settings of the service. Its keys are the names of the flags, with _ instead of -
    #[arg(long, env = "RANKTREE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Where the data are; also for the subcommands that look at those of a stopped service.
#[derive(Debug, Clone, Args)]
pub struct DataArgs {
    /// The service's directory for all data; `serve` creates it if it is missing
    #[arg(long, env = "RANKTREE_DATA_DIR", value_name = "DIR", default_value = "./data")]
    pub data_dir: PathBuf,
}
