//! The limit on the boards that a token may make.

use crate::access::Grant;
use crate::http::render::problem::Problem;
use crate::types::BoardName;
use crate::writer::Registry;

/// Which of these boards do not exist yet. The caller holds the lock on changes of boards. Jobs of other
/// tokens create boards meanwhile, so the registry is asked once for the names and the count.
///
/// # Errors
/// When the token may not make so many.
pub fn check_board_limit<'a>(
    registry: &Registry,
    grant: &Grant,
    named: &'a [BoardName],
) -> Result<Vec<&'a BoardName>, Problem> {
    let (lacking, existing) = registry.missing(named, grant.board_prefixes.as_deref());
    let Some(most) = grant.max_boards.and_then(|most| usize::try_from(most).ok()) else { return Ok(lacking) };
    if lacking.is_empty() || existing + lacking.len() <= most {
        return Ok(lacking);
    }
    let detail = format!(
        "the token may create boards until there are {most} of those that it gives access to: there are \
         {existing}, and this request would create {} more; drop some boards, or raise the token's \
         max_boards",
        lacking.len()
    );
    Err(Problem::too_many_boards(detail))
}
