//! A game's loop: matches end, scores are published, and players see where they stand.
//!
//!     cargo run --example game_loop --features nats                                       writes over HTTP
//!     cargo run --example game_loop --features nats -- --nats nats://127.0.0.1:4222       publishes to NATS
//!
//! It needs a running node: `ranktree serve`, with `--nats` for the second.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use futures_util::TryStreamExt;
use ranktree_client::nats::Publisher;
use ranktree_client::types::{DefinitionInput, Job, Op, Policy, Results, Ties};
use ranktree_client::{Error, Ranktree, Time, Token, latest};
use serde_json::json;

const BOARD: &str = "arena";

/// A game's loop.
#[derive(Parser)]
struct Options {
    /// A node
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Publish to this NATS server instead of writing over HTTP
    #[arg(long)]
    nats: Option<String>,
    /// How many matches are played
    #[arg(long, default_value_t = 20)]
    matches: u64,
    /// The token that the node asks for
    #[arg(long)]
    bearer: Option<String>,
}

/// Four players fight, and each gets points. With its `version`, a repeated job counts once. That is enough
/// because one process plays all matches in their order: of two that overtake each other the older one is
/// refused, and its points are not added.
fn play(number: u64, players: &[String]) -> Vec<Job> {
    let at = Time::now();
    let chosen = fastrand::choose_multiple(players, 4);
    let job = |player: &String| {
        Job::scored(BOARD, player, fastrand::i64(0..=100))
            .op(Op::Incr)
            .version(number)
            .at(at.clone())
            .meta(json!({ "match": number }))
    };
    chosen.into_iter().map(job).collect()
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let options = Options::parse();
    let players: Vec<String> = (1..=40).map(|number| format!("player-{number}")).collect();
    // Of each player the token of the last write, so that a player's own reads are never older than that.
    let mut seen: HashMap<String, Token> = HashMap::new();
    let mut client = Ranktree::builder(&options.url);
    if let Some(bearer) = options.bearer {
        client = client.bearer(bearer);
    }
    let client = client.build()?;
    // Before the first job, so that no job waits for it.
    client.define(BOARD, &DefinitionInput::new().policy(Policy::Incr).ties(Ties::First)).await?;
    let publisher = match &options.nats {
        Some(servers) => Some(Publisher::connect(servers).await?),
        None => None,
    };
    // A game goes on counting where it was. Versions of an earlier run are lower than these.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let now = u64::try_from(now).expect("microseconds since 1970 have 51 bits");
    for number in now..now + options.matches {
        let jobs = play(number, &players);
        let token = match &publisher {
            // If this process dies here, the next one publishes the match again under the same id.
            Some(publisher) => publisher.publish_many(&jobs).message_id(format!("match-{number}")).await?,
            None => client.write_many(&jobs).results(Results::Changed).await?.token,
        };
        for job in &jobs {
            if let Some(both) = latest(seen.get(&job.member).into_iter().chain([&token]))? {
                seen.insert(job.member.clone(), both);
            }
        }
        let Some(star) = jobs.first().map(|job| &job.member) else { break };
        let around = client.around(BOARD, star).above(1).below(1).after(seen.get(star).unwrap_or(&token));
        for entry in around.await?.entries {
            let mark = if entry.member == *star { "<" } else { "" };
            println!("{:>5}  {:<12} {:>8} {mark}", entry.rank, entry.member, entry.score);
        }
        println!();
    }
    let total = client.board(BOARD).await?.totals.all.unwrap_or_default();
    println!("The best of {total}:");
    let mut best = client.top(BOARD).limit(100).stream();
    while let Some(entry) = best.try_next().await? {
        println!("{:>5}  {:<12} {:>8}", entry.rank, entry.member, entry.score);
        if entry.position == 10 {
            break;
        }
    }
    if let Some(publisher) = publisher {
        publisher.close().await;
    }
    Ok(())
}
