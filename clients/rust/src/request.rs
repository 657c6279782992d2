//! A request that can be given options, and awaited.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Ranktree;
use crate::error::Error;
use crate::query::{HasReading, Query, query};
use crate::tokens::{Token, latest};
use crate::transport::Call;
use crate::types::{
    BoardList, BoardsQuery, Entry, ListedBoard, ListedEntry, MemberBoards, MemberBoardsQuery, Page,
    RangeQuery, Reject, RejectList, RejectsQuery, TopQuery,
};

/// A request. Its methods are the options of the API; `.await` sends it.
///
/// `Q` is what it may be asked with, `A` the answer.
#[must_use = "a request is sent when it is awaited"]
#[derive(Clone)]
pub struct Request<Q, A> {
    pub(crate) client: Ranktree,
    pub(crate) call: Call,
    pub(crate) query: Q,
    /// The parameters that are not options, as a query.
    pub(crate) required: String,
    answer: PhantomData<fn() -> A>,
}

impl<Q: Default, A> Request<Q, A> {
    pub(crate) fn new(client: &Ranktree, method: Method, path: String) -> Self {
        let is_read = method == Method::GET;
        let call = Call { method, path, body: None, is_read };
        Self {
            client: client.clone(),
            call,
            query: Q::default(),
            required: String::new(),
            answer: PhantomData,
        }
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Self {
        let text = serde_json::to_vec(body).expect("what is sent has text for keys, and finite numbers");
        self.call.body = Some(Bytes::from(text));
        self
    }

    /// A `POST` that changes nothing.
    pub(crate) fn reads(mut self) -> Self {
        self.call.is_read = true;
        self
    }
}

impl<Q: Query, A: DeserializeOwned> Request<Q, A> {
    async fn send(&self) -> Result<A, Error> {
        let query = query(&self.required, &self.query);
        self.client.transport().send(&self.call, &query, waits(&query)).await
    }
}

/// How long the service may wait for what `after` names.
pub(crate) fn waits(query: &str) -> Duration {
    let find = |name: &str| {
        let mut pairs = query.trim_start_matches('?').split('&');
        pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    };
    if find("after").is_none() {
        return Duration::ZERO;
    }
    Duration::from_millis(find("timeout_ms").and_then(|text| text.parse().ok()).unwrap_or(5_000))
}

impl<Q, A> IntoFuture for Request<Q, A>
where
    Q: Query + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
{
    type Output = Result<A, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.send().await })
    }
}

/// An answer that is one page of several.
pub trait Paged: DeserializeOwned + Send + 'static {
    /// What it has several of.
    type Item: Send + 'static;

    /// Where the next page begins, if there is one.
    fn next_cursor(&self) -> Option<String>;
    /// What the page was exact at, if it says.
    fn as_of(&self) -> Option<&Token>;
    /// What is on the page.
    fn into_items(self) -> Vec<Self::Item>;
}

/// The options of a request that is answered by one page of several.
pub trait HasCursor: HasReading + Send + Sync + 'static {
    /// Goes on there.
    fn go_on(&mut self, cursor: String);
}

impl<Q: HasCursor, A: Paged> Request<Q, A> {
    /// All that is on all pages. `limit` is the size of a page.
    ///
    /// Each page is at least as new as the one before, also if another node answers.
    pub fn stream(self) -> BoxStream<'static, Result<A::Item, Error>> {
        let items = |page: A| stream::iter(page.into_items().into_iter().map(Ok));
        self.pages().map_ok(items).try_flatten().boxed()
    }

    /// All pages.
    pub fn pages(self) -> BoxStream<'static, Result<A, Error>> {
        let next = |request: Option<Self>| async move {
            let Some(mut request) = request else { return Ok(None) };
            let page: A = request.send().await?;
            let Some(cursor) = page.next_cursor().filter(|cursor| !cursor.is_empty()) else {
                return Ok(Some((page, None)));
            };
            request.query.go_on(cursor);
            let reading = request.query.reading();
            if let Some(as_of) = page.as_of().filter(|_| reading.partial != Some(true)) {
                reading.after = latest(reading.after.iter().chain([as_of]))?;
            }
            Ok(Some((page, Some(request))))
        };
        stream::try_unfold(Some(self), next).boxed()
    }
}

macro_rules! paged {
    ($($answer:ident: $items:ident, $item:ident, $as_of:expr;)+) => {
        $(impl Paged for $answer {
            type Item = $item;

            fn next_cursor(&self) -> Option<String> {
                self.next_cursor.clone()
            }

            fn as_of(&self) -> Option<&Token> {
                let as_of: fn(&Self) -> Option<&Token> = $as_of;
                as_of(self)
            }

            fn into_items(self) -> Vec<$item> {
                self.$items
            }
        })+
    };
}

paged! {
    BoardList: boards, ListedBoard, |page| Some(&page.as_of);
    MemberBoards: entries, Entry, |page| Some(&page.as_of);
    Page: entries, ListedEntry, |page| Some(&page.as_of);
    RejectList: rejects, Reject, |_| None;
}

macro_rules! has_cursor {
    ($($query:ident)+) => {
        $(impl HasCursor for $query {
            fn go_on(&mut self, cursor: String) {
                self.cursor = Some(cursor);
            }
        })+
    };
}

has_cursor!(BoardsQuery MemberBoardsQuery RangeQuery RejectsQuery TopQuery);
