//! What streams and subjects are called.

use crate::types::{BoardName, ShardId};

/// Names under one prefix.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: String,
}

impl Names {
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    fn stream(&self, of: &str) -> String {
        format!("{}_{of}", self.prefix.to_uppercase())
    }

    pub fn jobs_stream(&self, shard: ShardId) -> String {
        self.stream(&format!("JOBS_{shard}"))
    }

    pub fn jobs_subject(&self, shard: ShardId) -> String {
        format!("{}.jobs.{shard}", self.prefix)
    }

    /// The subject of commands, to which only nodes publish.
    pub fn control_subject(&self, shard: ShardId) -> String {
        format!("{}.control.{shard}", self.prefix)
    }

    /// The prefix of the subjects on which nodes receive replies. It differs from other clients' prefixes, so
    /// that the operator can deny those clients permission to read it.
    pub fn inbox(&self) -> String {
        format!("_INBOX.{}", self.prefix)
    }

    pub fn rejects_stream(&self) -> String {
        self.stream("REJECTS")
    }

    pub fn rejects_subject(&self, shard: impl std::fmt::Display) -> String {
        format!("{}.rejects.{shard}", self.prefix)
    }

    pub fn boards_stream(&self) -> String {
        self.stream("BOARDS")
    }

    pub fn all_boards(&self) -> String {
        format!("{}.boards.*", self.prefix)
    }

    /// A board's name is one token: what would separate tokens is escaped, as in a URL.
    pub fn board_subject(&self, board: &BoardName) -> String {
        format!("{}.boards.{}", self.prefix, board.as_str().replace('.', "%2E"))
    }

    /// The board whose subject this is.
    pub fn board_of(&self, subject: &str) -> Option<BoardName> {
        let token = subject.strip_prefix(&self.prefix)?.strip_prefix(".boards.")?;
        BoardName::new(&token.replace("%2E", ".")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_streams_and_subjects_are_those_of_the_contract() {
        let names = Names::new("ranktree");
        assert_eq!(names.jobs_stream(ShardId(3)), "RANKTREE_JOBS_3");
        assert_eq!(names.jobs_subject(ShardId(3)), "ranktree.jobs.3");
        assert_eq!(names.control_subject(ShardId(3)), "ranktree.control.3");
        assert_eq!(names.rejects_subject(ShardId(0)), "ranktree.rejects.0");
        for board in ["arena", "a.b", "a..", "A:b-c_d"] {
            let name = BoardName::new(board).expect("a good name");
            let subject = names.board_subject(&name);
            assert_eq!(subject.split('.').count(), 3, "{subject}");
            assert_eq!(names.board_of(&subject), Some(name));
        }
    }
}
