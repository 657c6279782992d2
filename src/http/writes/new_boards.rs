//! How many boards a token may make: by naming them in jobs, or by defining them.
//!
//! Whoever creates a board for a job, a writer or the boards' stream, knows of no tokens. So what the jobs of a limited
//! token would create is defined here, in order with all other definitions, before the jobs go out: two requests at the
//! same moment cannot both take the last place.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::access::Grant;
use crate::board::Definition;
use crate::http::api::Api;
use crate::http::render::problem::{BOARD_DIFFERS, Problem};
use crate::http::request::call::Call;
use crate::http::resources::boards::define_in_order;
use crate::job::{Job, Targets};
use crate::types::BoardName;

/// Creates the boards that jobs name and nobody has, if the request's token is a limited one.
///
/// # Errors
/// When it may not make so many, or one cannot be created now. None of the jobs is to be published then.
pub async fn create_for(call: &Call, jobs: &[Job]) -> Result<(), Problem> {
    let Some(grant) = call.limited() else { return Ok(()) };
    let named = jobs.iter().filter_map(|job| match &job.targets {
        Targets::Boards(boards) => Some(boards),
        Targets::EveryBoard => None,
    });
    let named = named.flatten().map(|(board, _)| board);
    let lacking: BTreeSet<&BoardName> =
        named.filter(|board| call.api.registry.creates(board.as_str())).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let lacking = lacking.into_iter().cloned().collect();
    let create = create(Arc::clone(&call.api), Arc::clone(grant), lacking);
    // On its own, so that a client that leaves does not leave a board on some shards only.
    tokio::spawn(create).await.map_err(|_| Problem::internal())?
}

async fn create(api: Arc<Api>, grant: Arc<Grant>, named: Vec<BoardName>) -> Result<(), Problem> {
    let _in_order = api.boards.lock().await;
    // Some may have come while this waited.
    for board in check_room(&api, &grant, &named)? {
        match define_in_order(&api, board, Definition::default()).await {
            // Another node has made it, and not with the defaults: it is there, and the jobs can go out.
            Err(problem) if problem.code() == BOARD_DIFFERS => {}
            Err(problem) => return Err(problem),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Which of these boards nobody has; refuses them if they are more than the token may make. To be asked in order with
/// definitions. Jobs of other tokens create boards meanwhile, so that it is one question of the registry.
///
/// # Errors
/// When they are too many.
pub fn check_room<'a>(
    api: &Api,
    grant: &Grant,
    named: &'a [BoardName],
) -> Result<Vec<&'a BoardName>, Problem> {
    let (lacking, there) = api.registry.lacking(named, grant.board_prefixes.as_deref());
    let Some(most) = grant.max_boards.and_then(|most| usize::try_from(most).ok()) else { return Ok(lacking) };
    if lacking.is_empty() || there + lacking.len() <= most {
        return Ok(lacking);
    }
    let detail = format!(
        "the token may bring the boards that it may touch to {most}: there are {there}, and this would make {} more; \
         drop some, or raise its max_boards",
        lacking.len()
    );
    Err(Problem::too_many_boards(detail))
}
