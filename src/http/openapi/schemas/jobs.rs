//! Jobs, and what comes of them.

use serde_json::{Value, json};

use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::parts::{
    BOARD_PATTERN, count, object, object_with, or_null, ordinal, with,
};
use crate::job::{MAX_BOARDS_PER_JOB, MAX_JOB_ID_BYTES, MAX_JOBS_PER_MESSAGE, Op, RejectCode};

/// The shapes of jobs, by what they change. Absent and null are the same.
#[expect(clippy::too_many_lines, reason = "a list of schemas")]
pub fn inputs() -> Value {
    let absent = json!({"type": "null"});
    let with_score: Vec<Value> = Op::ALL
        .iter()
        .filter(|op| op.takes_score())
        .map(|op| op.name().into())
        .chain([Value::Null])
        .collect();
    let operation = json!({
        "enum": with_score, "default": null,
        "description": "`set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a \
                        new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the board's `policy`."
    });
    let version = json!({
        "anyOf": [component("Version"), absent],
        "description": "The job applies only if this is greater than the version stored for the member \
                        and the board, or of the profile, so that a repetition counts once. Of jobs that \
                        overtake each other the older one is rejected: an `incr` is not added then. Use `id` \
                        where several senders add."
    });
    let at = json!({
        "anyOf": [component("Time"), absent],
        "description": "When the score was reached, from 1970 to April 2262, with any offset; \
                        decides ties. A job whose `at` is more than five minutes after the queue took it \
                        is rejected with `future_time`; exactly five minutes are allowed. Default: when \
                        the queue took the job."
    });
    let meta = json!({
        "anyOf": [component("Metadata"), absent],
        "description": "Replaces the entry's metadata. Default: left as it is."
    });
    let id = job_id();
    let member = component("MemberId");
    let board = component("BoardName");
    let one_score = variant(
        "A score",
        "Sets, improves or adds to a score on a board.",
        json!({"board": board, "member": member, "score": component("ScoreInput"), "scores": absent, "op": operation,
               "version": version, "at": at, "id": id, "meta": meta}),
        &["board", "member", "score"],
    );
    let many_scores = variant(
        "Scores of several boards",
        "Changes several boards at once, all or nothing.",
        json!({
            "board": absent, "member": member, "score": absent,
            "scores": {"type": "object", "minProperties": 1, "maxProperties": MAX_BOARDS_PER_JOB,
                       "propertyNames": {"pattern": BOARD_PATTERN}, "additionalProperties": component("ScoreInput")},
            "op": operation, "version": version, "at": at, "id": id, "meta": meta
        }),
        &["member", "scores"],
    );
    let removal = variant(
        "A removal",
        "Removes the member's entry; without `board`, from every board, and its profile.",
        json!({"board": or_null(board.clone()), "member": member, "score": absent, "scores": absent,
               "op": {"const": Op::Remove.name()}, "version": version, "at": at, "id": id, "meta": absent}),
        &["member", "op"],
    );
    let visibility = variant(
        "Hiding or showing a member",
        "Hides the member on the board in all its instances, now and later, until it is shown; without `board`, \
         on all boards, those to come included. A hidden entry is not counted and not listed; it keeps its score \
         and receives updates.",
        json!({"board": or_null(board), "member": member, "score": absent, "scores": absent,
               "op": {"enum": [Op::Hide.name(), Op::Show.name()]}, "version": version, "at": at, "id": id, "meta": absent}),
        &["member", "op"],
    );
    let profile = profile_input(&version, &at);
    let repeated = |what: &str| {
        json!({
            "type": ["string", "null"], "description": format!("If present, it must be the {what} of the path.")
        })
    };
    let put_score = variant(
        "A score",
        "Sets, improves or adds to a score.",
        json!({"board": repeated("board"), "member": repeated("member"), "score": component("ScoreInput"),
               "scores": absent, "op": operation, "version": version, "at": at, "id": id, "meta": meta}),
        &["score"],
    );
    let put_other = variant(
        "Removing the entry, hiding or showing the member",
        "Changes the board without a score.",
        json!({"board": repeated("board"), "member": repeated("member"), "score": absent, "scores": absent,
               "op": {"enum": [Op::Remove.name(), Op::Hide.name(), Op::Show.name()]}, "version": version, "at": at, "id": id,
               "meta": absent}),
        &["op"],
    );
    json!({
        "Job": {
            "description": "One requested change.",
            "anyOf": [one_score, many_scores, removal, visibility, profile]
        },
        "Jobs": {
            "description": format!("One job, or an array of 1 to {MAX_JOBS_PER_MESSAGE}, of any members."),
            "anyOf": [
                component("Job"),
                {"type": "array", "minItems": 1, "maxItems": MAX_JOBS_PER_MESSAGE, "items": component("Job")}
            ]
        },
        "EntryInput": {
            "description": "One job whose board and member are in the path.",
            "anyOf": [put_score, put_other]
        }
    })
}

