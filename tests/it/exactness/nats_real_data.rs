//! The real jobs by way of NATS, one a message and many: every rank, position and neighbour is the model's.

use crate::exactness::real_data::{Answers, check, expected};
use crate::support::nats::{Nats, wait_applied, wait_freed};
use crate::support::node::Node;
use crate::support::real_jobs::{self, RealJob};

#[test]
fn real_jobs_through_nats_rank_like_the_model_on_any_number_of_shards() {
    let jobs = real_jobs::load();
    let boards = expected(&jobs);
    let jobs: Vec<_> = jobs.iter().map(RealJob::to_json).collect();
    let mut first: Option<Answers> = None;
    for (shards, per_message) in [(1, 1), (3, 100), (10, 7)] {
        let nats = Nats::start();
        let mut service = Node::with_nats(&nats)
            .shards(shards)
            .stream_mib(64)
            .flags(&["--checkpoint-changes", "4000", "--nats-keep", "0"])
            .start();
        let last = nats.publish_jobs(shards, &jobs, per_message);
        wait_applied(&service.client(), &last);
        // Boards that jobs create exist a moment after the jobs are stored.
        wait_freed(&nats, &service.client(), shards);
        let answers = check(&service.client(), &boards);
        service.kill9();
        service.restart();
        wait_applied(&service.client(), &last);
        check(&service.client(), &boards);
        assert!(service.terminate().success());
        service.verify();
        let first = first.get_or_insert_with(|| answers.clone());
        assert!(answers.keys().eq(first.keys()));
        for (place, answer) in &answers {
            assert_eq!(Some(answer), first.get(place), "{place:?}");
        }
    }
}
