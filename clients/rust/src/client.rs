//! The client: a method for each request of the API.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde_json::json;

use crate::error::Error;
use crate::live::Watch;
use crate::query::path;
use crate::request::Request;
use crate::transport::{Settings, Transport};
use crate::types::{
    AroundQuery, Board, BoardList, BoardQuery, BoardsQuery, ClearBoardQuery, Count, CountQuery, DefinedBoard,
    DefinitionInput, DeleteBoardQuery, DeleteEverywhereQuery, DeleteMemberQuery, DroppedBoard, Entry,
    EntryInput, EntryWritten, Group, Histogram, HistogramQuery, Job, JobsQuery, JobsWritten, LiveQuery,
    LookupQuery, MemberBoards, MemberBoardsQuery, MemberQuery, MemberRemoved, Neighbours, OpenSeasonQuery,
    OpenedSeason, Page, Percentiles, PercentilesQuery, Place, PositionsQuery, PutBoardQuery, PutMemberQuery,
    RangeQuery, Rank, RankQuery, Ranks, RanksOfQuery, RejectList, RejectsQuery, RemovedEntries, ScoreQuery,
    Status, TopQuery, TrimBoardQuery, TrimInput,
};
use crate::{Score, Time};

/// Writes and reads over HTTP, through any node.
///
/// A clone is cheap and uses the same connections; many tasks may use one client at a time. Each method makes a
/// [`Request`]: give it options, and `.await` it.
///
/// ```no_run
/// # async fn example() -> Result<(), ranktree_client::Error> {
/// let client = ranktree_client::Ranktree::new("http://127.0.0.1:8080")?;
/// let page = client.top("arena").limit(100).window("week").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Ranktree {
    transport: Arc<Transport>,
}

impl fmt::Debug for Ranktree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranktree").field("url", &self.transport.url()).finish_non_exhaustive()
    }
}

/// The settings of a client.
#[must_use = "a client is made by `build`"]
pub struct Builder {
    url: String,
    settings: Settings,
}

impl Builder {
    /// The token that the node asks for, if it does.
    pub fn bearer(mut self, bearer: impl Into<String>) -> Self {
        self.settings.bearer = Some(bearer.into());
        self
    }

    /// The time for a request, 10 seconds unless it is another. A read with `after` gets the time that it may
    /// wait in addition.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// How often a read is sent again if no answer came or the node was overloaded, twice unless it is another
    /// number. A write is sent again only if it certainly was not taken.
    pub fn retries(mut self, retries: u32) -> Self {
        self.settings.retries = retries;
        self
    }

    /// After how long without a word a connection to a watched board is made again: 30 seconds unless it is
    /// another time. The service says something every 10 seconds.
    pub fn silence_max(mut self, silence_max: Duration) -> Self {
        self.settings.silence_max = silence_max;
        self
    }

    /// Certificates of your own, and how they are checked. Without it, those of this machine are trusted.
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.settings.tls = Some(config);
        self
    }

    /// Makes the client. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`]: the address or the bearer token is not one, or this machine has no certificates.
    pub fn build(self) -> Result<Ranktree, Error> {
        Ok(Ranktree { transport: Arc::new(Transport::new(&self.url, self.settings)?) })
    }
}

impl Ranktree {
    /// A client of the node at an address, such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new(url: impl Into<String>) -> Result<Self, Error> {
        Self::builder(url).build()
    }

    /// A client with settings.
    pub fn builder(url: impl Into<String>) -> Builder {
        let settings = Settings {
            bearer: None,
            timeout: Duration::from_secs(10),
            retries: 2,
            tls: None,
            silence_max: Duration::from_secs(30),
        };
        Builder { url: url.into(), settings }
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    fn get<Q: Default, A>(&self, parts: &[&str]) -> Request<Q, A> {
        Request::new(self, Method::GET, path(parts))
    }

    fn post<Q: Default, A>(&self, parts: &[&str], verb: &str) -> Request<Q, A> {
        Request::new(self, Method::POST, path(parts) + verb)
    }
}

