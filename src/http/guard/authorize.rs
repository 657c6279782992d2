//! What a route needs of a request's token, and whether the token allows it: the one place that decides.
//!
//! What a route needs is an argument of adding it to the list of routes. Boards that only a body or a
//! parameter names are checked by the handler, through
//! [`Call::confined_to`](crate::http::request::call::Call::confined_to).

use std::sync::Arc;

use axum::http::{HeaderMap, header};

use crate::access::{ActiveTokens, Grant, Scope};
use crate::http::render::problem::Problem;

/// What a route needs of a request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No token: the answer says nothing about boards and members.
    Nothing,
    Token(Scope, BoardCheck),
}

/// How the boards that a request touches are checked against the token's prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardCheck {
    /// The request touches the board that its path names.
    InPath,
    /// The handler knows the boards. It refuses those that the token rules out, or leaves them out of its
    /// answer.
    ByHandler,
    /// The request touches every board, or is told figures of all of them: a token with prefixes will not do.
    EveryBoard,
}

impl Needs {
    /// The most that a request can need: for what is no route of the API.
    pub const MOST: Self = Self::Token(Scope::Admin, BoardCheck::EveryBoard);

    /// Whether such a request changes nothing.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::Nothing | Self::Token(Scope::Read, _))
    }
}

/// What the request's token allows.
///
/// # Errors
/// When there is no token, or it is not one of the node's.
pub fn find_grant(tokens: &ActiveTokens, headers: &HeaderMap) -> Result<Arc<Grant>, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Err(Problem::unauthorized()) };
    let value = value.to_str().map_err(|_| Problem::invalid_token())?;
    // The scheme's name has no case (RFC 9110, section 11.1).
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Problem::unauthorized());
    }
    tokens.tokens().find(token.trim_matches(' ')).ok_or_else(Problem::invalid_token)
}

/// Judges a request whose route needs a token.
///
/// # Arguments
/// `board`: the board that the path names; `None` if it names none, or if the path is not UTF-8, which is
/// refused later.
///
/// # Errors
/// When the token does not allow the request.
pub fn authorize(grant: &Grant, scope: Scope, check: BoardCheck, board: Option<&str>) -> Result<(), Problem> {
    if !grant.allows(scope) {
        return Err(Problem::insufficient_scope(scope));
    }
    if check == BoardCheck::InPath && board.is_some_and(|board| !grant.allows_board(board)) {
        return Err(Problem::forbidden_board("the token does not give access to this board"));
    }
    if check == BoardCheck::EveryBoard && !grant.allows_every_board() {
        let detail = "this request affects every board, but the token is confined to some boards";
        return Err(Problem::forbidden_board(detail));
    }
    Ok(())
}
