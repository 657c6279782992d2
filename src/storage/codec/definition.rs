//! A board's definition, in manifests and in events.
//!
//! A plain board has the fields that every version of ranktree knows. What it has beyond them follows as a
//! list of settings, which the byte of the tie rule announces. So the bytes of plain boards never change, and
//! a version that does not know a setting cannot misread it: its number is an error.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use std::sync::Arc;

use crate::board::{
    Beyond, DEFAULT_GRACE_MICROS, Definition, Key, KeyType, Kind, Order, Policy, ReadOnly, Ties,
};
use crate::storage::codec::bytes::{Undecodable, undecodable};
use crate::types::Timestamp;
use crate::window::{Seasons, Series, Window};

const KIND: &str = "board definition";
/// In the byte of the tie rule: settings follow.
const HAS_SETTINGS: u8 = 0x80;
/// In the byte of a key's order: what an increment beyond a bound does.
const CLAMPS_BELOW_MIN: u8 = 0x40;
const CLAMPS_ABOVE_MAX: u8 = 0x80;
/// In the same byte: the key has doubles.
const IS_FLOAT: u8 = 0x20;

pub(super) struct DefinitionWire {
    keys: Vec<(String, u8, i64, i64)>,
    policy: u8,
    ties: u8,
    utc_offset_minutes: i16,
    keep: u32,
    /// In the order of their numbers, each at most once, and none that has its default.
    settings: Vec<SettingWire>,
}

/// A setting that differs from its default. Its place in this list is its number on disk, which never changes
/// its meaning; new ones come last.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
enum SettingWire {
    Windows(Vec<u8>),
    /// Of each series: its first season, when that begins, and how long each is, both in microseconds.
    RegularSeasons(Vec<(u32, i64, i64)>),
    ManualSeasons(Vec<i64>),
    Grace(i64),
    EntryTtl(i64),
    Capacity(u64),
    Movement,
    TopK,
    /// Microseconds since 1970.
    FinalUntil(i64),
    /// The reason, and since when.
    ReadOnly(String, i64),
}

impl Encode for DefinitionWire {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let Self { keys, policy, ties, utc_offset_minutes, keep, settings } = self;
        keys.encode(encoder)?;
        policy.encode(encoder)?;
        let mark = if settings.is_empty() { 0 } else { HAS_SETTINGS };
        (ties | mark).encode(encoder)?;
        utc_offset_minutes.encode(encoder)?;
        keep.encode(encoder)?;
        if settings.is_empty() { Ok(()) } else { settings.encode(encoder) }
    }
}

impl<C> Decode<C> for DefinitionWire {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (keys, policy, ties) = (Decode::decode(decoder)?, u8::decode(decoder)?, u8::decode(decoder)?);
        let (utc_offset_minutes, keep) = (i16::decode(decoder)?, u32::decode(decoder)?);
        let mut settings = Vec::new();
        if ties & HAS_SETTINGS != 0 {
            settings = Vec::decode(decoder)?;
            if settings.is_empty() {
                return Err(DecodeError::Other("a definition announces settings and has none"));
            }
        }
        Ok(Self { keys, policy, ties: ties & !HAS_SETTINGS, utc_offset_minutes, keep, settings })
    }
}

bincode::impl_borrow_decode!(DefinitionWire);

pub(super) fn definition_to_wire(definition: &Definition) -> DefinitionWire {
    let keys = definition.keys.iter().map(|key| {
        let order = match key.order {
            Order::Ascending => 0,
            Order::Descending => 1,
        };
        let clamps = |beyond, bit| if beyond == Beyond::Clamp { bit } else { 0 };
        let flags = clamps(key.below_min, CLAMPS_BELOW_MIN) | clamps(key.above_max, CLAMPS_ABOVE_MAX);
        let float = if key.key_type == KeyType::Float { IS_FLOAT } else { 0 };
        (key.name.clone(), order | flags | float, key.min, key.max)
    });
    DefinitionWire {
        keys: keys.collect(),
        policy: match definition.policy {
            Policy::Set => 0,
            Policy::Best => 1,
            Policy::Incr => 2,
        },
        ties: match definition.ties {
            Ties::First => 0,
            Ties::Last => 1,
            Ties::Member => 2,
            Ties::MemberDesc => 3,
        },
        utc_offset_minutes: definition.utc_offset_minutes,
        keep: definition.keep,
        settings: settings_of(definition),
    }
}