/// # Arguments
/// `version`, `at`: what these fields are for every job.
fn profile_input(version: &Value, at: &Value) -> Value {
    let id = job_id();
    let (absent, member) = (json!({"type": "null"}), component("MemberId"));
    variant(
        "A profile",
        "Replaces the member's profile, which is kept once, whatever boards it is on; `{}` takes it away. \
         A profile has a `version` of its own, apart from those of the member's entries. Removing the \
         member from every board removes the profile as well.",
        json!({"board": absent, "member": member, "score": absent, "scores": absent,
               "op": {"const": Op::Profile.name()}, "version": version, "at": at, "id": id, "meta": absent,
               "profile": component("Profile")}),
        &["member", "op", "profile"],
    )
}

/// What a job is called by its sender.
fn job_id() -> Value {
    json!({
        "type": ["string", "null"], "minLength": 1, "maxLength": MAX_JOB_ID_BYTES,
        "description": "1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of \
                        the same id, within an hour unless the node is configured otherwise, changes nothing, \
                        whoever has sent it: its result has `repeated`. Default: each job counts."
    })
}

/// What the result of a job says that was applied before.
fn repeated_fields() -> Value {
    json!({
        "repeated": {"const": true, "description": "Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as it is now."},
        "first": object(
            "With `repeated`: what came of the first one.",
            json!({
                "changed": {"type": "boolean", "description": "Whether it changed anything."},
                "token": component("Token")
            })
        )
    })
}

/// A shape of jobs, closed to other fields.
fn variant(title: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "title": title, "type": "object", "description": description, "additionalProperties": false,
        "required": required, "properties": properties
    })
}