/// Boards.
impl Ranktree {
    /// Creates a board, or changes what can be changed of it.
    pub fn define(&self, board: &str, definition: &DefinitionInput) -> Request<PutBoardQuery, DefinedBoard> {
        Request::new(self, Method::PUT, path(&["boards", board])).body(definition)
    }

    /// A page of the boards, by name.
    pub fn boards(&self) -> Request<BoardsQuery, BoardList> {
        self.get(&["boards"])
    }

    /// A board's definition, its instances, and how many entries it has.
    pub fn board(&self, board: &str) -> Request<BoardQuery, Board> {
        self.get(&["boards", board])
    }

    /// Opens the next manual season of a board, at a time or as soon as possible.
    pub fn open_season(&self, board: &str, at: Option<Time>) -> Request<OpenSeasonQuery, OpenedSeason> {
        self.post(&["boards", board, "seasons"], "")
            .body(&at.map_or_else(|| json!({}), |at| json!({ "at": at })))
    }

    /// Drops a board with all its entries.
    pub fn drop_board(&self, board: &str) -> Request<DeleteBoardQuery, DroppedBoard> {
        Request::new(self, Method::DELETE, path(&["boards", board]))
    }

    /// Removes all entries; the definition stays.
    pub fn clear(&self, board: &str) -> Request<ClearBoardQuery, RemovedEntries> {
        self.post(&["boards", board], ":clear")
    }

    /// Removes the entries behind a position, or those with a worse score: give one of the two.
    pub fn trim(&self, board: &str, trim: &TrimInput) -> Request<TrimBoardQuery, RemovedEntries> {
        self.post(&["boards", board], ":trim").body(trim)
    }
}

/// Writes.
impl Ranktree {
    /// One job: a score, or an [`EntryInput`] with more.
    ///
    /// With NATS and without `.wait(Wait::Applied)`, the answer has a `token` and nothing else.
    pub fn write(
        &self,
        board: &str,
        member: &str,
        job: impl Into<EntryInput>,
    ) -> Request<PutMemberQuery, EntryWritten> {
        Request::new(self, Method::PUT, path(&["boards", board, "members", member])).body(&job.into())
    }

    /// 1 to 1,000 jobs of any members. If one is invalid, none is applied: see [`Problem::errors`].
    ///
    /// With NATS and without `.wait(Wait::Applied)`, the answer has a `token` and nothing else.
    ///
    /// [`Problem::errors`]: crate::Problem::errors
    pub fn write_many(&self, jobs: &[Job]) -> Request<JobsQuery, JobsWritten> {
        self.post(&["jobs"], "").body(&jobs)
    }

    /// Takes a member off a board.
    pub fn remove(&self, board: &str, member: &str) -> Request<DeleteMemberQuery, EntryWritten> {
        Request::new(self, Method::DELETE, path(&["boards", board, "members", member]))
    }

    /// Takes a member off every board, with the profile.
    pub fn remove_everywhere(&self, member: &str) -> Request<DeleteEverywhereQuery, MemberRemoved> {
        Request::new(self, Method::DELETE, path(&["members", member]))
    }
}

/// Reads.
impl Ranktree {
    /// A member's score, rank, position and percentile. [`Error::NotFound`] if it is not on the board.
    pub fn member(&self, board: &str, member: &str) -> Request<MemberQuery, Entry> {
        self.get(&["boards", board, "members", member])
    }

    /// A member and its neighbours.
    pub fn around(&self, board: &str, member: &str) -> Request<AroundQuery, Neighbours> {
        self.get(&["boards", board, "members", member, "around"])
    }

    /// A page of the best, or with `.from(End::Bottom)` of the worst. [`stream`](Request::stream) goes over all.
    pub fn top(&self, board: &str) -> Request<TopQuery, Page> {
        self.get(&["boards", board, "top"])
    }

