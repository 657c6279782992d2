//! Tokens, as `ranktree token new` makes them.

use crate::support::command::command;

/// A new token, and its lines for the tokens file.
pub fn new_token(arguments: &[&str]) -> (String, String) {
    let output =
        command().args(["token", "new"]).args(arguments).output().expect("the binary can be started");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    let secret = said.split_whitespace().find(|word| word.starts_with("rkt_")).expect("it shows the token");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!lines.contains(secret), "the file has the hash only");
    (secret.to_owned(), lines)
}