/// What comes of jobs.
pub fn answers() -> Value {
    json!({
        "Accepted": object(
            "The write is stored in its stream, and will be applied.",
            json!({"token": component("Token")})
        ),
        "Previous": object(
            "What the entry was before.",
            json!({"score": component("Score"), "rank": ordinal("Its rank."), "position": ordinal("Its position.")})
        ),
        "Change": object("What a job did on a board.", change_fields()),
        "Changed": object("Whether a job did anything on a board.", changed_field()),
        "EntryWritten": {
            "description": "The outcome of the write.",
            "anyOf": [
                object_with(
                    "With the entry.",
                    with(json!({"token": component("Token")}), [change_fields(), by_window(), repeated_fields()]),
                    &["token", "changed", "entry", "previous"]
                ),
                object_with(
                    "With `results=changed`.",
                    with(json!({"token": component("Token")}), [changed_field(), by_window(), repeated_fields()]),
                    &["token", "changed"]
                ),
                object_with(
                    "Other shards did not answer, so the ranks of the entry are not known.",
                    with(
                        json!({"token": component("Token")}),
                        [changed_field(), missing_field(), by_window(), repeated_fields()]
                    ),
                    &["token", "changed", "missing"]
                )
            ]
        },
        "MemberRemoved": object_with(
            "The outcome of the removal.",
            with(json!({"token": component("Token")}), [everywhere(), repeated_fields()]),
            &["token", "changed", "entry", "previous", "counts"]
        ),
        "JobResult": {
            "description": "The outcome of one job.",
            "anyOf": [
                object_with(
                    "It was applied. `changed` is false if it left everything as it was.",
                    with(change_fields(), [by_board("Change"), by_window(), repeated_fields()]),
                    &["changed", "entry", "previous"]
                ),
                object_with(
                    "The same, with `results=changed`.",
                    with(changed_field(), [by_board("Changed"), by_window(), repeated_fields()]),
                    &["changed"]
                ),
                object_with(
                    "It was applied, but other shards did not answer, so the ranks of its entry are not known.",
                    with(changed_field(), [by_board("Changed"), missing_field(), by_window(), repeated_fields()]),
                    &["changed", "missing"]
                ),
                object_with(
                    "It was of every board.",
                    with(everywhere(), [repeated_fields()]),
                    &["changed", "entry", "previous", "counts"]
                ),
                object_with(
                    "It was about a profile.",
                    with(json!({
                        "changed": {"type": "boolean", "description": "Whether the profile is another one than before, or the ban of a board that is gone ended."},
                        "entry": {"type": "null"},
                        "previous": {"type": "null"}
                    }), [repeated_fields()]),
                    &["changed", "entry", "previous"]
                ),
                object(
                    "It was refused because of the current state; the other jobs of the request are applied.",
                    json!({"rejected": {"enum": reject_codes()}, "detail": {"type": "string"}})
                ),
                object(
                    "Its message could not be committed, or it is unknown whether it was.",
                    json!({"failed": {"enum": failure_codes()}, "detail": {"type": "string"}})
                ),
                object(
                    "It is stored, and waits for its board, which was not defined within ten seconds.",
                    json!({"changed": {"const": false}, "waits_for_board": {"const": true}})
                ),
                object("It is stored, and the request did not wait for its outcome.", json!({"stored": {"const": true}}))
            ]
        },
        "JobsWritten": object(
            "The outcomes of the jobs, one result per job in their order.",
            json!({
                "token": {"type": "string", "description": "A read with this as `after` sees these writes."},
                "results": {"type": "array", "minItems": 1, "maxItems": MAX_JOBS_PER_MESSAGE, "items": component("JobResult")}
            })
        )
    })
}

fn changed_field() -> Value {
    json!({"changed": {"type": "boolean", "description": "Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether the ban began or ended."}})
}

fn missing_field() -> Value {
    json!({"missing": {
        "type": "array", "items": {"type": "integer", "minimum": 0},
        "description": "The shards that did not answer; none if the entries kept changing while they were counted."
    }})
}

fn change_fields() -> Value {
    let more = json!({"entry": or_null(component("Entry")), "previous": or_null(component("Previous"))});
    with(changed_field(), [more])
}

/// # Arguments
/// `each`: the schema of each board's part.
fn by_board(each: &str) -> Value {
    json!({
        "boards": {
            "type": "object", "additionalProperties": component(each),
            "description": "For a job on several boards: the outcome on each. The `changed`, `entry` and \
                            `previous` next to it are those of the first board."
        }
    })
}

/// What the parameter `windows` asks for.
fn by_window() -> Value {
    json!({
        "windows": {
            "type": ["object", "null"],
            "description": "With the parameter `windows`: the member's entries right after the write, by the names that were asked for; `null` where the job has entered no instance, and for all of it if the entries cannot be read.",
            "additionalProperties": {"anyOf": [component("Entry"), {"type": "null"}]}
        }
    })
}

/// A removal from every board, whose boards are counted.
fn everywhere() -> Value {
    json!({
        "changed": {"type": "boolean", "description": "Whether the job changed anything: an entry on any board, the profile, or the ban of all boards."},
        "entry": {"type": "null"},
        "previous": {"type": "null"},
        "counts": object_with(
            "Boards.",
            json!({
                "boards": count("The number of boards that had an entry, or a remembered removal, of the member."),
                "changed": count("The number of boards that changed."),
                "left": count("The number of boards that a removal with a `version` has left, as theirs is not smaller. Absent if it has left nothing, the profile included.")
            }),
            &["boards", "changed"]
        ),
        "detail": {"type": "string", "description": "What a removal with a `version` has left, and how to remove that: without one. Absent if it has left nothing."}
    })
}

pub fn reject_codes() -> Vec<&'static str> {
    RejectCode::ALL.iter().map(|code| code.name()).collect()
}

fn failure_codes() -> Vec<&'static str> {
    vec!["overloaded", "shard_unavailable", "queue_full", "commit_unknown", "commit_failed", "too_large"]
}
