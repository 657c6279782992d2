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
    grant_of(tokens, value.to_str().map_err(|_| Problem::invalid_token())?)
}

/// What a token allows.
///
/// # Arguments
/// `value`: of `Authorization`.
fn grant_of(tokens: &ActiveTokens, value: &str) -> Result<Arc<Grant>, Problem> {
    // The scheme's name has no case (RFC 9110, section 11.1).
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Problem::unauthorized());
    }
    tokens.tokens().find(token.trim_matches(' ')).ok_or_else(Problem::invalid_token)
}

/// Whether a request may go on, without saying why not.
///
/// # Arguments
/// `tokens`: `None` if everybody may do everything. `authorization`: the value of that header, if there is
/// one and no other. `board`: as of [`authorize`].
pub fn is_allowed<'b>(
    tokens: Option<&ActiveTokens>,
    needs: Needs,
    authorization: Option<&[u8]>,
    board: impl FnOnce() -> Option<&'b str>,
) -> bool {
    let (Some(tokens), Needs::Token(scope, check)) = (tokens, needs) else { return true };
    let value = authorization.and_then(|value| str::from_utf8(value).ok()).filter(|value| value.is_ascii());
    let grant = value.and_then(|value| grant_of(tokens, value).ok());
    grant.is_some_and(|grant| authorize(&grant, scope, check, board()).is_ok())
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
