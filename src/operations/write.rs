//! Jobs scattered to their members' shards, and what came of them gathered again in the request's order.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use smallvec::{SmallVec, smallvec};

use crate::access::Grant;
use crate::job::{BOARDS_PER_MESSAGE, Job, MAX_TREES_PER_BOARD};
use crate::operations::failure::Failure;
use crate::operations::publish::{Publishing, publish_all, publish_one, settle};
use crate::operations::remote::write_remotely;
use crate::operations::results::{JobResult, ReportedJob, message_results};
use crate::operations::shared::{Cluster, Operations};
use crate::operations::write_options::{Wait, WriteOptions};
use crate::queue::nats::BoardsStream;
use crate::queue::publisher::Publisher;
use crate::queue::{MessageOrder, NotPublished};
use crate::state_lock::Purpose;
use crate::types::{AsOf, Sequence, ShardId};
use crate::writer::{MessageOutcome, Payload};

/// Jobs per message. A message is applied under one hold of the lock, so this is how many edits a reader may
/// have to wait for: 64 of them take about 50 microseconds.
const JOBS_PER_MESSAGE: usize = 64;
/// How many jobs each message of a request has. Most have one message.
type Lengths = SmallVec<[usize; 1]>;
/// How long a request waits for the definition of a new board. It takes milliseconds, unless boards cannot be
/// decided on. Then the client is told that its job waits.
const BOARD_TIMEOUT: Duration = Duration::from_secs(10);

/// The outcome of a request's jobs.
pub struct Written {
    /// A read that waits for this token reads these writes.
    pub token: AsOf,
    /// One per job, in order.
    pub results: Vec<JobResult>,
}

