//! Answered writes are on disk and counted once, even if processes are killed, files are damaged or disks are
//! full. A shard that cannot be certain of its data refuses to start.
//!
//! - [`crash`]: kill -9 at random moments loses nothing that was answered, and counts nothing twice
//! - [`nats_crash`]: the same with kills of the service and of NATS
//! - [`nats_cluster`]: the same with three replicated servers, which are killed one after the other
//! - [`nats_failed_commit`]: a write whose commit failed is in the stream, and is applied later
//! - [`damage`]: a damaged data directory gives correct ranks, or is refused and left unchanged; no start
//!   hangs
//! - [`unread_damage`]: damage in files that no start needs is found, and said, without anybody asking
//! - [`full_disk`]: writes are refused, reads are answered, nothing answered is lost, and the shard recovers
//! - [`identity`]: data that are not what the data directory had there are refused before a byte is written
//! - [`moved_directory`]: a data directory that is moved or deleted under a service is noticed, and no other
//!   directory is written to
//! - [`two_processes`]: a data directory belongs to one process at a time

mod crash;
mod damage;
mod full_disk;
mod identity;
mod moved_directory;
mod nats_cluster;
mod nats_crash;
mod nats_failed_commit;
mod two_processes;
mod unread_damage;
