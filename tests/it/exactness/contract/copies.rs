//! Instances that are exported, and imported into another service, equal the model there.

use serde_json::json;

use super::board::Board;
use super::calendar::{Season, Window, now};
use super::jobs::BOARDS;
use super::play::{Play, ok};
use super::reads::{Asked, Reader};
use super::rules::{Key, Rules};
use crate::support::snapshots::run;

impl Play {
    /// Two instances of each board, on another number of shards.
    pub fn check_imports(&mut self) {
        for board in BOARDS {
            // Bounds judge imported rows, too, and an old row would expire.
            let rules = self.world.boards.get(board).expect("it is defined").rules.clone();
            let keys = rules.keys.iter().map(|key| Key { min: i64::MIN, max: i64::MAX, ..*key }).collect();
            self.define(board, Rules { keys, entry_ttl: None, ..rules });
        }
        let other = self.cluster.other(5);
        for board in BOARDS {
            let known = self.world.boards.get(board).expect("it is defined").clone();
            let mut instances = exportable(&known);
            for _ in 0..instances.len().min(2) {
                // None twice: the versions of a copy are not newer than its own.
                let instance = instances.swap_remove(self.random.index(instances.len()));
                let copy = format!("{board}-{instance}");
                let file = self.cluster.path(&format!("{copy}.ndjson"));
                let source = self.cluster.nodes[0].base().to_owned();
                let exported =
                    ["export", "--board", board, "--window", &instance, "--profiles", "--url", &source];
                done(&[&exported[..], &["--replace", "--output", &file]].concat());
                let mut import = vec!["import", &file, "--board", &copy, "--url", other.base()];
                if instance == "all" {
                    let Rules { keys, policy, ties, .. } = known.rules.clone();
                    let rules = Rules { keys, policy, ties, ..Rules::default() };
                    ok(other.client().put(&format!("/v1/boards/{copy}"), &rules.json()));
                    import.push("--rows-only");
                }
                done(&import);
                let mut random = self.random.fork();
                let (client, shown) = (other.client(), known.shown(&instance));
                let asked = Asked {
                    name: &copy,
                    board: &known,
                    window: &instance,
                    instance: &instance,
                    shown: &shown,
                };
                let reader = Reader { client: &client, ..self.reader(0, "", now(), true) };
                let checked = reader.check_pages(&asked, &mut random);
                checked.unwrap_or_else(|why| panic!("{instance} of {}: {why}", json!(board)));
            }
        }
    }
}

/// Instances with entries, but for seasons that another service cannot have: they are too short.
fn exportable(board: &Board) -> Vec<String> {
    let has_entries = |instance: &&String| !board.shown(instance).is_empty();
    let is_kept = |instance: &&String| {
        let is_manual = matches!(board.rules.season, Season::Manual(_)) && instance.starts_with('s');
        let slices = board.rules.windows.iter().filter(|window| **window != Window::All);
        let now = now();
        let mut slices = slices.flat_map(|window| {
            let before = |slice: &super::calendar::Slice| board.rules.slice_at(*window, slice.begin - 1);
            std::iter::successors(board.rules.slice_at(*window, now), before).take(200)
        });
        let slice = slices.find(|slice| slice.name == **instance);
        !is_manual && slice.is_none_or(|slice| !board.rules.is_dropped(&slice, now))
    };
    board.instances.keys().filter(has_entries).filter(is_kept).cloned().collect()
}

fn done(arguments: &[&str]) {
    let (code, said) = run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {said}");
}
