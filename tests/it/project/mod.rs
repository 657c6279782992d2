//! Tests that read the repository itself.
//!
//! - [`layering`]: what a module must not know, as `ARCHITECTURE.md` tells it
//! - [`circles`]: files import one another without circles
//! - [`documents`]: links, paths and modules that documents and comments name exist; documents tell what is
//! - [`command_line`]: the commands, flags and variables that documents and containers name exist
//! - [`widths`]: lines are no wider than agreed
//! - [`recipes`]: the commands of the page of recipes are answered as it says
//! - [`sizing`]: the page of sizes shows what its script prints of what was measured
//! - [`publishers`]: the publishers that the documents show work as they stand there
//! - [`client_dependencies`]: what the clients are made with is fixed, and its checksums are here

mod circles;
mod client_dependencies;
mod command_line;
mod documents;
mod layering;
mod publishers;
mod recipes;
mod sizing;
mod widths;
