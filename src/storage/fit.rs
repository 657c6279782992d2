//! Whether the data that lie in a shard's place are what the data directory had there.
//!
//! The data directory's marker records the service, and for each shard its lineage, its epoch, and a sequence
//! that it is known to have applied. A shard's epoch is raised at each opening, in the shard first and then
//! in the marker, so that a crash between the two leaves the shard one ahead. Everything else was put there:
//! a shard of another service, a copy from another node, or an older copy.
//!
//! Knows: the words, with the one next step. Must not know: who opens shards.

use std::path::Path;

use crate::storage::error::StorageError;
use crate::storage::files::{DataMarker, Marker};
use crate::storage::identity::{ServiceId, ShardIdentity, random_opening};
use crate::storage::layout::service_in;
use crate::storage::options::StorageResources;
use crate::storage::shard_directory::shard_directory;
use crate::storage::store::Store;
use crate::types::{ShardId, ShardSet};

/// Only meta records are read.
const CACHE_BYTES: usize = 1 << 20;

/// What must hold for the data of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// They continue exactly what was there.
    Whole,
    /// A stream fills the shard. It shows whether it continues what the data hold, whichever copy they are.
    Streamed,
    /// The operator takes them as they are (`--adopt`).
    Adopted,
}

/// Checks what lies in a shard's place.
///
/// # Arguments
/// - `known`: what the data directory's marker says; `None`: there is no marker
/// - `applied`: `None` if it was not read yet
///
/// # Errors
/// [`StorageError::DoesNotFit`].
pub fn check_fit(
    data_dir: &Path,
    shard: ShardId,
    known: Option<&DataMarker>,
    found: ShardIdentity,
    applied: Option<u64>,
    fit: Fit,
) -> Result<(), StorageError> {
    let Some(known) = known else { return Ok(()) };
    let path = shard_directory(data_dir, shard);
    let refuse = |what: String, step: String| {
        Err(StorageError::DoesNotFit { path: path.clone(), what: what.into(), step: step.into() })
    };
    let recorded = known.shards.get(&shard);
    // A crash may have come before a new shard had its identity.
    let is_new = found == ShardIdentity::default() && recorded.is_none();
    if let Some(expected) = known.service.filter(|service| Some(*service) != found.service && !is_new) {
        return Err(foreign(
            data_dir,
            shard,
            found.service,
            &format!("the data directory to the service {expected}"),
            fit,
        ));
    }
    let Some(recorded) = recorded.filter(|_| fit == Fit::Whole) else { return Ok(()) };
    let lineages = known.shards.iter().filter(|(other, _)| **other != shard);
    let mut swapped = lineages.filter(|(_, other)| other.lineage.is_some() && other.lineage == found.lineage);
    if let Some((other, _)) = swapped.next() {
        return refuse(
            format!("it is the data of shard {other}"),
            format!(
                "Put the directory of shard {other} back under its own name, and this shard's own in this place"
            ),
        );
    }
    let what = if found.lineage != recorded.lineage {
        let said = |lineage: Option<_>| lineage.map_or("none".to_owned(), |lineage| format!("{lineage}"));
        format!(
            "it is another line of history (its lineage is {}, and that of what was there {}): a restored \
             directory's, or another node's",
            said(found.lineage),
            said(recorded.lineage)
        )
    } else if found.epoch < recorded.epoch {
        format!(
            "it is an older copy: it was opened {} times, and what was there {} times",
            found.epoch, recorded.epoch
        )
    } else if found.epoch > recorded.epoch + 1 {
        format!(
            "it was opened {} times, and as far as the data directory's own file RANKTREE knows {} times: one \
             of the two is an older copy",
            found.epoch, recorded.epoch
        )
    } else if (found.epoch == recorded.epoch && found.opening != recorded.opening)
        || (found.epoch > recorded.epoch && found.opened_before != recorded.opening)
    {
        "it is a copy that was opened elsewhere since".to_owned()
    } else if let Some(applied) = applied.filter(|applied| *applied < recorded.floor) {
        format!(
            "it is an older copy: it holds messages up to {applied}, and what was there held those up to {}",
            recorded.floor
        )
    } else {
        return Ok(());
    };
    refuse(
        what,
        format!(
            "Put the directory back that was there; if it is lost, start once with --adopt {shard}, and in the \
             same start with one more --adopt for each other shard that is not what was there, which takes these \
             data as they are, without what was written since"
        ),
    )
}

