//! What a token allows.

use crate::access::profile_access::ProfileAccess;
use crate::access::scope::Scope;

/// What a token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The token's name, for logs and people. Never its secret.
    pub name: String,
    pub scope: Scope,
    /// The token may touch only boards whose names begin with one of these; `None`: all boards.
    pub board_prefixes: Option<Vec<String>>,
    /// The token cannot create a board once this many boards match its prefixes; `None`: no limit.
    pub max_boards: Option<u32>,
    /// What it allows with profiles; [`ProfileAccess::Write`] for a token of all boards.
    pub profiles: ProfileAccess,
}

impl Grant {
    pub fn allows(&self, scope: Scope) -> bool {
        self.scope >= scope
    }

    pub fn allows_board(&self, board: &str) -> bool {
        self.board_prefixes
            .as_ref()
            .is_none_or(|prefixes| prefixes.iter().any(|prefix| board.starts_with(prefix.as_str())))
    }

    /// Whether it may touch every board, also those that are yet to come.
    pub fn allows_every_board(&self) -> bool {
        self.board_prefixes.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_includes_those_before_it_and_prefixes_confine_it() {
        let grant = |scope, prefixes: Option<&[&str]>| Grant {
            name: "t".to_owned(),
            scope,
            board_prefixes: prefixes.map(|list| list.iter().map(ToString::to_string).collect()),
            max_boards: None,
            profiles: ProfileAccess::default(),
        };
        for (held, allowed) in [
            (Scope::Read, [true, false, false]),
            (Scope::Write, [true, true, false]),
            (Scope::Admin, [true; 3]),
        ] {
            let found = Scope::ALL.map(|scope| grant(held, None).allows(scope));
            assert_eq!(found, allowed, "{held}");
        }
        let confined = grant(Scope::Read, Some(&["eu-", "demo"]));
        for (board, allowed) in [
            ("eu-arena", true),
            ("eu-", true),
            ("demo", true),
            ("demolition", true),
            ("us-eu-", false),
            ("EU-a", false),
            ("", false),
        ] {
            assert_eq!(confined.allows_board(board), allowed, "{board}");
            assert!(grant(Scope::Read, None).allows_board(board));
        }
        assert!(!confined.allows_every_board());
        assert!(grant(Scope::Read, None).allows_every_board());
    }
}
