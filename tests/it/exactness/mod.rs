//! Every rank, token, removal and rejection follows from the jobs exactly, over HTTP and over NATS.
//!
//! - [`real_data`]: 108,000 real jobs give the same ranks as a model that only sorts, for any number of
//!   shards
//! - [`nats_real_data`]: the same over NATS, with one job a message and with many
//! - [`removals`]: what clearing and trimming a board removes and keeps, also when the process is killed
//! - [`nats_removals`]: the same over NATS, on every replica; and commands that a shard does not know
//! - [`job_ids`]: a job of an id counts once, whoever sends it again
//! - [`jobs_during_drops`]: no kind of job is rejected because its board is being dropped
//! - [`rejects`]: rejected jobs are listed newest first, to those who may see them, and counted in the log
//! - [`nats_rejects`]: two nodes publish each rejection once
//! - [`board_tokens`]: tokens of definitions and drops name every shard, and no token is empty
//! - [`board_ends`]: boards that end by themselves do so at their time, and no wrong definition ends one
//! - [`bans`]: whoever is hidden is in no read of any window, until the ban ends
//! - [`erasure`]: what is left of a member that was removed from every board
//! - [`windows`]: each instance of a window has the ranks of its own jobs, from its first instant on
//! - [`real_windows`]: thirty days of real jobs through every window, as sorted by hand, over crashes
//! - [`definitions`]: a changed definition changes what it names, and drops nothing without consent
//! - [`definition_changes`]: what a change would drop is said beforehand, and is what it drops
//! - [`capacity`]: a board with a capacity shows its best entries only, however many there are
//! - [`combine`]: several boards together are what a model says, and of one moment while members move
//! - [`floats`]: scores that are doubles rank as doubles compare, and come back with their shortest digits
//! - [`names`]: boards of any name that a path can carry, also beside boards of nearly the same name
//! - [`top_k`]: boards that count in fixed memory hold what `SpaceSaving` gives, on every replica
//! - [`movement`]: how far entries have moved since a season began is what two lists say
//! - [`profiles`]: profiles of members, joined into answers of the same moment
//! - [`quiet_shards`]: entries expire and instances are dropped although nobody writes
//! - [`wrong_clock`]: a clock that is wrong for a while destroys nothing, and a long stop loses no write
//! - [`contract`]: all of these at once equal a model, on any shards and nodes, over crashes and a rebuild
//! - [`versions`]: a repetition counts once, and an increment that was overtaken is refused and not added
//! - [`future_time`]: a time of more than five minutes ahead is rejected, whichever way a job comes
//! - [`wide_jobs`]: jobs of many rankings are not refused for what they share a message with

mod bans;
mod board_ends;
mod board_tokens;
mod capacity;
mod combine;
mod contract;
mod definition_changes;
mod definitions;
mod erasure;
mod floats;
mod future_time;
mod job_ids;
mod jobs_during_drops;
mod movement;
mod names;
mod nats_real_data;
mod nats_rejects;
mod nats_removals;
mod profiles;
mod quiet_shards;
mod real_data;
mod real_windows;
mod rejects;
mod removals;
mod top_k;
mod versions;
mod wide_jobs;
mod windows;
mod wrong_clock;
