//! Ranks of scores, scores at ranks, and counts.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::read_board;
use crate::http::openapi::parameters::{buckets, list, or_empty, query, require, signed};
use crate::http::request::json_body::BATCH_MAX;
use crate::types::MAX_KEYS;

const TAG: &str = "Ranks and counts";

pub fn rank() -> Doc {
    let text = "The score, as many keys as the board has: `865`, or `1200,90000`.";
    read_board(TAG, "The rank of a score")
        .describe(
            "The rank that a score has, or would have if a member had it, and each shard's share in it.",
        )
        .query(require(list("score", &signed(), MAX_KEYS, text)))
        .answer(200, "Rank", "The rank.")
        .problem(422, "bad_score")
}

pub fn ranks_of() -> Doc {
    read_board(TAG, "The ranks of many scores")
        .describe(format!("As `rank`, for up to {BATCH_MAX} scores, all at one moment."))
        .body("ScoresInput", true, "The scores.")
        .answer(200, "Ranks", "The ranks.")
        .problem(422, "bad_score")
}

pub fn score() -> Doc {
    let place = json!({"type": "integer", "minimum": 1, "maximum": u64::MAX});
    let percentile = json!({"type": "number", "minimum": 0, "maximum": 100});
    read_board(TAG, "The score at a rank, a position or a percentile")
        .describe(
            "The score at that place, and how many entries have it. Give exactly one of `rank`, \
             `position` and `percentile`. For a rank that no entry has because of ties, the answer is the \
             score of the entries that share the rank before it.",
        )
        .query(query("rank", &place, "A rank, from 1."))
        .query(query("position", &place, "A position, from 1."))
        .query(query("percentile", &percentile, "A percentile, 100 × worse / total, where equal scores are not worse than each other. The answer is the lowest score whose percentile is at least this, or the best score if no percentile is that high, for example because many share the best score."))
        .answer(200, "Place", "The score.")
        .problem(404, "unknown_position")
}

pub fn count() -> Doc {
    read_board(TAG, "The number of entries between two scores")
        .describe("Exact, over the first key, bounds inclusive. Leave a bound out, or empty, for no bound.")
        .query(or_empty(query("min", &signed(), "The least value.")))
        .query(or_empty(query("max", &signed(), "The greatest value; not below `min`.")))
        .answer(200, "Count", "The count.")
        .problem(422, "bad_score")
}

pub fn histogram() -> Doc {
    let text = format!(
        "2 to {BATCH_MAX} integers, each greater than the one before: the bounds of the buckets. A bucket \
         ends just below the next edge; the last bucket includes its upper edge."
    );
    let mut edges = list("edges", &signed(), BATCH_MAX, &text);
    if let Some(least) = edges.pointer_mut("/schema/minItems") {
        *least = json!(2);
    }
    read_board(TAG, "A histogram")
        .describe("Exact counts over the first key, in a number of equal buckets or between given edges.")
        .query(buckets())
        .query(edges)
        .answer(200, "Histogram", "The buckets, ascending.")
        .problem(422, "bad_score")
}

pub fn percentiles() -> Doc {
    let percentile = json!({"type": "number", "minimum": 0, "maximum": 100});
    read_board(TAG, "The scores at percentiles")
        .describe("For each of up to 1,000 percentiles the lowest score whose percentile is at least that, or the best score if none is that high. A percentile is 100 × worse / total, where equal scores are not worse than each other. Exact, all at one moment.")
        .query(require(list("p", &percentile, BATCH_MAX, "Percentiles, for example `10,50,90,99`.")))
        .answer(200, "Percentiles", "The scores.")
}
