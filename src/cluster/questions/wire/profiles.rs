//! Questions that ask for profiles, and their replies.
//!
//! They have a format of their own, within which is a question or a reply as it is without them. So a node
//! that does not know profiles refuses these questions in words, and answers all others.

use bincode::{BorrowDecode, Encode};

use crate::cluster::questions::wire::question::{AskedQuestion, decode_question, encode_question};
use crate::cluster::questions::wire::reply::{decode_reply, encode_reply};
use crate::cluster::questions::wire::{
    CONFIG, QUESTION_BYTES_MAX, REPLY_BYTES_MAX, REPLY_MEMORY_MAX, Undecodable, body_of, encode_as,
    undecodable,
};
use crate::query::question::{EntryProfile, ShardReply};

/// Far from the formats of questions, and from that of trims.
pub const PROFILES_FORMAT: u8 = 102;

pub fn encode_question_with_profiles(asked: &AskedQuestion<'_>) -> Result<Vec<u8>, Undecodable> {
    let mut bytes = vec![PROFILES_FORMAT];
    bytes.extend(encode_question(asked)?);
    Ok(bytes)
}

pub fn decode_question_with_profiles(bytes: &[u8]) -> Result<AskedQuestion<'_>, Undecodable> {
    decode_question(body_of(PROFILES_FORMAT, bytes, QUESTION_BYTES_MAX + 1)?)
}

/// The profile of an entry.
#[derive(Encode, BorrowDecode)]
enum ProfileWire<'a> {
    NotAsked,
    None,
    Json(&'a str),
    Unreadable,
    /// That of the entry before: they are of the same member.
    AsBefore,
}

pub fn encode_reply_with_profiles(reply: &mut ShardReply) -> Result<Vec<u8>, Undecodable> {
    let without = encode_reply(reply)?;
    let (mut taken, mut members) = (Vec::new(), Vec::new());
    reply.reply.each_entry(&mut |entry| {
        taken.push(std::mem::take(&mut entry.profile));
        members.push(entry.member.clone());
    });
    let mut profiles = Vec::with_capacity(taken.len());
    for (index, (profile, member)) in taken.iter().zip(&members).enumerate() {
        let before = index.checked_sub(1).and_then(|before| members.get(before).zip(taken.get(before)));
        profiles.push(match profile {
            EntryProfile::NotAsked => ProfileWire::NotAsked,
            EntryProfile::None => ProfileWire::None,
            EntryProfile::Json(_) if before == Some((member, profile)) => ProfileWire::AsBefore,
            EntryProfile::Json(json) => ProfileWire::Json(json),
            EntryProfile::OnDisk | EntryProfile::Unreadable => ProfileWire::Unreadable,
        });
    }
    let mut bytes = encode_as(PROFILES_FORMAT, &profiles, REPLY_BYTES_MAX)?;
    bytes.extend(without);
    if bytes.len() > REPLY_BYTES_MAX {
        return Err(Undecodable::TooLarge { bytes: bytes.len(), limit: REPLY_BYTES_MAX });
    }
    Ok(bytes)
}

/// # Errors
/// When the bytes are no such reply, or one with more profiles than entries, or fewer.
pub fn decode_reply_with_profiles(bytes: &[u8]) -> Result<ShardReply, Undecodable> {
    let body = body_of(PROFILES_FORMAT, bytes, REPLY_BYTES_MAX)?;
    let decoded = bincode::borrow_decode_from_slice(body, CONFIG.with_limit::<REPLY_MEMORY_MAX>());
    let (profiles, read): (Vec<ProfileWire<'_>>, usize) = decoded.map_err(undecodable)?;
    let mut reply = decode_reply(body.get(read..).unwrap_or_default())?;
    let (mut profiles, mut fits) = (profiles.into_iter(), true);
    let mut last: Option<(Box<[u8]>, EntryProfile)> = None;
    reply.reply.each_entry(&mut |entry| {
        entry.profile = match profiles.next() {
            Some(ProfileWire::NotAsked) => EntryProfile::NotAsked,
            Some(ProfileWire::None) => EntryProfile::None,
            Some(ProfileWire::Json(json)) => EntryProfile::Json(json.into()),
            Some(ProfileWire::Unreadable) => EntryProfile::Unreadable,
            Some(ProfileWire::AsBefore) => match &last {
                Some((member, profile)) if *member == entry.member => profile.clone(),
                _ => {
                    fits = false;
                    EntryProfile::Unreadable
                }
            },
            None => {
                fits = false;
                EntryProfile::Unreadable
            }
        };
        last = Some((entry.member.clone(), entry.profile.clone()));
    });
    if fits && profiles.next().is_none() {
        Ok(reply)
    } else {
        Err(undecodable("its profiles are not those of its entries"))
    }
}