impl Operations {
    /// Publishes the jobs to their members' shards. Waits until their streams have stored them, or until they
    /// are applied, as the options say; without NATS, for their synced commits. Jobs of one member apply in
    /// order: once one of them is refused, none behind it is sent. A failure of a part of the jobs is told by
    /// job.
    ///
    /// # Arguments
    /// `grant`: the client's token, if there is a limit to its boards.
    ///
    /// # Errors
    /// When the service or a job's board is read-only; when the token may not make so many boards; when a
    /// shard takes no writes, or does not answer in time.
    pub async fn write(
        self: &Arc<Self>,
        jobs: Vec<Job>,
        options: WriteOptions,
        grant: Option<&Arc<Grant>>,
    ) -> Result<Written, Failure> {
        self.check_jobs_writable(&jobs)?;
        if let Some(grant) = grant {
            Box::pin(self.create_for(grant, &jobs)).await?;
        }
        let wait = options.wait;
        let reported: Vec<ReportedJob> =
            jobs.iter().map(|job| ReportedJob::of(job, options.detail)).collect();
        let homes: Vec<ShardId> = reported.iter().map(|job| self.node.home_of(&job.member)).collect();
        let mut shards = homes.clone();
        shards.sort_unstable();
        shards.dedup();
        self.check_live(shards.iter().copied())?;
        if let Some(cluster) = &self.cluster {
            Box::pin(wait_for_boards(&cluster.boards, &jobs, &homes)).await?;
        }
        let mut erased = Vec::new();
        if jobs.iter().any(Job::leaves_every_board) {
            // First of all: a removal that is applied may not be sent again, and this may.
            erased = Box::pin(self.erase_elsewhere(&jobs, wait)).await?;
        }
        let only = <[ShardId; 1]>::try_from(shards).ok();
        if let Some([home]) = only
            && (wait == Wait::UntilStored || self.node.owned(home).is_some())
        {
            // In a box: otherwise the future around it, which is copied with it, would have room for it.
            let mut written = Box::pin(self.write_to_one(home, jobs, &reported, options)).await?;
            add_to_token(&mut written.token.0, erased);
            return Ok(written);
        }
        let mut by_shard: Vec<Vec<(usize, Job)>> = self.node.all_shards().map(|_| Vec::new()).collect();
        for ((index, job), home) in jobs.into_iter().enumerate().zip(&homes) {
            if let Some(shard) = by_shard.get_mut(home.index()) {
                shard.push((index, job));
            }
        }
        let mut messages: Vec<(ShardId, Vec<usize>)> = Vec::new();
        let mut publishings: Vec<(ShardId, Publishing<'_, MessageOutcome>)> = Vec::new();
        let (mut remote, shard_count) = (Vec::new(), self.node.shard_count());
        for (shard, jobs) in self.node.all_shards().zip(by_shard) {
            let is_remote =
                wait == Wait::UntilApplied && self.node.owned(shard).is_none() && !jobs.is_empty();
            if let Some(Cluster { writer, .. }) = self.cluster.as_ref().filter(|_| is_remote) {
                let (indexes, jobs): (Vec<usize>, Vec<Job>) = jobs.into_iter().unzip();
                remote.push(async move {
                    (shard, indexes, write_remotely(writer, (shard, shard_count), &jobs, options).await)
                });
                continue;
            }
            let publisher = self.publishers.of(shard);
            let (indexes, jobs): (Vec<usize>, Vec<Job>) = jobs.into_iter().unzip();
            let lengths = lengths_of(&jobs, self.wide_of(shard, &jobs));
            messages.extend(parts(&indexes, &lengths).map(|indexes| (shard, indexes.to_vec())));
            let published = messages_of(publisher, jobs, lengths, options);
            publishings.extend(published.map(|publishing| (shard, publishing)));
        }
        let (published, remote) = tokio::join!(publish_all(publishings), join_all(remote));
        let published = published?;
        let deadline = tokio::time::Instant::now() + BOARD_TIMEOUT;
        let mut outcomes = Vec::with_capacity(published.len());
        for outcome in published {
            outcomes.push(match outcome {
                Ok(outcome) => Ok(settle(outcome, deadline).await),
                Err(why) => Err(why),
            });
        }
        let mut results: Vec<Option<JobResult>> = reported.iter().map(|_| None).collect();
        let mut token: Vec<(ShardId, Sequence)> = Vec::new();
        for ((shard, indexes), outcome) in messages.into_iter().zip(outcomes) {
            if let Ok(outcome) = &outcome {
                add_to_token(&mut token, [(shard, outcome.sequence)]);
            }
            let mut of_message = Vec::with_capacity(indexes.len());
            match (wait, outcome) {
                (Wait::UntilStored, Ok(_)) => of_message.extend(indexes.iter().map(|_| JobResult::Stored)),
                (_, Err(why)) => of_message.extend(indexes.iter().map(|_| JobResult::Failed(why.clone()))),
                (Wait::UntilApplied, Ok(outcome)) => {
                    let Some(home) = self.node.owned(shard) else { continue };
                    let of_jobs: Vec<&ReportedJob> =
                        indexes.iter().filter_map(|index| reported.get(*index)).collect();
                    message_results(self, home, &of_jobs, outcome, &mut of_message).await;
                }
            }
            put_in_place(&mut results, &indexes, of_message);
        }
        for (shard, indexes, outcome) in remote {
            add_to_token(&mut token, outcome.sequence.map(|sequence| (shard, sequence)));
            put_in_place(&mut results, &indexes, outcome.results);
        }
        add_to_token(&mut token, erased);
        let results: Vec<JobResult> =
            results.into_iter().map(|result| result.unwrap_or_else(without_outcome)).collect();
        Ok(Written { token: AsOf(token), results: self.fill_metadata_of_changes(results).await? })
    }

    /// Has every shard but its own erase what its rejects have of each member that leaves every board: a job
    /// that was sent to the wrong shard was rejected there. Returns where each shard has it.
    async fn erase_elsewhere(&self, jobs: &[Job], wait: Wait) -> Result<Vec<(ShardId, Sequence)>, Failure> {
        let erase = async |shard: ShardId| {
            let leaving = jobs.iter().filter(|job| job.leaves_every_board());
            let strangers =
                leaving.map(|job| &job.member).filter(|member| self.node.home_of(member) != shard);
            let members: Vec<_> = strangers.cloned().collect();
            if members.is_empty() {
                return Ok(None);
            }
            let bytes = members.iter().map(|member| member.as_bytes().len()).sum();
            let (publisher, payload) = (self.publishers.of(shard), Payload::Erase { members });
            let sequence = if wait == Wait::UntilApplied && self.node.owned(shard).is_some() {
                publisher.apply_command(payload, bytes).await?.sequence
            } else {
                publisher.store_command(payload, bytes).await?
            };
            Ok::<_, NotPublished>(Some((shard, sequence)))
        };
        let erased = join_all(self.node.all_shards().map(erase)).await;
        let erased: Result<Vec<_>, NotPublished> = erased.into_iter().collect();
        Ok(erased?.into_iter().flatten().collect())
    }

    /// Jobs that all go to one shard, as a single one does, and those of every request to a node of one
    /// shard: there is nothing to scatter, and nothing to gather.
    async fn write_to_one(
        &self,
        home: ShardId,
        jobs: Vec<Job>,
        reported: &[ReportedJob],
        options: WriteOptions,
    ) -> Result<Written, Failure> {
        let lengths = lengths_of(&jobs, self.wide_of(home, &jobs));
        let mut publishings = messages_of(self.publishers.of(home), jobs, lengths.clone(), options);
        let first = publishings.next();
        let rest: Vec<_> = publishings.collect();
        let published: SmallVec<[Result<MessageOutcome, NotPublished>; 1]> = match first {
            Some(only) if rest.is_empty() => smallvec![publish_one(only).await?],
            first => {
                let all = first.into_iter().chain(rest).map(|publishing| (home, publishing)).collect();
                SmallVec::from_vec(Box::pin(publish_all(all)).await?)
            }
        };
        let deadline = tokio::time::Instant::now() + BOARD_TIMEOUT;
        let owned = self.node.owned(home).filter(|_| options.wait == Wait::UntilApplied);
        let mut results = Vec::with_capacity(reported.len());
        let mut last = None;
        for (published, reported) in published.into_iter().zip(parts(reported, &lengths)) {
            let end = results.len() + reported.len();
            match published {
                Ok(outcome) => {
                    let outcome = settle(outcome, deadline).await;
                    last = last.max(Some(outcome.sequence));
                    match owned {
                        Some(shard) => message_results(self, shard, reported, outcome, &mut results).await,
                        None => results.extend(reported.iter().map(|_| JobResult::Stored)),
                    }
                }
                Err(why) => results.extend(reported.iter().map(|_| JobResult::Failed(why.clone()))),
            }
            results.resize_with(end, without_outcome);
        }
        let token = AsOf(last.map(|sequence| (home, sequence)).into_iter().collect());
        Ok(Written { token, results: self.fill_metadata_of_changes(results).await? })
    }

    /// As how many boards a wide job counts in a message to a shard: no member has more than there are.
    fn wide_of(&self, shard: ShardId, jobs: &[Job]) -> usize {
        // Most requests have none, and ask for no lock.
        let Some(own) = self.node.owned(shard).filter(|_| jobs.iter().any(Job::is_wide)) else {
            return BOARDS_PER_MESSAGE;
        };
        let state = own.state.read(Purpose::Read);
        let rankings = state.board_count() + state.instance_count();
        // And those that a job may count of the board that it names.
        (1 + rankings.div_ceil(MAX_TREES_PER_BOARD)).min(BOARDS_PER_MESSAGE)
    }
}

fn add_to_token(token: &mut Vec<(ShardId, Sequence)>, more: impl IntoIterator<Item = (ShardId, Sequence)>) {
    for (shard, sequence) in more {
        match token.binary_search_by_key(&shard, |(known, _)| *known) {
            Ok(at) => token.iter_mut().skip(at).take(1).for_each(|known| known.1 = known.1.max(sequence)),
            Err(at) => token.insert(at, (shard, sequence)),
        }
    }
}

/// Waits until the decisions on the jobs' boards that were made before are known here. Its caller boxes it,
/// like whatever a write seldom waits for: the future of each request would have room for it.
async fn wait_for_boards(boards: &BoardsStream, jobs: &[Job], homes: &[ShardId]) -> Result<(), Failure> {
    boards.wait_until_following().await;
    let named = jobs.iter().zip(homes).flat_map(|(job, home)| job.boards().map(|board| (*home, board)));
    let due = boards.decisions_before(named);
    Ok(boards.wait_for_decisions(due).await?)
}

/// Puts the results of a part of the jobs where these jobs are in the request.
fn put_in_place(results: &mut [Option<JobResult>], indexes: &[usize], of_part: Vec<JobResult>) {
    for (index, result) in indexes.iter().zip(of_part) {
        if let Some(slot) = results.get_mut(*index) {
            *slot = Some(result);
        }
    }
}

fn without_outcome() -> JobResult {
    JobResult::Failed(NotPublished::Unknown("the shard returned no outcome for the job".to_owned()))
}

/// The messages of jobs that go to one shard, to be published.
fn messages_of<'p>(
    publisher: &'p Publisher,
    jobs: Vec<Job>,
    lengths: Lengths,
    options: WriteOptions,
) -> impl ExactSizeIterator<Item = Publishing<'p, MessageOutcome>> + use<'p> {
    let orders = if publisher.stores_before_apply() {
        orders_of(&jobs, &lengths)
    } else {
        MessageOrder::in_sequence(lengths.len())
    };
    let mut jobs = jobs.into_iter();
    orders.into_iter().zip(lengths).map(move |(order, length)| -> Publishing<'p, MessageOutcome> {
        let jobs = jobs.by_ref().take(length).collect();
        match options.wait {
            Wait::UntilApplied => Box::pin(publisher.publish_jobs(jobs, order, options.detail)),
            Wait::UntilStored => Box::pin(async move {
                let stored = publisher.store_jobs(jobs, order).await;
                stored.map(|sequence| MessageOutcome::of_jobs(sequence, Vec::new()))
            }),
        }
    })
}