fn settings_of(definition: &Definition) -> Vec<SettingWire> {
    let mut settings = Vec::new();
    if !definition.has_only_all() {
        let numbers = definition.windows.iter().map(|window| window.number());
        settings.push(SettingWire::Windows(numbers.collect()));
    }
    match &definition.seasons {
        None => {}
        Some(Seasons::Regular(all)) => {
            let series = |series: &Series| (series.first, series.begin.as_micros(), series.every);
            settings.push(SettingWire::RegularSeasons(all.iter().map(series).collect()));
        }
        Some(Seasons::Manual(begins)) => {
            let begins = begins.iter().map(|begin| begin.as_micros());
            settings.push(SettingWire::ManualSeasons(begins.collect()));
        }
    }
    if definition.grace_micros != DEFAULT_GRACE_MICROS {
        settings.push(SettingWire::Grace(definition.grace_micros));
    }
    settings.extend(definition.entry_ttl_micros.map(SettingWire::EntryTtl));
    settings.extend(definition.capacity.map(SettingWire::Capacity));
    settings.extend(definition.movement.then_some(SettingWire::Movement));
    settings.extend(definition.is_top_k().then_some(SettingWire::TopK));
    settings.extend(definition.final_until.map(|until| SettingWire::FinalUntil(until.as_micros())));
    settings.extend(
        definition
            .read_only
            .as_ref()
            .map(|read_only| SettingWire::ReadOnly(read_only.reason.clone(), read_only.since.as_micros())),
    );
    settings
}

pub(super) fn definition_from_wire(wire: DefinitionWire) -> Result<Definition, Undecodable> {
    let unknown = |what: &str| undecodable(KIND, format!("its {what} has an unknown number"));
    let mut keys = Vec::with_capacity(wire.keys.len());
    for (name, flags, min, max) in wire.keys {
        let beyond = |bit| if flags & bit == 0 { Beyond::Reject } else { Beyond::Clamp };
        let (below_min, above_max) = (beyond(CLAMPS_BELOW_MIN), beyond(CLAMPS_ABOVE_MAX));
        let key_type = if flags & IS_FLOAT == 0 { KeyType::Integer } else { KeyType::Float };
        let order = match flags & !(CLAMPS_BELOW_MIN | CLAMPS_ABOVE_MAX | IS_FLOAT) {
            0 => Order::Ascending,
            1 => Order::Descending,
            _ => return Err(unknown("order")),
        };
        keys.push(Key { name, order, key_type, min, max, below_min, above_max });
    }
    let policy = match wire.policy {
        0 => Policy::Set,
        1 => Policy::Best,
        2 => Policy::Incr,
        _ => return Err(unknown("policy")),
    };
    let ties = match wire.ties {
        0 => Ties::First,
        1 => Ties::Last,
        2 => Ties::Member,
        3 => Ties::MemberDesc,
        _ => return Err(unknown("tie rule")),
    };
    let (utc_offset_minutes, keep) = (wire.utc_offset_minutes, wire.keep);
    let mut definition = Definition { keys, policy, ties, utc_offset_minutes, keep, ..Definition::default() };
    for setting in &wire.settings {
        set(&mut definition, setting)?;
    }
    definition.validate().map_err(|error| undecodable(KIND, error))?;
    // One definition has one form: none has a setting twice, or one that says what is so anyway.
    if settings_of(&definition) != wire.settings {
        return Err(undecodable(KIND, "its settings are not in their form"));
    }
    Ok(definition)
}

