//! Ranks of any scores, scores at any rank, and counts between scores.

use std::slice;

use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::json_body::{BATCH_MAX, parse_list};
use crate::http::request::params::invalid_value;
use crate::query::{
    Bounds, BoundsRefused, CountBetween, EdgesRefused, HistogramEdges, HistogramOver, RanksOf, ScoreTarget,
    ScoresAt, Standing,
};
use crate::types::{Number, Score};
use crate::wire;
use crate::wire::lenient::{parse_number, parse_score, score_of};

/// What the rank of a score takes in an answer, and each shard's share in it, with counts of seven digits.
const RANK_BYTES: usize = 100;
const SHARD_OF_RANK_BYTES: usize = 60;
/// Buckets of a histogram when the request does not say.
pub const BUCKETS: u64 = 20;

pub async fn of_score(call: Box<Call>) -> Result<Reply, Problem> {
    let (params, accuracy) = call.read_params_with_accuracy(&["score"]).await?;
    let text = params
        .get("score")
        .ok_or_else(|| Problem::bad_parameter("score is missing, for example score=1200"))?;
    let wrong = |why| {
        // Brackets and quotation marks are JSON's, which a body has.
        let form = if text.contains(['[', '"']) {
            "; in a query, separate the keys of a score with commas, for example score=1200,90000"
        } else {
            ""
        };
        Problem::bad_score(format!("not a score: {why}{form}"))
    };
    let score = parse_score(text).map_err(wrong)?;
    let (answer, errors) =
        call.ask_by_accuracy(accuracy, RanksOf { scores: slice::from_ref(&score) }).await?;
    let (answer, ranks) = answer.split();
    let ranks =
        ranks.map_err(|(why, score)| Problem::bad_score(answer.definition.refused_in_query(why, &score)))?;
    let ranked = ranks.first().ok_or_else(Problem::internal)?;
    Ok(Reply::object(|object| {
        object.text("board", call.board());
        fields::window(object, answer.instance);
        fields::rank(object, &score, &ranked.standing, &ranked.shards);
        errors.write(object, 0);
        call.write_answer_end(object, &answer.as_of);
    }))
}

pub async fn of_scores(call: Box<Call>) -> Result<Reply, Problem> {
    let (_, accuracy) = call.read_params_with_accuracy(&[]).await?;
    let plain = wire::plain_scores(&call.body, "scores", BATCH_MAX);
    let scores = plain.map_or_else(|| parse_scores(&call.body), Ok)?;
    let (answer, errors) = call.ask_by_accuracy(accuracy, RanksOf { scores: &scores }).await?;
    let (answer, ranks) = answer.split();
    let ranks = ranks.map_err(|(why, score)| Problem::bad_score(answer.definition.refused(why, &score)))?;
    let each = RANK_BYTES + SHARD_OF_RANK_BYTES * usize::from(call.api.operations.node.shard_count());
    Ok(Reply::sized(scores.len() * each + 200, |object| {
        fields::write_answer_start(object, call.board(), &answer);
        object.array("ranks", scores.iter().zip(&ranks).enumerate(), |out, (nth, (score, ranked))| {
            let mut object = Object::begin(out);
            fields::rank(&mut object, score, &ranked.standing, &ranked.shards);
            errors.write(&mut object, nth);
            object.end();
        });
        call.write_answer_end(object, &answer.as_of);
    }))
}

fn parse_scores(body: &[u8]) -> Result<Vec<Score>, Problem> {
    let asked = parse_list(body, "scores", r#"{"scores": [1200, 1300]}"#)?;
    let score = |(index, json)| {
        let wrong = |why| Problem::bad_score(format!("scores[{index}] is not a score: {why}"));
        score_of(json).map_err(wrong)
    };
    asked.into_iter().enumerate().map(score).collect()
}

pub async fn score_at(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["rank", "position", "percentile"]).await?;
    let (rank, position) = (params.number::<u64>("rank")?, params.number::<u64>("position")?);
    let percentile = params.get("percentile").map(parse_percentile).transpose()?;
    let mark = match (rank, position, percentile) {
        (Some(place), None, None) | (None, Some(place), None) if place > 0 => ScoreTarget::Position(place),
        (Some(_), None, None) | (None, Some(_), None) => {
            return Err(Problem::bad_parameter("ranks and positions are counted from 1; got 0"));
        }
        (None, None, Some(percentile)) => ScoreTarget::Percentile(percentile),
        _ => {
            return Err(Problem::bad_parameter(
                "give one of rank, position and percentile, such as rank=1000",
            ));
        }
    };
    let (answer, found) = call.ask(ScoresAt { targets: vec![mark] }).await?.split();
    let (score, standing) = found.into_iter().next().flatten().ok_or_else(Problem::unknown_position)?;
    Ok(Reply::object(|object| {
        object.text("board", call.board());
        fields::window(object, answer.instance);
        place(object, &score, &standing);
        call.write_answer_end(object, &answer.as_of);
    }))
}

fn place(object: &mut Object<'_>, score: &Score, standing: &Standing) {
    fields::score(object.name("score"), score);
    object.count("rank", standing.rank());
    fields::counts(object, standing);
    json::float(object.name("percentile"), standing.percentile());
}

