//! What a command makes is outside of data directories: a service, a restore or an operator would take it
//! away with the data, and a file of the same name is one of the service's.

use std::path::Path;

use crate::cli::Failure;
use crate::storage::{check_directory, data_around, shards_in};

/// As many of a folder's entries are looked at.
const CHILDREN_MAX: usize = 1_000;

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

/// The same for that of a service, which is not to be begun in a folder that holds another one's either: that
/// one would be refused from then on.
///
/// # Errors
/// When it is in another one, or is none yet and has one in it.
pub fn check_apart_from_data(data_dir: &Path) -> Result<(), Failure> {
    check_no_data_above(data_dir)?;
    if data_around(data_dir)?.is_some() || shards_in(data_dir)? > 0 {
        return Ok(());
    }
    let Ok(children) = std::fs::read_dir(data_dir) else { return Ok(()) };
    for child in children.take(CHILDREN_MAX).flatten() {
        let is_folder = child.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && data_around(&child.path())?.is_some() {
            let (data_dir, child) = (data_dir.display(), child.path());
            return Err(format!(
                "{data_dir} is no data directory, and holds one, {}, which would be refused beside another; give that \
                 one with --data-dir, or a new folder",
                child.display()
            )
            .into());
        }
    }
    Ok(())
}

fn check_outside(place: &Path, from: &Path, flag: &str) -> Result<(), Failure> {
    data_around(from)?.map_or(Ok(()), |data| {
        let (place, data) = (place.display(), data.display());
        Err(format!(
            "{place} is inside {data}, which holds a service's data, and may be removed with them; give a place \
             elsewhere with {flag}, or, if {data} was made by mistake, move its RANKTREE and its shard-* away"
        )
        .into())
    })
}