fn set(definition: &mut Definition, setting: &SettingWire) -> Result<(), Undecodable> {
    let time = |micros: i64| Timestamp::from_micros(micros).map_err(|error| undecodable(KIND, error));
    match setting {
        SettingWire::Windows(numbers) => {
            let windows = numbers.iter().map(|number| Window::of_number(*number)).collect::<Option<_>>();
            let unknown = || undecodable(KIND, "a window of it has an unknown number");
            definition.windows = windows.ok_or_else(unknown)?;
        }
        SettingWire::RegularSeasons(all) => {
            let series = |(first, begin, every): &(u32, i64, i64)| {
                Ok(Series { first: *first, begin: time(*begin)?, every: *every })
            };
            definition.seasons = Some(Seasons::Regular(all.iter().map(series).collect::<Result<_, _>>()?));
        }
        SettingWire::ManualSeasons(begins) => {
            let begins = begins.iter().map(|begin| time(*begin)).collect::<Result<_, _>>()?;
            definition.seasons = Some(Seasons::Manual(begins));
        }
        SettingWire::Grace(micros) => definition.grace_micros = *micros,
        SettingWire::EntryTtl(micros) => definition.entry_ttl_micros = Some(*micros),
        SettingWire::Capacity(entries) => definition.capacity = Some(*entries),
        SettingWire::Movement => definition.movement = true,
        SettingWire::TopK => definition.kind = Kind::TopK,
        SettingWire::FinalUntil(micros) => definition.final_until = Some(time(*micros)?),
        SettingWire::ReadOnly(reason, since) => {
            let read_only = ReadOnly { reason: reason.clone(), since: time(*since)? };
            definition.read_only = Some(Arc::new(read_only));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::codec::bytes::from_slice;

    fn read(text: &str) -> Result<Definition, Undecodable> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("hexadecimal");
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        definition_from_wire(from_slice(KIND, &bytes)?)
    }

    /// A definition with one key, `a`.
    fn with(ties: &str, settings: &str) -> Result<Definition, Undecodable> {
        read(&format!("01 0161 00 00 00 00 {ties} 00 0c {settings}"))
    }

    #[test]
    fn what_nobody_writes_is_an_error() {
        let plain = with("02", "").expect("a plain board");
        assert_eq!((plain.ties, &plain.windows[..]), (Ties::Member, &[Window::All][..]));
        let daily = with("82", "01 00020002").expect("a board with days");
        assert_eq!((daily.ties, &daily.windows[..]), (Ties::Member, &[Window::All, Window::Day][..]));
        let manual = with("80", "03 00020005 020102 0300").expect("a board with a season");
        assert_eq!(manual.grace_micros, 0);
        assert_eq!(with("80", "01 0507").expect("a board with a capacity").capacity, Some(7));
        assert!(with("80", "02 00020002 06").expect("a board with movement").movement && !daily.movement);
        let until = with("80", "02 00020002 080e").expect("a board whose rule of expiry changed").final_until;
        assert_eq!(until.map(Timestamp::as_micros), Some(7));
        let counting = read("01 0161 01 00 14 02 80 00 0c 02 0507 07").expect("a board of the kind top_k");
        assert_eq!((counting.kind, counting.capacity), (Kind::TopK, Some(7)));
        for (ties, settings, what) in [
            ("80", "", "settings that are not there"),
            ("80", "00", "no settings"),
            ("00", "01 00020002", "settings that are not announced"),
            ("84", "01 00020002", "an unknown rule of ties"),
            ("04", "", "an unknown rule of ties"),
            ("80", "01 00020006", "an unknown window"),
            ("80", "01 00020202", "a window twice"),
            ("80", "01 0000", "no window"),
            ("80", "01 000100", "the default windows"),
            ("80", "01 0a00", "a setting of a later version"),
            ("80", "01 09000e", "no reason for being read-only"),
            ("80", "01 0801", "a time before 1970"),
            ("80", "02 0507 07", "a top_k whose policy is set"),
            ("80", "01 0500", "a capacity of nothing"),
            ("80", "02 0507 0302", "a setting before one with a smaller number"),
            ("80", "01 06", "movement without a window"),
            ("80", "02 00020002 0606", "a byte behind movement"),
            ("80", "03 00020002 06 06", "movement twice"),
            ("80", "02 0304 00020002", "settings in another order"),
            ("80", "02 0304 0304", "a setting twice"),
            ("80", "01 03fc0046c323", "the default grace"),
            ("80", "01 0301", "a negative grace"),
            ("80", "01 0402", "a lifetime of a microsecond"),
            ("80", "01 0200", "seasons without their window"),
            ("80", "01 00020005", "a window without its seasons"),
            ("80", "03 00020005 0100 0200", "seasons of both kinds"),
            ("80", "02 00020005 020101", "a season before 1970"),
            ("80", "02 00020005 02020404", "two seasons at the same time"),
            ("80", "02 00020005 020402", "a list that ends too early"),
            ("80", "fd0000000000000010", "more settings than there are bytes"),
            ("80", "01 00fd0000000000000010", "more windows than there are bytes"),
            ("80", "01 01fdffffffffffffffff", "more series than there are bytes"),
            ("80", "01 02fdffffffffffffffff", "more seasons than there are bytes"),
        ] {
            assert!(with(ties, settings).is_err(), "{what}");
        }
        assert_eq!(
            with("80", "01 03fc0046c323").expect_err("refused").reason,
            "its settings are not in their form"
        );
    }
}
