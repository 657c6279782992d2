//! The profiles in a reply, apart from its entries: several in a row may be of one member.

use bincode::{BorrowDecode, Encode};

use crate::cluster::questions::wire::{Undecodable, undecodable};
use crate::query::question::{EntryProfile, Reply};

/// The profile of an entry.
#[derive(Encode, BorrowDecode)]
pub enum ProfileWire<'a> {
    NotAsked,
    None,
    Json(&'a str),
    Unreadable,
    /// That of the entry before: they are of the same member.
    AsBefore,
}

/// A member, and its profile.
type OfMember = (Box<[u8]>, EntryProfile);

/// Takes the profiles of all entries; none if no entry has one that was asked for.
pub fn take(reply: &mut Reply) -> Vec<OfMember> {
    let (mut taken, mut is_asked) = (Vec::new(), false);
    reply.each_entry(&mut |entry| is_asked |= entry.profile != EntryProfile::NotAsked);
    if is_asked {
        reply.each_entry(&mut |entry| {
            taken.push((entry.member.clone(), std::mem::take(&mut entry.profile)));
        });
    }
    taken
}

pub fn of(taken: &[OfMember]) -> Vec<ProfileWire<'_>> {
    let before = std::iter::once(None).chain(taken.iter().map(Some));
    let mut profiles = Vec::with_capacity(taken.len());
    for (of_member, before) in taken.iter().zip(before) {
        profiles.push(match &of_member.1 {
            EntryProfile::NotAsked => ProfileWire::NotAsked,
            EntryProfile::None => ProfileWire::None,
            EntryProfile::Json(_) if before == Some(of_member) => ProfileWire::AsBefore,
            EntryProfile::Json(json) => ProfileWire::Json(json),
            EntryProfile::OnDisk | EntryProfile::Unreadable => ProfileWire::Unreadable,
        });
    }
    profiles
}

/// Gives each entry its profile.
///
/// # Errors
/// When there are more profiles than entries, or fewer.
pub fn put(profiles: Vec<ProfileWire<'_>>, reply: &mut Reply) -> Result<(), Undecodable> {
    if profiles.is_empty() {
        return Ok(());
    }
    let (mut profiles, mut fits) = (profiles.into_iter(), true);
    let mut last: Option<OfMember> = None;
    reply.each_entry(&mut |entry| {
        entry.profile = match (profiles.next(), &last) {
            (Some(ProfileWire::NotAsked), _) => EntryProfile::NotAsked,
            (Some(ProfileWire::None), _) => EntryProfile::None,
            (Some(ProfileWire::Json(json)), _) => EntryProfile::Json(json.into()),
            (Some(ProfileWire::Unreadable), _) => EntryProfile::Unreadable,
            (Some(ProfileWire::AsBefore), Some((member, profile))) if *member == entry.member => {
                profile.clone()
            }
            (Some(ProfileWire::AsBefore) | None, _) => {
                fits = false;
                EntryProfile::Unreadable
            }
        };
        last = Some((entry.member.clone(), entry.profile.clone()));
    });
    if fits && profiles.next().is_none() {
        Ok(())
    } else {
        Err(undecodable("its profiles are not those of its entries"))
    }
}
