//! Self-contained records of the log: the meta record, rejects, parked jobs, metadata of entries, and
//! profiles.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::job::RejectCode;
use crate::state::{BanRecord, FirstApplied, MemberVersion, ShardTime};
use crate::storage::codec::bytes::{CONFIG, Undecodable, from_slice, to_vec, undecodable};
use crate::storage::identity::{Lineage, ServiceId, ShardIdentity};
use crate::types::{BoardName, Sequence, Timestamp};

/// Written with every batch: the shard's progress.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Meta {
    /// The first field, so that it can be read in every format.
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
    /// The shard's effective time.
    pub time_micros: i64,
    /// The time of a leap that is not believed yet; mostly there is none.
    pub leap_micros: Option<i64>,
    /// What the shard is: in the same write batch as the applied sequence, so that neither is taken for that
    /// of another shard.
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
    /// The shard's effective time when it was rejected, which never decreases.
    pub time: Timestamp,
    /// The board whose share of the kept rejects it takes: the first that the job names, if there is such a
    /// board. Not told to other nodes.
    pub board: Option<BoardName>,
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

/// The format version of a meta record, even of one of which nothing else can be decoded.
pub fn format_version(meta: &[u8]) -> Option<u32> {
    bincode::decode_from_slice(meta, CONFIG).ok().map(|(version, _)| version)
}

pub fn encode_meta(meta: &Meta) -> Vec<u8> {
    to_vec(meta)
}

pub fn decode_meta(bytes: &[u8]) -> Result<Meta, Undecodable> {
    from_slice("meta record", bytes)
}

impl Encode for ShardIdentity {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let Self { service, lineage, epoch, opening, opened_before } = self;
        let ids = (service.map(|service| service.0), lineage.map(|lineage| lineage.0));
        (ids, epoch, opening, opened_before).encode(encoder)
    }
}

impl<C> Decode<C> for ShardIdentity {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let ((service, lineage), epoch, opening, opened_before) = Decode::decode(decoder)?;
        let (service, lineage) = (Option::map(service, ServiceId), Option::map(lineage, Lineage));
        Ok(Self { service, lineage, epoch, opening, opened_before })
    }
}

bincode::impl_borrow_decode!(ShardIdentity);

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

pub fn encode_job_id(first: FirstApplied) -> Vec<u8> {
    to_vec(&(first.time.as_micros(), first.sequence.0, first.changed))
}

pub fn decode_job_id(bytes: &[u8]) -> Result<FirstApplied, Undecodable> {
    let (micros, sequence, changed) = from_slice("job's id", bytes)?;
    let time = Timestamp::from_micros(micros).map_err(|error| undecodable("job's id", error))?;
    Ok(FirstApplied { time, sequence: Sequence(sequence), changed })
}

pub fn encode_last_job(time: Timestamp) -> Vec<u8> {
    to_vec(&time.as_micros())
}

pub fn decode_last_job(bytes: &[u8]) -> Result<Timestamp, Undecodable> {
    Timestamp::from_micros(from_slice("last job", bytes)?).map_err(|error| undecodable("last job", error))
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
    // The board is first, so that a start reads no more of each.
    let board = record.board.as_ref().map(BoardName::as_str);
    to_vec(&(board, code, record.detail.as_str(), record.job.as_slice(), record.time.as_micros()))
}

/// The board of a reject, even of one of which nothing else can be decoded.
pub fn board_of_reject(bytes: &[u8]) -> Option<BoardName> {
    let (board, _) = bincode::borrow_decode_from_slice::<Option<&str>, _>(bytes, CONFIG).ok()?;
    BoardName::new(board?).ok()
}

pub fn decode_reject(sequence: Sequence, index: u32, bytes: &[u8]) -> Result<RejectRecord, Undecodable> {
    let (board, code, detail, job, micros): (Option<String>, u8, String, Vec<u8>, i64) =
        from_slice("reject", bytes)?;
    let board = board.map(|board| BoardName::new(&board)).transpose();
    let board = board.map_err(|error| undecodable("reject", error))?;
    let code = RejectCode::ALL.get(usize::from(code));
    let code = *code.ok_or_else(|| undecodable("reject", "its code is unknown"))?;
    let time = Timestamp::from_micros(micros).map_err(|error| undecodable("reject", error))?;
    Ok(RejectRecord { sequence, index, code, detail, job, time, board })
}

pub fn encode_parked(record: &ParkedRecord) -> Vec<u8> {
    to_vec(&(record.timestamp.as_micros(), record.job.as_slice(), record.board))
}

pub fn decode_parked(sequence: Sequence, index: u32, bytes: &[u8]) -> Result<ParkedRecord, Undecodable> {
    let (micros, job, board): (i64, Vec<u8>, u32) = from_slice("parked job", bytes)?;
    let timestamp = Timestamp::from_micros(micros).map_err(|error| undecodable("parked job", error))?;
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
