//! What a job costs apart from time: instructions, memory references and cache misses, of the engine and of
//! a raw RocksDB batch of member → score, counted by Valgrind on a small tree ([`support::counts`]). The
//! engine is counted while nobody reads, as while it catches up, and while it is read before each batch.
//!
//! Prints `RATIO instructions_… raw/engine`. A test bounds the engine's counts: `cost::instructions`.
//!
//! `cargo bench --bench instructions -- --access uniform,zipf --scores distinct,tied`

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::string_slice,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use support::counts::{Counts, MEMBERS, Side, count, counted, valgrind};
use support::workload::{Access, Scores};
use support::{argument, list, scratch, short};

fn main() {
    let side = |name: &str| match name {
        "raw" => Side::Raw,
        "read_engine" => Side::ReadEngine,
        _ => Side::Engine,
    };
    let access = |name: &str| if name == "zipf" { Access::Zipf } else { Access::Uniform };
    let distribution = |name: &str| if name == "tied" { Scores::Tied } else { Scores::Distinct };
    if let Some(name) = argument("counted") {
        let asked = |name| argument(name).expect("the program that counts gives it");
        let folder = scratch();
        counted(
            side(&name),
            access(&asked("access")),
            distribution(&asked("scores")),
            folder.path(),
            asked("applied") == "true",
        );
        return;
    }
    for scores in list("scores", "distinct,tied") {
        for access in list("access", "uniform,zipf") {
            let of = |side: &str| {
                count(&valgrind(), |command, applied| {
                    command.args(["--counted", side, "--access", &access, "--scores", &scores]);
                    command.args(["--applied", if applied { "true" } else { "false" }]);
                })
            };
            let Some(((engine, read), raw)) = of("engine").zip(of("read_engine")).zip(of("raw")) else {
                println!("Valgrind is not here: `make valgrind` unpacks it, nothing was counted");
                return;
            };
            let name = format!("{}_{access}_{scores}", short(MEMBERS));
            let sides = [("engine", engine), ("engine that is read", read), ("raw", raw)];
            for (side, Counts { instructions, references, misses }) in sides {
                println!(
                    "{side} {name}: {instructions:.0} instructions, {references:.0} references, {misses:.1} misses a job"
                );
            }
            println!("RATIO instructions_{name} {:.2}", raw.instructions / engine.instructions);
            println!("RATIO misses_{name} {:.2}", raw.misses / engine.misses);
        }
    }
}
