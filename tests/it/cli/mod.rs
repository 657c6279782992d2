//! The subcommands beside `serve`, and settings.
//!
//! - [`addresses`]: a wrong address is told at once; what is on this machine is asked without a proxy
//! - [`config`]: what is set, and from where; the example file, the systemd unit, completions
//! - [`export`]: an export that is imported elsewhere has equal ranks and ties
//! - [`export_boards`]: an export defines its boards when it is imported
//! - [`export_instances`]: an export of a season or a day comes back as the same one
//! - [`import`]: files that are not what they should be, and services that refuse
//! - [`import_absent`]: members who have an entry keep it, and the summary says how many
//! - [`import_advice`]: the options that a refusal names are there, and lead on
//! - [`import_forms`]: every form of a file on the page of imports becomes the board that it says
//! - [`import_property`]: of any file, all rows are loaded as another reader has them, or nothing is
//! - [`import_reader`]: another reader of tables, as simple as it can be
//! - [`import_silent`]: files of which a reader could make a board that nobody meant, without a word
//! - [`import_ties`]: equal scores keep the order of rows over files, and behind the line to go on from
//! - [`import_traps`]: exports that another program has changed, what redis-cli writes, dry runs
//! - [`redis`]: a sorted set of a real Redis ranks the same
//! - [`load`]: the load generator's figures are what the service applied, and its errors say what to do
//! - [`man`]: pages for man(1)
//! - [`misplaced`]: what would be written over data, or over what is read, is refused
//! - [`waiting`]: a pipe in the place of a file of settings, or without a reader, is not waited for
//! - [`healthcheck`]: the exit code says whether a service is ready

mod addresses;
mod config;
mod export;
mod export_boards;
mod export_instances;
mod healthcheck;
mod import;
mod import_absent;
mod import_advice;
mod import_forms;
mod import_property;
mod import_reader;
mod import_silent;
mod import_ties;
mod import_traps;
mod load;
mod man;
mod misplaced;
mod redis;
mod waiting;
