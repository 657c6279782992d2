//! What goes wrong, one thing at a time, and how it is mended.

use std::sync::RwLock;
use std::thread;
use std::time::Duration;

use crate::disturbed_cluster::world::World;
use crate::support::command::signal;
use crate::support::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disturbance {
    KillNode,
    FreezeNode,
    CutNode,
    EmptyNode,
    AgeNode,
    KillServer,
    FreezeServer,
}

use Disturbance::{AgeNode, CutNode, EmptyNode, FreezeNode, FreezeServer, KillNode, KillServer};

/// In the order in which they come round.
pub const ALL: [Disturbance; 7] =
    [KillNode, KillServer, FreezeNode, CutNode, EmptyNode, FreezeServer, AgeNode];

/// Long enough for others to notice that something is gone, and short enough for many rounds.
const AWAY_MS: (u64, u64) = (200, 2_500);

/// Breaks something of number `victim`, and mends it; the world is not yet well when this returns.
pub fn disturb(
    world: &mut World,
    disturbance: Disturbance,
    victim: usize,
    bases: &RwLock<Vec<String>>,
    random: &mut Random,
) {
    let mut away = || thread::sleep(Duration::from_millis(AWAY_MS.0 + random.below(AWAY_MS.1 - AWAY_MS.0)));
    match disturbance {
        KillNode => {
            world.nodes[victim].kill9();
            away();
            world.keep_copy(victim);
            restart(world, victim, bases);
        }
        EmptyNode => {
            world.nodes[victim].kill9();
            world.empty(victim);
            away();
            restart(world, victim, bases);
        }
        AgeNode => {
            world.nodes[victim].kill9();
            world.put_copy_back(victim);
            away();
            restart(world, victim, bases);
        }
        FreezeNode => {
            let pid = world.nodes[victim].pid();
            signal("STOP", pid);
            away();
            signal("CONT", pid);
        }
        CutNode => {
            world.cut(victim);
            away();
            world.join(victim);
        }
        KillServer => {
            world.cluster.kill9(victim);
            away();
            let streams = World::streams();
            world.cluster.restart(victim, &streams);
        }
        FreezeServer => {
            world.cluster.freeze(victim);
            away();
            let streams = World::streams();
            world.cluster.thaw(victim, &streams);
        }
    }
}

fn restart(world: &mut World, node: usize, bases: &RwLock<Vec<String>>) {
    world.nodes[node].restart();
    *bases.write().expect("no panic") = world.bases();
}
