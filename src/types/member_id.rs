//! Who holds a score, and which shard has them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::types::{MAX_MEMBER_BYTES, Malformed, ShardId, fnv1a_32};

/// Ids of so many bytes need no memory of their own: a job of a stream is made on one thread and goes on
/// another, which costs the allocator several times what it costs on one.
const SHORT_BYTES: usize = 22;

/// Who holds a score: 1 to 256 bytes of UTF-8 without control characters.
#[derive(Clone)]
pub struct MemberId(Text);

#[derive(Clone)]
enum Text {
    Short { length: u8, bytes: [u8; SHORT_BYTES] },
    Long(Box<str>),
}

impl MemberId {
    /// # Errors
    /// [`Malformed::Member`] when the text is empty, too long, or holds a control character.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Malformed> {
        let text = text.as_ref();
        let fits = !text.is_empty() && text.len() <= MAX_MEMBER_BYTES;
        // Most ids are ASCII, and looking at their bytes is several times faster than decoding characters.
        let control = if text.is_ascii() {
            text.bytes().any(|b| b.is_ascii_control())
        } else {
            text.chars().any(char::is_control)
        };
        if !fits || control {
            return Err(Malformed::Member);
        }
        let mut bytes = [0; SHORT_BYTES];
        Ok(Self(match (u8::try_from(text.len()), bytes.get_mut(..text.len())) {
            (Ok(length), Some(head)) => {
                head.copy_from_slice(text.as_bytes());
                Text::Short { length, bytes }
            }
            _ => Text::Long(text.into()),
        }))
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Short { .. } => str::from_utf8(self.as_bytes()).expect("it was a text when it was copied"),
            Text::Long(text) => text,
        }
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Short { length, bytes } => {
                bytes.get(..usize::from(*length)).expect("short ids have at most so many bytes")
            }
            Text::Long(text) => text.as_bytes(),
        }
    }
}

impl PartialEq for MemberId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for MemberId {}

impl Hash for MemberId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl PartialOrd for MemberId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As texts are ordered: by their bytes.
impl Ord for MemberId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberId({:?})", self.as_str())
    }
}

/// The shard that holds a member, among `shards` (at least 1).
pub fn shard_of(member: &MemberId, shards: u16) -> ShardId {
    if shards <= 1 {
        return ShardId(0);
    }
    let remainder = fnv1a_32(member.as_bytes()) % u32::from(shards);
    ShardId(u16::try_from(remainder).expect("a remainder is smaller than its divisor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_ids_are_checked() {
        for good in ["a", "owner/repo.name", "日本", " ", &"a".repeat(128)] {
            assert!(MemberId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a\n", "\u{0}", "\u{7f}", "\u{85}", &"a".repeat(257), &"日".repeat(86)] {
            assert_eq!(MemberId::new(bad), Err(Malformed::Member), "{bad:?}");
        }
    }

    #[test]
    fn ids_of_every_length_are_what_they_were_made_of_and_ordered_as_texts() {
        let texts: Vec<String> = (1..=MAX_MEMBER_BYTES)
            .flat_map(|length| ["a", "b", "z"].map(|text| text.repeat(length)))
            .collect();
        let mut ids: Vec<MemberId> =
            texts.iter().map(|text| MemberId::new(text).expect("a good id")).collect();
        for (id, text) in ids.iter().zip(&texts) {
            assert_eq!(
                (id.as_str(), id.as_bytes(), id.to_string()),
                (&**text, text.as_bytes(), text.clone())
            );
        }
        let mut texts = texts;
        texts.sort();
        ids.sort();
        assert!(ids.iter().map(MemberId::as_str).eq(texts.iter().map(String::as_str)));
    }
}
