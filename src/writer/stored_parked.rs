//! Reads parked jobs from a store.

use crate::job::JobPlace;
use crate::storage::codec::ParkedRecord;
use crate::storage::{ParkedLine, Store};
use crate::wire;
use crate::writer::parked_names::ParkedNames;
use crate::writer::parking::ParkedJob;
use crate::writer::plan::ReadOn;

/// For each line its number of jobs, and the place and the job that comes first.
pub fn lines(store: &Store) -> Result<Vec<(u32, usize, JobPlace, ParkedJob)>, String> {
    let lines = store.parked_lines().map_err(|error| error.to_string())?.into_iter();
    let lines = lines.map(|ParkedLine { line, jobs, first }| {
        let (place, parked) = read_parked(first)?;
        Ok((line, jobs, place, parked))
    });
    lines.collect()
}

/// The boards that parked jobs name.
pub fn names(store: &Store) -> Result<ParkedNames, String> {
    let (mut names, mut unreadable) = (ParkedNames::default(), None);
    let scanned = store.each_parked(|record| match read_parked(record) {
        Ok(((sequence, _), parked)) => names.add(&parked.job, sequence),
        Err(reason) => unreadable = Some(reason),
    });
    scanned.map_err(|error| error.to_string())?;
    unreadable.map_or(Ok(names), Err)
}

/// Reads jobs of a line; see [`ReadParked`](crate::writer::plan::ReadParked).
pub fn read_line(
    store: &Store,
    line: u32,
    from: JobPlace,
    limit: usize,
    read_on: ReadOn<'_>,
) -> Result<Vec<(JobPlace, ParkedJob)>, String> {
    let (mut jobs, mut unreadable) = (Vec::new(), None);
    let scanned = store.each_parked_in(line, from, |record| match read_parked(record) {
        Ok((place, parked)) => {
            let more = read_on(&parked);
            jobs.push((place, parked));
            more && jobs.len() < limit
        }
        Err(reason) => {
            unreadable = Some(reason);
            false
        }
    });
    scanned.map_err(|error| error.to_string())?;
    unreadable.map_or(Ok(jobs), Err)
}

/// A parked job, decoded from its record.
pub fn read_parked(record: ParkedRecord) -> Result<(JobPlace, ParkedJob), String> {
    let ParkedRecord { sequence, index, timestamp, job, board } = record;
    let job = wire::decode_one(&job).ok_or_else(|| {
        format!("job {index} of message {sequence}, which waits for its board, cannot be read")
    })?;
    Ok(((sequence, index), ParkedJob { timestamp, job, board }))
}