/// Which of a shard's earlier messages each message waits for.
fn orders_of(jobs: &[Job], lengths: &[usize]) -> Vec<MessageOrder> {
    match lengths {
        [] => Vec::new(),
        [_] => vec![MessageOrder::default()],
        _ => MessageOrder::of(parts(jobs, lengths).map(|jobs| jobs.iter().map(|job| &job.member))),
    }
}

/// Cuts jobs into messages, in their order: each as long as one may be, and with no more boards than a shard
/// takes in a message, so that it rejects none of them for what is beside it.
///
/// # Arguments
/// `wide`: as how many boards a wide job counts
fn lengths_of(jobs: &[Job], wide: usize) -> Lengths {
    let mut lengths = Lengths::new();
    let mut boards = 0;
    for job in jobs {
        let more = job.boards_in_message(wide);
        match lengths.last_mut() {
            Some(length) if *length < JOBS_PER_MESSAGE && boards + more <= BOARDS_PER_MESSAGE => {
                *length += 1;
                boards += more;
            }
            _ => {
                lengths.push(1);
                boards = more;
            }
        }
    }
    lengths
}

/// The parts of these lengths that follow one another.
fn parts<'a, T>(all: &'a [T], lengths: &'a [usize]) -> impl Iterator<Item = &'a [T]> {
    let mut rest = all;
    lengths.iter().map(move |length| {
        let (part, later) = rest.split_at_checked(*length).unwrap_or((rest, <&[T]>::default()));
        rest = later;
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{MAX_BOARDS_PER_JOB, MAX_JOBS_PER_MESSAGE, Op, Targets};
    use crate::types::{BoardName, MemberId};

    fn jobs(op: Op, boards: &[usize]) -> Vec<Job> {
        let job = |(index, boards): (usize, &usize)| {
            let name = |number| BoardName::new(&format!("b{number}")).expect("a good name");
            let targets = match *boards {
                0 => Targets::EveryBoard,
                boards => Targets::Boards((0..boards).map(|number| (name(number), None)).collect()),
            };
            let member = MemberId::new(format!("m{index}")).expect("a good id");
            Job { member, targets, op: Some(op), version: None, at: None, meta: None }
        };
        boards.iter().enumerate().map(job).collect()
    }

    #[test]
    fn messages_have_as_many_jobs_and_boards_as_a_shard_takes() {
        let cut = |op: Op, wide: usize, boards: &[usize], expected: &[usize]| {
            let jobs = jobs(op, boards);
            let lengths = lengths_of(&jobs, wide);
            assert_eq!(lengths.as_slice(), expected);
            let cut: Vec<&[Job]> = parts(&jobs, &lengths).collect();
            assert_eq!(cut.concat(), jobs);
            for part in cut {
                let boards: usize = part.iter().map(|job| job.boards_in_message(wide)).sum();
                assert!(boards <= BOARDS_PER_MESSAGE && part.len() <= JOBS_PER_MESSAGE);
            }
        };
        for op in [Op::Set, Op::Best, Op::Incr] {
            let check =
                |op, boards: &[usize], expected: &[usize]| cut(op, BOARDS_PER_MESSAGE, boards, expected);
            check(op, &[], &[]);
            check(op, &[1], &[1]);
            check(op, &[1; 64], &[64]);
            check(op, &[1; MAX_JOBS_PER_MESSAGE], &[[64; 15].as_slice(), &[40]].concat());
            check(op, &[15; 64], &[64]);
            check(op, &[16; 64], &[62, 2]);
            check(op, &[MAX_BOARDS_PER_JOB; 62], &[15, 15, 15, 15, 2]);
        }
        // On how many rankings the member is nobody knows here.
        for op in [Op::Remove, Op::Hide, Op::Show] {
            cut(op, BOARDS_PER_MESSAGE, &[1; 3], &[1; 3]);
            cut(op, 400, &[1; 5], &[2, 2, 1]);
            cut(op, 1, &[1; 64], &[64]);
            // It counts as a job of many boards at least.
            cut(op, 1, &[0; 16], &[15, 1]);
        }
    }
}
