//! Self-contained records of the log: the meta record, rejects, parked jobs, metadata of entries, and
//! profiles.

use bincode::error::DecodeError;
use bincode::{Decode, Encode};

use crate::job::RejectCode;
use crate::state::{BanRecord, MemberVersion, ShardTime};
use crate::storage::codec::bytes::{CONFIG, Undecodable, decode_bounded, from_slice, to_vec, undecodable};
use crate::storage::identity::{Lineage, ServiceId, ShardIdentity};
use crate::types::{Sequence, Timestamp};

/// Written with every batch: the shard's progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub format_version: u32,
    pub shard: u16,
    /// The number of shards that members are spread over. A directory belongs to one such layout.
    pub shards: u16,
    pub applied_sequence: u64,
    /// The message's own time. With the hash it tells whether a message of the stream is the same one.
    pub message_timestamp_micros: i64,
    pub message_hash: u64,
    pub jobs_rejected: u64,
    /// Identity of the queue the sequences belong to: empty for the embedded queue.
    pub stream: String,
    /// The shard's effective time. Records of format 1 lack it, and use the message's time.
    pub time_micros: i64,
    /// The time of a leap that is not believed yet; mostly there is none.
    pub leap_micros: Option<i64>,
    /// What the shard is: in the same write batch as the applied sequence, so that neither is taken for that
    /// of another shard. Records without it are of no service.
    pub identity: ShardIdentity,
}

impl Meta {
    /// What the shard knew of the time after its last message.
    pub fn time(&self) -> ShardTime {
        let effective = Timestamp::from_micros(self.time_micros).unwrap_or_default();
        let leap = self.leap_micros.and_then(|micros| Timestamp::from_micros(micros).ok());
        ShardTime { effective, leap }
    }
}

/// The whole meta record of format 1. Later formats append to it.
#[derive(Encode, Decode)]
struct MetaWire {
    format_version: u32,
    shard: u16,
    shards: u16,
    applied_sequence: u64,
    message_timestamp_micros: i64,
    message_hash: u64,
    jobs_rejected: u64,
    stream: String,
}

/// Set in a reject's code if its time follows. Without it, the record is as it was before rejects had times.
const TIME_FOLLOWS: u8 = 0x80;

/// A job that was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectRecord {
    pub sequence: Sequence,
    /// The job's place within its message.
    pub index: u32,
    pub code: RejectCode,
    pub detail: String,
    /// The job as it arrived, truncated.
    pub job: Vec<u8>,
    /// The shard's effective time when it was rejected, which never decreases. `None`: stored before rejects
    /// had times.
    pub time: Option<Timestamp>,
}

/// A job that waits for the definition of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedRecord {
    /// The message that brought it.
    pub sequence: Sequence,
    /// Its place within the message.
    pub index: u32,
    /// The message's timestamp.
    pub timestamp: Timestamp,
    /// The job as JSON, as [`crate::wire`] encodes it.
    pub job: Vec<u8>,
    /// Index, among the boards that the job names, of the board that it waited for when it was last checked.
    pub board: u32,
}

#[derive(Encode, Decode)]
struct RejectWire {
    code: u8,
    detail: String,
    job: Vec<u8>,
}

/// Metadata of an entry, and the message that brought it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MetadataRecord {
    pub sequence: u64,
    pub json: String,
}

/// The profile of a member.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProfileRecord {
    /// The message that brought it as it is, or took it away.
    pub sequence: u64,
    /// Of the last job that had one.
    pub version: Option<u64>,
    /// A compact JSON object. `None`: it was taken away, and the version is remembered.
    pub json: Option<String>,
}

/// The format version of a meta record, even of a newer one, of which nothing else can be decoded.
pub fn format_version(meta: &[u8]) -> Option<u32> {
    bincode::decode_from_slice(meta, CONFIG).ok().map(|(version, _)| version)
}

pub fn encode_meta(meta: &Meta) -> Vec<u8> {
    let mut bytes = to_vec(&MetaWire {
        format_version: meta.format_version,
        shard: meta.shard,
        shards: meta.shards,
        applied_sequence: meta.applied_sequence,
        message_timestamp_micros: meta.message_timestamp_micros,
        message_hash: meta.message_hash,
        jobs_rejected: meta.jobs_rejected,
        stream: meta.stream.clone(),
    });
    if meta.format_version > 1 {
        bytes.extend(to_vec(&(meta.time_micros, meta.leap_micros)));
    }
    if meta.identity != ShardIdentity::default() {
        let ShardIdentity { service, lineage, epoch, opening, opened_before } = meta.identity;
        let service = service.map_or(0, |service| service.0);
        let lineage = lineage.map_or(0, |lineage| lineage.0);
        let numbers = (service, lineage, epoch, opening, opened_before);
        bytes.extend(to_vec(&numbers));
    }
    bytes
}

pub fn decode_meta(bytes: &[u8]) -> Result<Meta, Undecodable> {
    let fail = |error: DecodeError| undecodable("meta record", error);
    let (wire, read): (MetaWire, usize) = decode_bounded(bytes).map_err(fail)?;
    let rest = bytes.get(read..).unwrap_or_default();
    let (time_micros, leap_micros, rest) = match wire.format_version {
        ..=1 if rest.is_empty() => (wire.message_timestamp_micros, None, rest),
        ..=1 => return Err(undecodable("meta record", "there are more bytes after its end")),
        _ => {
            let ((time_micros, leap_micros), read) = decode_bounded(rest).map_err(fail)?;
            (time_micros, leap_micros, rest.get(read..).unwrap_or_default())
        }
    };
    let identity = if rest.is_empty() { ShardIdentity::default() } else { decode_identity(rest)? };
    Ok(Meta {
        format_version: wire.format_version,
        shard: wire.shard,
        shards: wire.shards,
        applied_sequence: wire.applied_sequence,
        message_timestamp_micros: wire.message_timestamp_micros,
        message_hash: wire.message_hash,
        jobs_rejected: wire.jobs_rejected,
        stream: wire.stream,
        time_micros,
        leap_micros,
        identity,
    })
}

