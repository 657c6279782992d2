//! Jobs.

use serde_json::Value;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::write;
use crate::http::openapi::parameters::windows;
use crate::http::openapi::problems::REJECTED;
use crate::http::openapi::reference::shared;
use crate::job::{MAX_BOARDS_PER_REQUEST, MAX_JOBS_PER_MESSAGE};

const TAG: &str = "Writes";

pub fn put_member() -> Doc {
    write(TAG, "Write a member's entry")
        .describe(
            "One job. The path names its board and member; its fields have the score and the operation. \
             If a write gets no answer, send it again with the same `version`, before later ones of the \
             member: then it counts once.",
        )
        .by_key()
        .query(shared("results"))
        .query(entered())
        .body("EntryInput", true, "The job.")
        .answer(200, "EntryWritten", "It is applied and on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: it is stored in the stream.")
        .problem(422, "bad_member")
        .problem(422, "bad_score")
        .problem(422, "too_large")
        .problem(422, "too_many_boards")
        .problems(REJECTED)
}

/// The parameter `windows` of a write.
fn entered() -> Value {
    windows(
        "The answer has the member's entries there as `windows`, read right after the job, so that it tells \
         which instances the job has entered: a window's name, and `*` for each, stands for the instance \
         that the job's own time falls in, and is `null` if that was closed or had not begun. With \
         `wait=applied` only. Of several jobs each names one board, and the answer shows up to 1,000 entries.",
    )
}

pub fn delete_member() -> Doc {
    write(TAG, "Remove a member's entry")
        .describe("Removes the entry from the board. If there is none, `changed` is false.")
        .by_key()
        .query(shared("results"))
        .query(shared("version"))
        .answer(200, "EntryWritten", "It is applied and on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: it is stored in the stream.")
        .problem(404, "unknown_board")
        .problem(422, "bad_member")
        .problem(422, "too_many_boards")
        .problems(REJECTED)
}

pub fn delete_everywhere() -> Doc {
    write(TAG, "Remove a member everywhere")
        .describe(
            "Removes the member's entries from every board, and its profile, also if it is on no board. What earlier rejected jobs of the member hold is erased. A `version` must be greater than that of the member's last removal or ban of all boards, and holds on every board afterwards, and for the profile. What is stored with a greater one stays, and the answer says so; without a version that goes, too. Bans stay. The answer has the number of boards and not their names, because a member may be on very many.",
        )
        .by_key()
        .query(shared("results"))
        .query(shared("version"))
        .answer(200, "MemberRemoved", "It is applied and on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: it is stored in the stream.")
        .problem(422, "bad_member")
        .problems(REJECTED)
}

pub fn jobs() -> Doc {
    write(TAG, "Write many entries")
        .describe(format!(
            "One job, or an array of 1 to {MAX_JOBS_PER_MESSAGE}, of any members. Everything that can be \
             checked without the current state is checked first: if any job is invalid, the whole request \
             is refused, `errors` lists which jobs and why, and nothing is applied. The jobs together may \
             change at most {MAX_BOARDS_PER_REQUEST} boards, counted for each job. Jobs of one member are \
             applied in their order: after one that failed, those that follow it are not sent. A job that \
             is refused because of the current state is `rejected` in the results, and the others are \
             applied. If other shards do not answer when the ranks of an applied job's entry are counted, \
             its result has `changed` and `missing`, and no entry. With NATS, a request to the subject \
             `ranktree.write.{{shard}}`, with jobs of members of that shard, is answered in the same way \
             as this one with `wait=applied`."
        ))
        .by_key()
        .query(shared("results"))
        .query(entered())
        .body("Jobs", true, "The jobs.")
        .answer(200, "JobsWritten", "All jobs were applied or rejected, and what was applied is on disk.")
        .answer(202, "Accepted", "With NATS and without `wait=applied`: they are stored in their streams.")
        .problem(403, "forbidden_profile")
        .problem(422, "bad_member")
        .problem(422, "bad_score")
        .problem(422, "too_large")
        .problem(422, "too_many_boards")
}