/// The service of the shards of a data directory that does not record it, as their markers say; `None` if no
/// marker does.
///
/// # Errors
/// [`StorageError::DoesNotFit`] if they are of two services, and when a marker cannot be read.
pub fn service_of_shards(
    data_dir: &Path,
    shards: &ShardSet,
    fit: Fit,
) -> Result<Option<ServiceId>, StorageError> {
    let mut first = None;
    for shard in shards.iter() {
        let Some(found) = service_in(&shard_directory(data_dir, shard))? else { continue };
        let (one, service) = *first.get_or_insert((shard, found));
        if service != found {
            let other = format!("shard {one} beside it to the service {service}");
            return Err(foreign(data_dir, shard, Some(found), &other, fit));
        }
    }
    Ok(first.map(|(_, service)| service))
}

/// # Arguments
/// `other`: what is of which other service
fn foreign(data_dir: &Path, shard: ShardId, found: Option<ServiceId>, other: &str, fit: Fit) -> StorageError {
    let theirs = found.map_or("no service".to_owned(), |service| format!("the service {service}"));
    let folder = data_dir.display();
    let step = if fit == Fit::Streamed {
        "Put the shard's own directory back; if it is lost, move this one away and start: the shard is filled \
         from its stream, or by a copy from another node that owns it"
            .to_owned()
    } else {
        format!(
            "Put the shard's own directory back; if it is lost, restore a snapshot with ranktree restore --from \
             SNAPSHOT --data-dir {folder} --replace"
        )
    };
    StorageError::DoesNotFit {
        path: shard_directory(data_dir, shard),
        what: format!("it belongs to {theirs}, and {other}").into(),
        step: step.into(),
    }
}

/// As [`check_fit`], for a shard that is not open here: by what its own marker says, and by its data if the
/// marker says less than they must hold. Nothing is written.
///
/// # Errors
/// As [`check_fit`], and when the marker or the data cannot be read.
pub fn check_fit_on_disk(
    data_dir: &Path,
    shard: ShardId,
    known: Option<&DataMarker>,
    fit: Fit,
) -> Result<(), StorageError> {
    let path = shard_directory(data_dir, shard);
    let marker = Marker::read(&path)?;
    // What a damaged marker said is in the shard's other files.
    let marker = marker.filter(|marker| marker.damage.is_none());
    if let Some(found) = marker.as_ref().and_then(Marker::identity) {
        check_fit(data_dir, shard, known, found, None, fit)?;
    }
    let recorded = known.and_then(|known| Some((known.shards.get(&shard)?, known.layout.shards)));
    let Some((recorded, shards)) = recorded else { return Ok(()) };
    if marker.is_some_and(|marker| marker.floor().applied >= recorded.floor) {
        return Ok(());
    }
    let store = Store::open_for_reading(&path, shard, shards, &StorageResources::new(CACHE_BYTES, 1))?;
    match store.meta()? {
        Some(meta) => check_fit(data_dir, shard, known, meta.identity, Some(meta.applied_sequence), fit),
        None => Ok(()),
    }
}

