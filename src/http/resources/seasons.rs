//! Manual seasons: opening the next one.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Deserialize;

use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::json_body::parse_body;
use crate::http::request::params::Params;
use crate::http::writes::boards::open_season;
use crate::http::writes::options::read_wait;
use crate::types::{Timestamp, quoted};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeasonBody {
    #[serde(default)]
    at: Option<String>,
}

/// When the season is to begin. `None`: as soon as possible.
fn parse_begin(body: &[u8]) -> Result<Option<Timestamp>, Problem> {
    let body = body.trim_ascii();
    if body.is_empty() {
        return Ok(None);
    }
    // serde would read an array as the values of the fields in their order.
    if body.starts_with(b"[") {
        return Err(Problem::bad_parameter(
            r#"the body must be an object such as {"at":"2026-12-01T00:00:00Z"}, or none at all"#,
        ));
    }
    let SeasonBody { at } = parse_body(body)?;
    let read = |at: String| {
        Timestamp::parse(&at).map_err(|_| {
            Problem::bad_parameter(format!(
                "at must be a time such as 2026-12-01T00:00:00Z, until 2262; got {}",
                quoted(&at)
            ))
        })
    };
    at.map(read).transpose()
}

pub async fn open(call: Box<Call>) -> Result<Reply, Problem> {
    read_wait(&call.api, &Params::parse(call.query(), &["wait"])?)?;
    let (name, at) = (call.board_name()?, parse_begin(&call.body)?);
    // In a task of its own: a client that leaves must not leave the season opened on some shards only.
    let open = open_season(Arc::clone(&call.api), name.clone(), at);
    let change = call.begin_change("a season of a board was opened");
    let opened = tokio::spawn(async move {
        let opened = open.await;
        change.finish(&opened);
        opened
    });
    let opened = opened.await.map_err(|_| Problem::internal())??;
    let reply = Reply::object(|object| {
        object.text("board", name.as_str());
        object.text("season", &format!("s{}", opened.number));
        object.plain("begin", &opened.begin);
        object.plain("token", &opened.token);
    });
    Ok(reply.with_status(StatusCode::CREATED))
}