    /// A page from any position on, counted from 1.
    pub fn positions(&self, board: &str, position: u64) -> Request<PositionsQuery, Page> {
        self.get(&["boards", board, "positions", &position.to_string()])
    }

    /// A page of the entries whose first key lies between `min` and `max`. [`stream`](Request::stream) goes over
    /// all.
    pub fn range(&self, board: &str) -> Request<RangeQuery, Page> {
        self.get(&["boards", board, "range"])
    }

    /// Up to 1,000 members among themselves: friends' boards.
    pub fn lookup(
        &self,
        board: &str,
        members: impl IntoIterator<Item = impl Into<String>>,
    ) -> Request<LookupQuery, Group> {
        let members: Vec<String> = members.into_iter().map(Into::into).collect();
        self.post(&["boards", board, "members"], ":lookup").body(&json!({ "members": members })).reads()
    }

    /// The rank of a score, whether or not anybody has it.
    pub fn rank(&self, board: &str, score: impl Into<Score>) -> Request<RankQuery, Rank> {
        let mut request = self.get(&["boards", board, "rank"]);
        request.required = format!("?score={}", score.into());
        request
    }

    /// The ranks of up to 1,000 scores.
    pub fn ranks(
        &self,
        board: &str,
        scores: impl IntoIterator<Item = impl Into<Score>>,
    ) -> Request<RanksOfQuery, Ranks> {
        let scores: Vec<Score> = scores.into_iter().map(Into::into).collect();
        self.post(&["boards", board, "ranks"], ":of").body(&json!({ "scores": scores })).reads()
    }

    /// The score at a `rank`, a `position` or a `percentile`: give one of the three.
    pub fn score(&self, board: &str) -> Request<ScoreQuery, Place> {
        self.get(&["boards", board, "score"])
    }

    /// How many entries lie between `min` and `max`.
    pub fn count(&self, board: &str) -> Request<CountQuery, Count> {
        self.get(&["boards", board, "count"])
    }

    /// How scores are spread, over equal `buckets` or between `edges`.
    pub fn histogram(&self, board: &str) -> Request<HistogramQuery, Histogram> {
        self.get(&["boards", board, "histogram"])
    }

    /// The scores at some percentiles.
    pub fn percentiles(
        &self,
        board: &str,
        percentiles: impl IntoIterator<Item = impl Into<f64>>,
    ) -> Request<PercentilesQuery, Percentiles> {
        let words: Vec<String> = percentiles.into_iter().map(|p| p.into().to_string()).collect();
        let mut request = self.get(&["boards", board, "percentiles"]);
        request.required = format!("?p={}", words.join(","));
        request
    }

    /// A member's entries on some boards, or a page of all. [`stream`](Request::stream) goes over all.
    pub fn member_boards(&self, member: &str) -> Request<MemberBoardsQuery, MemberBoards> {
        self.get(&["members", member])
    }

    /// A page of the jobs that were refused, newest first. [`stream`](Request::stream) goes over all.
    pub fn rejects(&self) -> Request<RejectsQuery, RejectList> {
        self.get(&["rejects"])
    }

    /// The state of the node, and of every shard.
    pub fn status(&self) -> Request<(), Status> {
        self.get(&["status"])
    }

    /// A board as it changes: the top, and members wherever they are. [`stream`](Request::stream) begins.
    pub fn live(&self, board: &str) -> Request<LiveQuery, Watch> {
        self.get(&["boards", board, "live"])
    }
}

impl From<Score> for EntryInput {
    fn from(score: Score) -> Self {
        Self::new().score(score)
    }
}

impl From<i64> for EntryInput {
    fn from(score: i64) -> Self {
        Self::new().score(score)
    }
}

impl Job {
    /// A score of a member on a board. The board's policy decides what it does, unless `op` is given.
    pub fn scored(board: impl Into<String>, member: impl Into<String>, score: impl Into<Score>) -> Self {
        Self::new(member).board(board).score(score)
    }
}