/// What a shard is from its next opening on.
///
/// # Arguments
/// `known`: what the data directory's marker says
pub fn next_identity(
    shard: ShardId,
    known: Option<&DataMarker>,
    found: ShardIdentity,
    fit: Fit,
) -> ShardIdentity {
    let service = known.and_then(|known| known.service).or(found.service);
    let recorded = known.and_then(|known| known.shards.get(&shard));
    let (epoch, opened_before) = match recorded {
        // Counted from what the marker knows: however often a start fails in between, the shard is not ahead
        // by more than one.
        Some(recorded) if recorded.lineage == found.lineage => (recorded.epoch, recorded.opening),
        Some(_) => return ShardIdentity::begin(service),
        None => (found.epoch, found.opening),
    };
    let is_its_next = found.epoch <= epoch + 1 && found.epoch >= epoch;
    if fit == Fit::Adopted || found.lineage.is_none() || !is_its_next {
        return ShardIdentity::begin(service);
    }
    ShardIdentity { service, epoch: epoch + 1, opening: random_opening(), opened_before, ..found }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::storage::files::{DataLayout, RecordedShard};
    use crate::storage::identity::Lineage;

    const SHARD: ShardId = ShardId(1);

    fn known(epoch: u64, floor: u64) -> DataMarker {
        let recorded = RecordedShard { lineage: Some(Lineage(7)), epoch, opening: epoch * 100, floor };
        let shards = BTreeMap::from([(SHARD, recorded)]);
        DataMarker { layout: DataLayout::all(2), service: Some(ServiceId(1)), prefix: None, shards }
    }

    fn found(service: u128, lineage: u128, epoch: u64) -> ShardIdentity {
        let (service, lineage) = (Some(ServiceId(service)), Some(Lineage(lineage)));
        ShardIdentity { service, lineage, epoch, opening: epoch * 100, opened_before: epoch * 100 - 100 }
    }

    fn said(known: &DataMarker, found: ShardIdentity, applied: u64, fit: Fit) -> Option<String> {
        let checked = check_fit(Path::new("data"), SHARD, Some(known), found, Some(applied), fit);
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn what_was_put_in_a_shards_place_is_refused_with_what_was_expected_and_the_next_step() {
        let marker = known(5, 60);
        for (found, applied, expect) in [
            (found(1, 7, 5), 60, None),
            (found(1, 7, 6), 61, None),
            (found(1, 7, 4), 61, Some(["opened 4 times, and what was there 5 times", "--adopt 1"])),
            (found(1, 7, 7), 61, Some(["knows 5 times", "--adopt 1"])),
            (found(1, 7, 5), 59, Some(["up to 59, and what was there held those up to 60", "--adopt 1"])),
            (ShardIdentity { opening: 7, ..found(1, 7, 5) }, 60, Some(["opened elsewhere", "--adopt 1"])),
            (ShardIdentity { opened_before: 7, ..found(1, 7, 6) }, 60, Some(["elsewhere", "--adopt 1"])),
            (found(1, 8, 5), 60, Some(["another line of history", "--adopt 1"])),
            (found(2, 7, 5), 60, Some(["belongs to the service 0", "ranktree restore"])),
            (ShardIdentity::default(), 60, Some(["belongs to no service", "ranktree restore"])),
        ] {
            let said = said(&marker, found, applied, Fit::Whole);
            assert_eq!(said.is_some(), expect.is_some(), "{found:?}: {said:?}");
            for part in expect.into_iter().flatten() {
                assert!(said.as_ref().is_some_and(|said| said.contains(part)), "{said:?} lacks {part}");
            }
        }
    }

    #[test]
    fn a_stream_and_an_operator_take_other_copies_and_no_other_service() {
        let marker = known(5, 60);
        for fit in [Fit::Streamed, Fit::Adopted] {
            for found in [found(1, 7, 3), found(1, 9, 9)] {
                assert_eq!(said(&marker, found, 3, fit), None, "{fit:?} {found:?}");
            }
            let refused = said(&marker, found(2, 7, 5), 60, fit);
            assert!(refused.is_some_and(|said| said.contains("belongs to the service")), "{fit:?}");
        }
        // Before the marker knows the service, and for a shard that a crash left without an identity.
        let unknown = DataMarker { service: None, ..known(5, 60) };
        assert_eq!(said(&unknown, found(2, 7, 5), 60, Fit::Whole), None);
        let new = DataMarker { shards: BTreeMap::new(), ..known(5, 60) };
        assert_eq!(said(&new, ShardIdentity::default(), 0, Fit::Whole), None);
    }

    /// A start that ends between the two writes, again and again, leaves the shard one ahead and no more.
    #[test]
    fn a_crash_loop_does_not_run_away_from_the_marker() {
        let marker = known(5, 60);
        let mut shard = found(1, 7, 5);
        for _ in 0..4 {
            assert_eq!(said(&marker, shard, 60, Fit::Whole), None);
            shard = next_identity(SHARD, Some(&marker), shard, Fit::Whole);
            assert_eq!(ShardIdentity { opening: 600, ..shard }, found(1, 7, 6));
        }
    }

    #[test]
    fn what_does_not_continue_what_was_there_begins_a_lineage() {
        let marker = known(5, 60);
        for (found, fit) in [
            (found(1, 7, 3), Fit::Adopted),
            (found(1, 8, 5), Fit::Adopted),
            (found(1, 8, 5), Fit::Streamed),
            (ShardIdentity::default(), Fit::Whole),
        ] {
            let next = next_identity(SHARD, Some(&marker), found, fit);
            assert_eq!((next.service, next.epoch), (Some(ServiceId(1)), 1));
            assert!(![Some(Lineage(7)), Some(Lineage(8)), None].contains(&next.lineage), "{next:?}");
        }
        // Without a marker the shard counts on by itself.
        let next = next_identity(SHARD, None, found(1, 7, 5), Fit::Whole);
        assert_eq!(ShardIdentity { opening: 600, ..next }, found(1, 7, 6));
    }
}
