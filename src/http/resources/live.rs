//! A board as it changes: server-sent events.
//!
//! The first event has the whole state, and each further one what has changed since the one before. What is
//! computed, and how often, `query::live` decides; here is how it is asked for and written. A client whose
//! connection is full is not written to, and then gets what is newest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use metrics::counter;
use tokio::time::{Interval, MissedTickBehavior, timeout};

use crate::access::Scope;
use crate::http::api::Api;
use crate::http::guard::authorize::{BoardCheck, Needs};
use crate::http::guard::watchers::WatcherPermit;
use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::server_sent::{self, ServerSent};
use crate::http::request::call::Call;
use crate::http::request::held_token::HeldToken;
use crate::http::request::params::{Params, TIMEOUT_MS, list_of};
use crate::metrics::{LIVE_DROPPED_TOTAL, LIVE_EVENTS_TOTAL};
use crate::query::live::{LiveAsked, LiveNews, LiveStart, LiveState, Watching};
use crate::query::{Listed, ReadOptions};
use crate::types::{AsOf, BoardName, MemberId};

/// The most entries of the top that can be watched, and how many it is if the request does not say.
pub const LIVE_TOP_MAX: u64 = 100;
pub const LIVE_TOP: u64 = 10;
/// The most members that one request can watch.
pub const LIVE_MEMBERS_MAX: usize = 100;
/// The most events a second that a request can ask for, and how many it is if the request does not say.
pub const LIVE_RATE_MAX: u64 = 20;
pub const LIVE_RATE: u64 = 5;
/// After so long without an event there is a comment, so that proxies and clients see that all is well.
pub const HEARTBEAT: Duration = Duration::from_secs(10);
/// When a client that lost its connection connects again, as the first event asks for.
const RECONNECT: Duration = Duration::from_secs(2);
/// How often it is looked whether the token still allows the watch.
const TOKEN_LOOK: Duration = Duration::from_secs(2);
/// Proxies that hold answers back until they are complete must not do so: nginx reads this.
const NO_BUFFERING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// What a request needs of its token.
pub const NEEDS: Needs = Needs::Token(Scope::Read, BoardCheck::InPath);

/// Parameters of the request. What reads take besides is of no use here.
const PARAMETERS: [&str; 6] = ["window", "after", "timeout_ms", "top", "members", "max_rate"];

pub async fn live(call: Box<Call>) -> Result<Response, Problem> {
    let params = Params::parse(call.query(), &PARAMETERS)?;
    let (after, within) = params.after()?.unwrap_or((AsOf::default(), Duration::from_millis(TIMEOUT_MS)));
    let top = params.bounded("top", LIVE_TOP, 0, LIVE_TOP_MAX)?;
    let rate = params.bounded("max_rate", LIVE_RATE, 1, LIVE_RATE_MAX)?;
    let members = list_of(call.query(), "members")?;
    if members.len() > LIVE_MEMBERS_MAX {
        return Err(Problem::over_limit(format!(
            "at most {LIVE_MEMBERS_MAX} members can be watched at a time; got {}",
            members.len()
        )));
    }
    let member =
        |text: &String| MemberId::new(text.as_str()).map_err(|why| Problem::malformed_text(&why, text));
    let members: Vec<MemberId> = members.iter().map(member).collect::<Result<_, Problem>>()?;
    let until = Instant::now() + within;
    let options = ReadOptions { after: after.clone(), deadline: Some(until), ..ReadOptions::default() };
    call.begin_reads(options).await?;
    let board = call.wait_for_board_of_path().await?;
    // A watch is limited by itself, and would keep others from being answered.
    call.reading.in_progress.release_permit();
    let permit = call.api.watchers.permit(call.client_address());
    let permit = permit.inspect_err(|_| counter!(LIVE_DROPPED_TOTAL, "reason" => "limit").increment(1))?;
    let asked = LiveAsked {
        board: board.clone(),
        choice: params.window()?,
        top: usize::try_from(top).unwrap_or(usize::MAX),
        members,
        rate: u32::try_from(rate).unwrap_or(u32::MAX),
    };
    let mut watching =
        call.api.operations.live.watch(asked).map_err(|why| call.api.operations.not_live(why))?;
    let resumed = call.header("last-event-id").and_then(read_id);
    let start = LiveStart { after, until, resumed };
    let first = watching.start(start).await.map_err(|why| call.api.operations.not_live(why))?;
    if matches!(first, LiveNews::Ending) {
        return Err(Problem::shutting_down());
    }
    let mut token = call.held_token(NEEDS);
    if let Some(token) = &mut token {
        // It may have been taken back while the state was waited for.
        token.check(board.as_str())?;
    }
    let watcher = Watcher {
        api: Arc::clone(&call.api),
        token,
        board,
        watching,
        first: Some(first),
        looks: looks(),
        _permit: permit,
    };
    let events = stream::unfold(Some(watcher), |watcher| async move {
        let mut watcher = watcher?;
        match timeout(HEARTBEAT, watcher.event()).await {
            Err(_) => Some((ServerSent::comment(), Some(watcher))),
            Ok(Told::Event(event)) => Some((event, Some(watcher))),
            Ok(Told::Last(event)) => Some((event, None)),
            Ok(Told::Nothing) => None,
        }
    });
    let mut response = server_sent::response(events);
    response.headers_mut().insert(NO_BUFFERING.0, NO_BUFFERING.1);
    Ok(response)
}

