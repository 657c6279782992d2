//! `--order`: which end of each key is best.

/// Which end of a key is best, as `--order` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BestEnd {
    /// The lowest leads
    Asc,
    /// The highest leads
    Desc,
}

impl BestEnd {
    pub fn name(self) -> &'static str {
        match self {
            Self::Asc => "asc",
            Self::Desc => "desc",
        }
    }

    pub fn words(order: &str) -> &'static str {
        if order == "asc" { "lowest" } else { "highest" }
    }
}
