//! The example, as it is. The README's code is compiled with the documents of the crate.

use std::path::PathBuf;
use std::process::Command;

use crate::support::nats::Nats;
use crate::support::node::Node;

/// Cargo builds it before it runs all tests, beside this program.
fn game_loop() -> PathBuf {
    let own = std::env::current_exe().expect("it runs");
    let folder = own.ancestors().nth(2).expect("it is target/debug/deps/it");
    let program = folder.join("examples/game_loop");
    assert!(program.exists(), "{} is not built: cargo build --examples --all-features", program.display());
    program
}

#[tokio::test]
async fn the_game_plays_and_every_point_counts() {
    let nats = Nats::start().await;
    let node = Node::of(&nats).await;
    // Twice each: a game that is started again goes on.
    for way in [&[][..], &[], &["--nats", &nats.url], &["--nats", &nats.url]] {
        let mut game = Command::new(game_loop());
        game.args(["--url", &node.url, "--matches", "30"]).args(way);
        let output = tokio::task::spawn_blocking(move || game.output()).await.expect("it does not panic");
        let output = output.expect("it is a program");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && told.contains("The best of"), "{told}{output:?}");
    }
    let client = node.client();
    let status = client.status().await.expect("it is alive");
    assert!(status.shards.iter().all(|shard| shard.rejects == Some(0)), "{status:?}");
    let board = client.board("arena").await.expect("the game defined it");
    assert!(board.totals.all > Some(20), "{board:?}");
}