fn parse_percentile(text: &str) -> Result<f64, Problem> {
    // As JSON has numbers: Rust's own parser takes more, such as `.5`, `5.` and `+5`.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number = if is_number { serde_json::from_str::<f64>(text).ok() } else { None };
    number
        .filter(|number| (0.0..=100.0).contains(number))
        // `-0` is 0.
        .map(f64::abs)
        .ok_or_else(|| invalid_value("a percentile must be a number from 0 to 100", text))
}

pub async fn percentiles(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["p"]).await?;
    let text =
        params.get("p").ok_or_else(|| Problem::bad_parameter("p is missing, for example 10,50,90,99"))?;
    let wanted: Vec<f64> = text.split(',').map(parse_percentile).collect::<Result<_, _>>()?;
    if wanted.len() > BATCH_MAX {
        return Err(Problem::over_limit(format!(
            "at most {BATCH_MAX} percentiles are allowed at a time; got {}",
            wanted.len()
        )));
    }
    let targets = wanted.iter().map(|wanted| ScoreTarget::Percentile(*wanted)).collect();
    let answer = call.ask(ScoresAt { targets }).await?;
    Ok(Reply::sized(wanted.len() * 120 + 200, |object| {
        fields::write_answer_start(object, call.board(), &answer);
        object.array("percentiles", wanted.iter().zip(&answer.body), |out, (wanted, found)| {
            let mut object = Object::begin(out);
            json::float(object.name("p"), *wanted);
            match found {
                Some((score, standing)) => place(&mut object, score, standing),
                None => object.null("score"),
            }
            object.end();
        });
        call.write_answer_end(object, &answer.as_of);
    }))
}

fn write_bound(object: &mut Object<'_>, name: &str, bound: Option<Number>) {
    match bound {
        Some(bound) => json::number(object.name(name), bound),
        None => object.null(name),
    }
}

/// Bounds that are none of the board.
pub fn refused_bounds(refused: BoundsRefused) -> Problem {
    match refused {
        BoundsRefused::NoInteger { .. } => Problem::bad_score(refused.to_string()),
        BoundsRefused::Crossed { .. } => Problem::bad_parameter(refused.to_string()),
    }
}

pub async fn count(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["min", "max"]).await?;
    let bounds = Bounds { min: params.bound("min")?, max: params.bound("max")? };
    let (answer, count) = call.ask(CountBetween(bounds)).await?.split();
    let count = count.map_err(refused_bounds)?;
    Ok(Reply::object(|object| {
        fields::write_answer_start(object, call.board(), &answer);
        write_bound(object, "min", bounds.min);
        write_bound(object, "max", bounds.max);
        object.count("count", count);
        call.write_answer_end(object, &answer.as_of);
    }))
}

pub async fn histogram(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["buckets", "edges"]).await?;
    let edges = params.get("edges").map(parse_edges).transpose()?;
    if edges.is_some() && params.get("buckets").is_some() {
        return Err(Problem::bad_parameter("give one of buckets and edges, not both"));
    }
    let most = u64::try_from(BATCH_MAX).unwrap_or(u64::MAX);
    let buckets = u32::try_from(params.bounded("buckets", BUCKETS, 1, most)?).unwrap_or(u32::MAX);
    let edges = edges.map_or(HistogramEdges::Over(buckets), HistogramEdges::Given);
    let (answer, found) = call.ask(HistogramOver(edges)).await?.split();
    let found = found.map_err(|refused| match refused {
        EdgesRefused::NoInteger(why) => Problem::bad_score(format!("edges: {why}")),
        EdgesRefused::NotAscending => {
            let rule =
                "edges must be two or more numbers, each greater than the one before, for example 0,10,100";
            invalid_value(rule, params.get("edges").unwrap_or_default())
        }
    })?;
    let edge = |out: &mut Vec<u8>, ordered| match answer.definition.keys.first() {
        Some(key) => json::number(out, key.number(ordered)),
        None => json::signed(out, ordered),
    };
    Ok(Reply::sized(found.buckets.len() * 60 + 300, |object| {
        fields::write_answer_start(object, call.board(), &answer);
        object.array("buckets", &found.buckets, |out, bucket| {
            let mut object = Object::begin(out);
            edge(object.name("min"), bucket.min);
            edge(object.name("max"), bucket.max);
            object.count("count", bucket.count);
            object.end();
        });
        object.count("below", found.below);
        object.count("above", found.above);
        call.write_answer_end(object, &answer.as_of);
    }))
}

fn parse_edges(text: &str) -> Result<Vec<Number>, Problem> {
    let edge = |text: &str| parse_number(text).map_err(|why| Problem::bad_score(format!("edges: {why}")));
    let edges: Vec<Number> = text.split(',').map(edge).collect::<Result<_, _>>()?;
    if edges.len() > BATCH_MAX {
        return Err(Problem::over_limit(format!(
            "at most {BATCH_MAX} edges are allowed at a time; got {}",
            edges.len()
        )));
    }
    Ok(edges)
}
