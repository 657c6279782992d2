//! Several boards together: a page of the result, and a member's place in it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::board::{Aggregate, Combination, Order};
use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::json_body::parse_body;
use crate::http::request::params::{board_name, invalid_value, member_id};
use crate::http::resources::lists::{PAGE, PAGE_MAX};
use crate::query::{Combine, CombineRefused, CombinedBoard, CombinedEntry, NoCombination, Ranking};
use crate::types::{BoardName, Number};
use crate::wire::lenient::{JsonFields, score_of};

/// The most boards of a request.
pub const BOARDS_MAX: usize = 16;
/// What most entries take in an answer, and while that is made.
const ENTRY_BYTES: usize = 400;

const FORM: &str = "the body must be an object whose boards are an object of boards and weights, such as \
                    {\"boards\": {\"chess\": 1, \"go\": 2}}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CombineBody<'a> {
    #[serde(borrow)]
    boards: &'a RawValue,
    #[serde(borrow, default)]
    combine: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    aggregate: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    order: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    first: Option<Cow<'a, str>>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(borrow, default)]
    cursor: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    member: Option<Cow<'a, str>>,
}

/// # Arguments
/// `choices`: the first one is what an absent text says.
fn chosen<T: Copy>(name: &str, text: Option<&str>, choices: &[(&str, T)]) -> Result<T, Problem> {
    let wanted = |(choice, _): &&(&str, T)| text.is_none_or(|text| text == *choice);
    choices.iter().find(wanted).map(|(_, value)| *value).ok_or_else(|| {
        let choices: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        invalid_value(&format!("{name} must be one of {}", choices.join(", ")), text.unwrap_or_default())
    })
}

/// The boards, in the order in which they were sent, and what their scores are multiplied by.
fn read_boards(text: &str) -> Result<Vec<(BoardName, Number)>, Problem> {
    let JsonFields(fields) = serde_json::from_str(text).map_err(|_| invalid_value(FORM, text))?;
    if fields.is_empty() {
        return Err(invalid_value(FORM, text));
    }
    if fields.len() > BOARDS_MAX {
        return Err(Problem::over_limit(format!(
            "at most {BOARDS_MAX} boards are combined; got {}",
            fields.len()
        )));
    }
    let mut boards: Vec<(BoardName, Number)> = Vec::with_capacity(fields.len());
    for (name, weight) in fields {
        let board = board_name(&name)?;
        let score = score_of(weight.get());
        let weight = score.ok().and_then(|score| {
            let mut numbers = score.numbers();
            numbers.next().filter(|number| numbers.len() == 0 && !number.double().is_infinite())
        });
        let Some(weight) = weight else {
            return Err(Problem::bad_parameter(format!("the weight of the board {board} must be a number")));
        };
        if boards.iter().any(|(other, _)| *other == board) {
            return Err(Problem::bad_parameter(format!("boards has the board {board} twice")));
        }
        boards.push((board, weight));
    }
    Ok(boards)
}

fn read_body(call: &Call) -> Result<Combine, Problem> {
    // serde would read an array as the values of the fields in their order.
    if call.body.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::bad_parameter(FORM));
    }
    let body: CombineBody<'_> = parse_body(&call.body)?;
    let mut boards = read_boards(body.boards.get())?;
    if let Some(first) = &body.first {
        let place = boards.iter().position(|(board, _)| board.as_str() == first);
        let place = place.ok_or_else(|| invalid_value("first must be one of boards", first))?;
        boards.swap(0, place);
    }
    let limit = body.limit.unwrap_or(PAGE);
    if limit > PAGE_MAX {
        return Err(Problem::over_limit(format!("limit must be at most {PAGE_MAX}; got {limit}")));
    }
    let combination = chosen(
        "combine",
        body.combine.as_deref(),
        &Combination::ALL.map(|combination| (combination.name(), combination)),
    )?;
    let aggregate = chosen(
        "aggregate",
        body.aggregate.as_deref(),
        &Aggregate::ALL.map(|aggregate| (aggregate.name(), aggregate)),
    )?;
    let order = match &body.order {
        Some(order) => {
            Some(chosen("order", Some(order), &[("desc", Order::Descending), ("asc", Order::Ascending)])?)
        }
        None => None,
    };
    let choice = call.window();
    let cursor = body.cursor.as_deref().filter(|cursor| !cursor.is_empty());
    let cursor = cursor.map(|cursor| call.cursor_here(cursor)).transpose()?;
    let board = |(board, weight)| CombinedBoard { board, choice, weight };
    Ok(Combine {
        boards: boards.into_iter().map(board).collect(),
        combination,
        aggregate,
        ranking: order.map(|order| Ranking { order, ids_descend: false }),
        now: call.api.operations.now(),
        cursor: cursor.map(str::to_owned),
        limit: u32::try_from(limit).unwrap_or_default(),
        member: body.member.map(|member| member_id(&member)).transpose()?,
        is_lenient: false,
    })
}

pub async fn combine(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&[]).await?;
    if params.flag("profile")? {
        let detail = "entries of several boards together come without profiles; leave profile out";
        return Err(Problem::bad_parameter(detail));
    }
    let asked = read_body(&call)?;
    let boards: Vec<BoardName> = asked.boards.iter().map(|asked| asked.board.clone()).collect();
    call.check_boards_allowed(&boards)?;
    call.wait_for_boards(&boards).await?;
    let limit = usize::try_from(asked.limit).unwrap_or_default();
    call.reading.in_progress.count_answer(limit * ENTRY_BYTES)?;
    let answer = call.api.operations.read(&call.reading, &asked).await?.map_err(|why| match why {
        NoCombination::NoBoard(why) => Problem::from(call.api.operations.no_board(why)),
        NoCombination::Refused(why) => refused(&why),
    })?;
    if let Some(member) = &asked.member {
        call.api.operations.check_home_replied(&call.reading, member)?;
    }
    Ok(Reply::sized(answer.entries.len() * 120 + 300, |object| {
        let mut windows = object.object("windows");
        for (board, instance) in &answer.windows {
            windows.text_of(board.as_str(), &fields::instance_name(*instance));
        }
        windows.end();
        object.count("total", answer.total);
        object.array("entries", &answer.entries, |out, listed| {
            let mut object = Object::begin(out);
            entry(&mut object, listed);
            object.end();
        });
        call.write_next_cursor(object, answer.next.clone());
        if asked.member.is_some() {
            object.or_null("member", answer.member.as_ref(), |object, name, (found, standing)| {
                let mut object = object.object(name);
                entry(&mut object, found);
                fields::counts(&mut object, standing);
                json::float(object.name("percentile"), standing.percentile());
                object.end();
            });
        }
        call.write_answer_end(object, &answer.as_of);
    }))
}

fn entry(object: &mut Object<'_>, entry: &CombinedEntry) {
    object.text("member", &entry.member);
    json::number(object.name("score"), entry.score);
    object.count("rank", entry.rank());
    object.count("position", entry.position);
}

fn refused(why: &CombineRefused) -> Problem {
    match why {
        CombineRefused::TooMany { .. } | CombineRefused::TooLong => Problem::over_limit(why.to_string()),
        CombineRefused::Cursor => Problem::bad_cursor_of(why.to_string()),
        CombineRefused::Orders => Problem::bad_parameter(why.to_string()),
        CombineRefused::Overflow => Problem::bad_score(why.to_string()),
        CombineRefused::SeveralKeys { .. } | CombineRefused::Estimates(_) | CombineRefused::Capacity(_) => {
            Problem::unsupported(why.to_string())
        }
    }
}
