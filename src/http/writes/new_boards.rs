//! Boards that the jobs of a token with a limit on boards would create.
//!
//! Writers and the boards' stream create boards for jobs, and they do not know tokens. So such boards are
//! defined here before the jobs are published, in order with all other definitions: of two requests at the
//! same moment, on one node or two, only one gets the last board.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::access::Grant;
use crate::http::api::Api;
use crate::http::guard::board_limit::check_board_limit;
use crate::http::render::problem::Problem;
use crate::http::request::call::Call;
use crate::http::writes::boards::change_board;
use crate::job::Job;
use crate::types::BoardName;
use crate::writer::BoardChange;

/// Creates the boards that jobs name and that do not exist, if there is a limit on the boards of the
/// request's token.
///
/// # Errors
/// When the token may not make so many, or a board cannot be created now. The caller publishes none of the
/// jobs then.
pub async fn create_for(call: &Call, jobs: &[Job]) -> Result<(), Problem> {
    let Some(grant) = call.board_limited() else { return Ok(()) };
    let named = jobs.iter().flat_map(Job::awaited_boards);
    let lacking: BTreeSet<&BoardName> =
        named.filter(|board| call.api.registry.may_create(board.as_str())).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let lacking = lacking.into_iter().cloned().collect();
    let create = create(Arc::clone(&call.api), Arc::clone(grant), lacking);
    // In a task of its own: a client that leaves must not leave a board on some shards only.
    tokio::spawn(create).await.map_err(|_| Problem::internal())?
}

async fn create(api: Arc<Api>, grant: Arc<Grant>, named: Vec<BoardName>) -> Result<(), Problem> {
    let _in_order = api.board_changes.lock().await;
    // Some may have been created while this waited for the lock.
    for board in check_board_limit(&api.registry, &grant, &named)? {
        // Another node may have created it, and not with the defaults: the jobs can be published then, too.
        change_board(&api, board, &BoardChange::Create, Some(&grant)).await?;
    }
    Ok(())
}
