//! The hash is the one that the documents tell other people of.

use std::fs;

use ranktree_client::member_hash;

use crate::support::root;

#[test]
fn hash_is_that_of_the_documents() {
    let text = fs::read_to_string(root().join("docs/wire.md")).expect("it comes with the source");
    for member in ["p42", "alice", "日本", ""] {
        let name = if member.is_empty() { "(no bytes at all)".to_owned() } else { format!("`{member}`") };
        let hash = member_hash(member);
        let row = format!("| {name} | {hash} | {} | {} |", hash % 3, hash % 64);
        assert!(text.contains(&row), "docs/wire.md has no row {row}");
    }
}