fn decode_identity(bytes: &[u8]) -> Result<ShardIdentity, Undecodable> {
    let numbers = from_slice("meta record", bytes)?;
    let (service, lineage, epoch, opening, opened_before): (u128, u128, u64, u64, u64) = numbers;
    let service = (service > 0).then_some(ServiceId(service));
    let lineage = (lineage > 0).then_some(Lineage(lineage));
    Ok(ShardIdentity { service, lineage, epoch, opening, opened_before })
}

pub fn encode_metadata(record: &MetadataRecord) -> Vec<u8> {
    to_vec(record)
}

pub fn decode_metadata(bytes: &[u8]) -> Result<MetadataRecord, Undecodable> {
    from_slice("metadata record", bytes)
}

pub fn encode_profile(record: &ProfileRecord) -> Vec<u8> {
    to_vec(record)
}

pub fn decode_profile(bytes: &[u8]) -> Result<ProfileRecord, Undecodable> {
    from_slice("profile", bytes)
}

pub fn encode_ban(record: BanRecord) -> Vec<u8> {
    to_vec(&(record.since.as_micros(), record.version))
}

pub fn decode_ban(bytes: &[u8]) -> Result<BanRecord, Undecodable> {
    let (micros, version) = from_slice("ban", bytes)?;
    let since = Timestamp::from_micros(micros).map_err(|error| undecodable("ban", error))?;
    Ok(BanRecord { since, version })
}

pub fn encode_member_version(version: MemberVersion) -> Vec<u8> {
    to_vec(&(version.version, version.sequence.0))
}

pub fn decode_member_version(bytes: &[u8]) -> Result<MemberVersion, Undecodable> {
    let (version, sequence) = from_slice("member's version", bytes)?;
    Ok(MemberVersion { version, sequence: Sequence(sequence) })
}

/// A sequence: of the last removal of a profile.
pub fn encode_sequence(sequence: Sequence) -> Vec<u8> {
    to_vec(&sequence.0)
}

pub fn decode_sequence(kind: &'static str, bytes: &[u8]) -> Result<Sequence, Undecodable> {
    from_slice(kind, bytes).map(Sequence)
}

pub fn encode_reject(record: &RejectRecord) -> Vec<u8> {
    let code = RejectCode::ALL.iter().position(|code| *code == record.code).unwrap_or_default();
    let code = u8::try_from(code).expect("there are fewer than 256 codes");
    let code = if record.time.is_some() { code | TIME_FOLLOWS } else { code };
    let mut bytes = to_vec(&RejectWire { code, detail: record.detail.clone(), job: record.job.clone() });
    if let Some(time) = record.time {
        bytes.extend(to_vec(&time.as_micros()));
    }
    bytes
}

pub fn decode_reject(sequence: Sequence, index: u32, bytes: &[u8]) -> Result<RejectRecord, Undecodable> {
    let fail = |error: DecodeError| undecodable("reject", error);
    let (wire, read): (RejectWire, usize) = decode_bounded(bytes).map_err(fail)?;
    let time = match bytes.get(read..).unwrap_or_default() {
        rest if wire.code & TIME_FOLLOWS != 0 => {
            let micros: i64 = from_slice("reject", rest)?;
            Some(Timestamp::from_micros(micros).map_err(|error| undecodable("reject", error))?)
        }
        [] => None,
        _ => return Err(undecodable("reject", "there are more bytes after its end")),
    };
    let code = RejectCode::ALL.get(usize::from(wire.code & !TIME_FOLLOWS));
    let code = *code.ok_or_else(|| undecodable("reject", "its code is unknown"))?;
    Ok(RejectRecord { sequence, index, code, detail: wire.detail, job: wire.job, time })
}

pub fn encode_parked(record: &ParkedRecord) -> Vec<u8> {
    let mut bytes = to_vec(&(record.timestamp.as_micros(), record.job.as_slice()));
    // Nearly every job waits for the first board that it names.
    if record.board > 0 {
        bytes.extend(to_vec(&record.board));
    }
    bytes
}

pub fn decode_parked(sequence: Sequence, index: u32, bytes: &[u8]) -> Result<ParkedRecord, Undecodable> {
    let fail = |error: DecodeError| undecodable("parked job", error);
    let ((micros, job), read): ((i64, Vec<u8>), usize) = decode_bounded(bytes).map_err(fail)?;
    let timestamp = Timestamp::from_micros(micros).map_err(|error| undecodable("parked job", error))?;
    let rest = bytes.get(read..).unwrap_or_default();
    let board = if rest.is_empty() { 0 } else { from_slice("parked job", rest)? };
    if board == 0 && !rest.is_empty() {
        return Err(undecodable("parked job", "there are more bytes after its end"));
    }
    Ok(ParkedRecord { sequence, index, timestamp, job, board })
}

/// A job's place in the stream: its message's sequence, and its index in the message.
pub fn encode_place(sequence: Sequence, index: u32) -> Vec<u8> {
    to_vec(&(sequence.0, index))
}

pub fn decode_place(bytes: &[u8]) -> Result<(Sequence, u32), Undecodable> {
    let (sequence, index): (u64, u32) = from_slice("place", bytes)?;
    Ok((Sequence(sequence), index))
}
