//! Jobs.

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::write;
use crate::http::openapi::problems::REJECTED;
use crate::http::openapi::reference::shared;
use crate::job::{MAX_BOARDS_PER_REQUEST, MAX_JOBS_PER_MESSAGE};

const TAG: &str = "Writes";

pub fn put_member() -> Doc {
    write(TAG, "Write a member's entry")
        .describe(
            "One job. Its board and member are in the path; its fields say the score and what to do with it. Send a write that got \
             no answer again with the `version` it had: it counts once.",
        )
        .query(shared("results"))
        .body("EntryInput", true, "The job.")
        .answer(200, "EntryWritten", "It is applied and on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: it is safe in the stream.")
        .problem(422, "bad_member")
        .problem(422, "bad_score")
        .problem(422, "too_large")
        .problem(422, "too_many_boards")
        .problems(REJECTED)
}

pub fn delete_member() -> Doc {
    write(TAG, "Remove a member's entry")
        .describe("Removes the entry from the board. Where there is none, `changed` is false.")
        .query(shared("results"))
        .query(shared("version"))
        .answer(200, "EntryWritten", "It is applied and on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: it is safe in the stream.")
        .problem(404, "unknown_board")
        .problem(422, "bad_member")
        .problem(422, "too_many_boards")
        .problems(REJECTED)
}

pub fn delete_everywhere() -> Doc {
    write(TAG, "Remove a member everywhere")
        .describe(
            "Removes the member's entries from every board. The answer counts the boards: a member may be on too many to list.",
        )
        .query(shared("results"))
        .query(shared("version"))
        .answer(200, "MemberRemoved", "It is applied and on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: it is safe in the stream.")
        .problem(422, "bad_member")
        .problems(REJECTED)
}

pub fn jobs() -> Doc {
    write(TAG, "Write many entries")
        .describe(format!(
            "One job, or an array of 1 to {MAX_JOBS_PER_MESSAGE}, of any members. What can be judged without the current state is \
             judged first: if any job is invalid, the whole request is refused, `errors` lists which and why, and nothing is \
             applied. Together they change at most {MAX_BOARDS_PER_REQUEST} boards, each counted for every job that does. Jobs of \
             one member apply in their order: after one that failed, those behind it are not sent. What the state refuses is told \
             by job, as `rejected`, and the others apply."
        ))
        .query(shared("results"))
        .body("Jobs", true, "The jobs.")
        .answer(200, "JobsWritten", "All were decided, and what was applied is on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: they are safe in their streams.")
        .problem(422, "bad_member")
        .problem(422, "bad_score")
        .problem(422, "too_large")
        .problem(422, "too_many_boards")
}