fn looks() -> Interval {
    let mut looks = tokio::time::interval(TOKEN_LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// One client that watches.
struct Watcher {
    api: Arc<Api>,
    /// What the request presented; `None` where no tokens are needed.
    token: Option<HeldToken>,
    board: BoardName,
    watching: Watching,
    /// What it is told first, until it was.
    first: Option<LiveNews>,
    looks: Interval,
    _permit: WatcherPermit,
}

/// What a watcher is told next.
enum Told {
    Event(ServerSent),
    /// The stream ends after it.
    Last(ServerSent),
    /// The stream ends.
    Nothing,
}

impl Watcher {
    /// The next event. May be dropped and called again.
    async fn event(&mut self) -> Told {
        let is_first = self.first.is_some();
        let news = match self.first.take() {
            Some(first) => Ok(first),
            None => self.news().await,
        };
        let event = match news {
            Err(why) => {
                counter!(LIVE_DROPPED_TOTAL, "reason" => "token").increment(1);
                return Told::Last(end(&why));
            }
            Ok(LiveNews::Gone(why)) => {
                counter!(LIVE_DROPPED_TOTAL, "reason" => "gone").increment(1);
                return Told::Last(end(&self.api.operations.not_live(why).into()));
            }
            Ok(LiveNews::Ending) => return Told::Nothing,
            Ok(LiveNews::All(shown)) => {
                let data = shown.written(|| self.state(&shown.state));
                event("state", data, &shown.state)
            }
            Ok(LiveNews::Changed { from, to }) => {
                let data = to.written_change(from.number, || self.changes(&from.state, &to.state));
                event("changes", data, &to.state)
            }
        };
        Told::Event(if is_first { event.retry(RECONNECT) } else { event })
    }

    /// # Errors
    /// When the token does not allow the watch any more.
    async fn news(&mut self) -> Result<LiveNews, Problem> {
        loop {
            let Some(token) = &mut self.token else { return Ok(self.watching.next().await) };
            tokio::select! {
                news = self.watching.next() => {
                    token.check(self.board.as_str())?;
                    return Ok(news);
                }
                _ = self.looks.tick() => token.check(self.board.as_str())?,
            }
        }
    }

    fn state(&self, state: &LiveState) -> Bytes {
        let members = state.members.iter().flatten().map(|listed| &**listed);
        let missing = state.members.iter().zip(self.watching.members()).filter(|(found, _)| found.is_none());
        self.write(state, |object| {
            entries(object, "entries", state.entries.iter().map(|listed| &**listed));
            entries(object, "members", members);
            names(object, "not_found", missing.map(|(_, member)| member.as_str()));
        })
    }

    fn changes(&self, from: &LiveState, state: &LiveState) -> Bytes {
        // They are of the same instance, or it would be told as a whole.
        let Some(change) = state.since(from) else { return self.state(state) };
        let members = self.watching.members();
        self.write(state, |object| {
            entries(object, "entries", change.entries.iter().copied());
            names(object, "left", change.left.iter().copied());
            entries(object, "members", change.members.iter().copied());
            let gone = change.not_found.iter().filter_map(|index| members.get(*index));
            names(object, "not_found", gone.map(MemberId::as_str));
        })
    }

    fn write(&self, state: &LiveState, parts: impl FnOnce(&mut Object<'_>)) -> Bytes {
        let mut out = Vec::with_capacity(1_024);
        let mut object = Object::begin(&mut out);
        object.text("board", self.board.as_str());
        object.plain("window", &state.instance);
        object.count("total", state.total);
        parts(&mut object);
        object.plain("as_of", &state.as_of);
        if state.is_stale {
            object.bool("stale", true);
        }
        object.end();
        out.into()
    }
}

fn entries<'a>(object: &mut Object<'_>, name: &str, listed: impl Iterator<Item = &'a Listed>) {
    object.array(name, listed, |out, listed| {
        let mut object = Object::begin(out);
        fields::listed(&mut object, listed);
        object.end();
    });
}

fn names<'a>(object: &mut Object<'_>, name: &str, members: impl Iterator<Item = &'a str>) {
    object.array(name, members, json::text);
}

fn event(kind: &'static str, data: Bytes, state: &LiveState) -> ServerSent {
    counter!(LIVE_EVENTS_TOTAL, "kind" => kind).increment(1);
    ServerSent::event(kind, data).id(format_args!("{:016x}@{}", state.id, state.as_of))
}

/// The last event. A client that connects again gets the problem as its answer.
fn end(why: &Problem) -> ServerSent {
    counter!(LIVE_EVENTS_TOTAL, "kind" => "end").increment(1);
    ServerSent::event("end", why.to_json().into())
}

/// The id of an event, as [`event`] writes it. Whoever sends another one is told the whole state.
fn read_id(text: &str) -> Option<(u64, AsOf)> {
    let (id, as_of) = text.split_once('@')?;
    let id = Some(id).filter(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some((u64::from_str_radix(id, 16).ok()?, AsOf::parse(as_of).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_others_are_none() {
        let as_of = AsOf::parse("0:7,1:9").expect("a token");
        assert_eq!(read_id("00000000000000ff@0:7,1:9"), Some((255, as_of)));
        for other in ["", "7", "00000000000000ff", "ff@0:7", "00000000000000ff@", "+0000000000000ff@0:7"] {
            assert_eq!(read_id(other), None, "{other}");
        }
    }
}
