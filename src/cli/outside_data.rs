//! What a command makes is outside of data directories: a service, a restore or an operator would take it
//! away with the data, and a file of the same name is one of the service's.

use std::path::Path;

use crate::cli::Failure;
use crate::storage::{check_directory, data_around};

/// Refuses a place in a data directory, as far as that can be told: the service may be on another machine.
///
/// # Arguments
/// `flag`: what gave the place.
///
/// # Errors
/// When it is in one.
pub fn check_outside_data(place: &Path, flag: &str) -> Result<(), Failure> {
    check_outside(place, place, flag)
}

/// The same for a directory that is to be a data directory itself.
///
/// # Errors
/// When it is in another one.
pub fn check_no_data_above(data_dir: &Path) -> Result<(), Failure> {
    check_directory(data_dir)?;
    let data_dir = std::path::absolute(data_dir)?;
    let data_dir = data_dir.canonicalize().unwrap_or(data_dir);
    data_dir.parent().map_or(Ok(()), |above| check_outside(&data_dir, above, "--data-dir"))
}

fn check_outside(place: &Path, from: &Path, flag: &str) -> Result<(), Failure> {
    data_around(from)?.map_or(Ok(()), |data| {
        let (place, data) = (place.display(), data.display());
        Err(format!(
            "{place} is inside {data}, which holds a service's data, and may be removed with them; give a place \
             elsewhere with {flag}"
        )
        .into())
    })
}
