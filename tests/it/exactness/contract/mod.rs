//! All of the contract's boards, jobs and reads at once, compared with a model of plain vectors and maps:
//! random jobs over HTTP and NATS, with every kind of window, expiry, capacity, movement, profiles, versions,
//! hides, removals, trims, seasons that begin and a day that ends, while nodes are killed.
//!
//! - [`world`], [`board`], [`rules`], [`calendar`]: the model
//! - [`jobs`]: random boards and jobs
//! - [`reads`], [`counts`], [`board_reads`]: every read, compared with the model
//! - [`clusters`]: the nodes
//! - [`play`]: plays the same to both
//! - [`copies`]: exports and imports
//!
//! `RANKTREE_CRASH_SEED` repeats the random choices of a run.

mod board;
mod board_reads;
mod calendar;
mod clusters;
mod copies;
mod counts;
mod jobs;
mod play;
mod reads;
mod rules;
mod world;

use clusters::Cluster;
use play::Play;

use crate::support::command::run;
use crate::support::rounds::rounds;

/// How often nodes are compared with the model, while jobs come.
const ROUNDS: [u64; 3] = [3, 6, 12];

fn play(cluster: Cluster) -> Play {
    let mut play = Play::begin(cluster);
    let rounds = rounds(ROUNDS);
    for round in 0..rounds {
        for _ in 0..4 {
            play.post_some(24);
        }
        play.post_one();
        play.change_a_board();
        if play.cluster.nats.is_some() {
            play.publish(30);
            play.ask_an_owner();
        } else {
            play.post_to_a_killed_node();
            play.post_to_a_killed_node();
        }
        play.post_some(40);
        play.change_a_board();
        play.open_a_season();
        play.post_some(40);
        play.check(false);
        if round == rounds / 3 {
            match play.cluster.nodes.len() {
                1 if play.cluster.nats.is_none() => play.cluster.go_on_from_a_snapshot(),
                // The only owner of a shard finds nobody who has a copy.
                1 => {}
                _ => play.cluster.lose_a_shard(1),
            }
        }
        if round == rounds / 2 {
            play.wait_for_the_turn();
        }
    }
    play.check(true);
    println!("rejected: {:?}", play.world.rejects);
    for (name, board) in &play.world.boards {
        let shown = board.instances.keys().map(|instance| (instance, board.shown(instance).len()));
        println!("{name} shows {:?}", shown.collect::<Vec<_>>());
    }
    play
}

fn without_nats(shards: u16) {
    let mut play = play(Cluster::embedded(shards));
    play.check_imports();
    play.cluster.end();
    let said = run("rebuild", play.cluster.nodes[0].data_dir());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    play.cluster.restart(0);
    play.check(true);
    play.cluster.end();
}

fn with_nats(cluster: Cluster) {
    let mut play = play(cluster);
    play.cluster.lose(0);
    play.cluster.restart(0);
    play.check(true);
    play.cluster.end();
}

#[test]
fn one_shard_equals_the_model() {
    without_nats(1);
}

#[test]
fn three_shards_equal_the_model() {
    without_nats(3);
}

#[test]
fn sixteen_shards_behind_nats_equal_the_model() {
    let all: Vec<u16> = (0..16).collect();
    with_nats(Cluster::with_nats(16, &[&all]));
}

#[test]
fn three_nodes_that_share_three_shards_equal_the_model() {
    with_nats(Cluster::with_nats(3, &[&[0, 1], &[1, 2], &[2, 0]]));
}
