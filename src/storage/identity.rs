//! What tells the data of one service, and one line of a shard's history, from all others.
//!
//! Knows: how identities are made and written as text. Must not know: where they are stored (`files`,
//! `codec`), or what fits together (`fit`).

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};

/// A service: all nodes on the same streams, or one node without NATS. Made once, and never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceId(pub u128);

/// One line of a shard's history. A shard gets a new one whenever its content is not the next state of what
/// was there: it is made, restored, copied from another node, adopted, or continued from another stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lineage(pub u128);

/// What a shard is, beside its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardIdentity {
    /// `None`: it is not known yet, because the streams say it and were not asked so far.
    pub service: Option<ServiceId>,
    /// `None`: it was never opened by a service.
    pub lineage: Option<Lineage>,
    /// How often a service has opened the shard in this lineage.
    pub epoch: u64,
    /// A random number of the last opening, which tells two copies apart that were opened equally often.
    pub opening: u64,
    /// That of the opening before, as the data directory knew it.
    pub opened_before: u64,
}

impl ServiceId {
    pub fn random() -> Self {
        Self(random())
    }

    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        hexadecimal(text).map(Self)
    }
}

impl Lineage {
    pub fn random() -> Self {
        Self(random())
    }

    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        hexadecimal(text).map(Self)
    }
}

impl ShardIdentity {
    /// The beginning of another line of history in the same service, by its first opening.
    pub fn begin(service: Option<ServiceId>) -> Self {
        let opening = random_opening();
        Self { service, lineage: Some(Lineage::random()), epoch: 1, opening, opened_before: 0 }
    }

    /// The same of data that no service has opened yet.
    pub fn unopened(service: Option<ServiceId>) -> Self {
        Self { epoch: 0, ..Self::begin(service) }
    }

    /// Whether an opening as `next` begins another history of data that are this: they are not the next state
    /// of what was there.
    pub fn is_set_back(&self, next: &Self) -> bool {
        self.lineage.is_some() && (self.epoch == 0 || self.lineage != next.lineage)
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A random number of one opening of a shard.
pub fn random_opening() -> u64 {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("the operating system has random numbers");
    u64::from_le_bytes(bytes)
}

/// Never 0, which stands for none on disk.
fn random() -> u128 {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("the operating system has random numbers");
    u128::from_le_bytes(bytes).max(1)
}

fn hexadecimal(text: &str) -> Option<u128> {
    let is_plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|number| is_plain && *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_written_and_nothing_else_is() {
        let service = ServiceId::random();
        assert_eq!(ServiceId::parse(&service.to_string()), Some(service));
        assert_ne!(service, ServiceId::random());
        let zeros = "0".repeat(32);
        let with_sign = format!("+{}", "1".repeat(31));
        for text in ["", "1", zeros.as_str(), with_sign.as_str(), &"g".repeat(32)] {
            assert_eq!(ServiceId::parse(text), None, "{text}");
            assert_eq!(Lineage::parse(text), None, "{text}");
        }
    }
}
