//! Boards with other windows than `all`, defined before a run: a board that a job creates has only `all`.

use serde::Deserialize;
use serde_json::json;
use ureq::http::StatusCode;

use crate::cli::Failure;
use crate::cli::client::{Client, Failed, describe_refusal, not_there};
use crate::loadgen::encoded;
use crate::types::{BoardName, quoted};
use crate::window::Window;

/// A board that is there.
#[derive(Deserialize)]
struct Found {
    windows: Vec<String>,
}

/// Defines the boards, as far as they are not there.
///
/// # Errors
/// When the service refuses, or has one with other windows.
pub fn define(client: &Client, windows: &[Window], boards: &[BoardName]) -> Result<(), Failure> {
    let windows: Vec<&str> = windows.iter().map(|window| window.name()).collect();
    let definition = json!({ "windows": windows }).to_string();
    for board in boards {
        let url = format!("{}/v1/boards/{}", client.base(), encoded(board.as_str()));
        let failed = |reason: String| Failure::from(format!("the board {board} cannot be defined: {reason}"));
        let unreachable = |why: Failed| failed(not_there(why.reason()));
        let reply = client.get(&url).map_err(unreachable)?;
        if reply.status == StatusCode::OK {
            let Ok(Found { windows: found }) = serde_json::from_slice(&reply.body) else {
                return Err(failed("the answer is not that of a ranktree service".to_owned()));
            };
            // Its other settings are an operator's, and stay as they are.
            if found == windows {
                continue;
            }
            return Err(failed(format!(
                "it is there with the windows {}; drop it, or give another --board-prefix",
                found.join(", ")
            )));
        }
        let reply = client.put(&url, &definition).map_err(unreachable)?;
        if !reply.status.is_success() {
            return Err(failed(describe_refusal(reply.status, &reply.body)));
        }
    }
    Ok(())
}

/// One window of `--windows`.
pub fn window(text: &str) -> Result<Window, String> {
    let rule = "a window of the boards must be all, hour, day, week or month";
    match Window::of_name(text) {
        Some(Window::Season) => Err(format!(
            "{rule}; boards with seasons say when these begin, so define them before, and leave --windows out"
        )),
        Some(window) => Ok(window),
        None => Err(format!("{rule}; got {}", quoted(text))),
    }
}
