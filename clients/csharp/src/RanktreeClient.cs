using System;
using System.Collections.Generic;
using System.Globalization;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json;

namespace Ranktree
{
    /// <summary>Options of a <see cref="RanktreeClient"/>.</summary>
    public sealed class RanktreeOptions
    {
        /// <summary>The token that the node asks for, if it does.</summary>
        public string Bearer { get; set; }

        /// <summary>For a request. A read with `After` gets the time that it may wait in addition.</summary>
        public TimeSpan Timeout { get; set; } = TimeSpan.FromSeconds(10);

        /// <summary>
        /// How often a read is sent again if no answer came or the node was overloaded. A write is sent again
        /// only if it certainly was not taken.
        /// </summary>
        public int Retries { get; set; } = 2;

        /// <summary>
        /// A client of your own, for proxies or certificates. It is not disposed with this one. Its `Timeout`
        /// should be infinite: it would end watched boards.
        /// </summary>
        public HttpClient Http { get; set; }

        /// <summary>How long a watched board may be silent before its connection counts as lost.</summary>
        internal TimeSpan Silence { get; set; } = TimeSpan.FromSeconds(30);
    }

    /// <summary>Writes and reads over HTTP, through any node. Many threads may use one at a time.</summary>
    public sealed partial class RanktreeClient : IDisposable
    {
        // Boards

        /// <summary>Creates a board, or changes what can be changed of it.</summary>
        public Task<DefinedBoard> DefineAsync(
            string board, DefinitionInput definition = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<DefinedBoard>(HttpMethod.Put, Json.Path("boards", board), cancel, definition ?? new DefinitionInput());

        /// <summary>A page of the boards, by name.</summary>
        public Task<BoardList> BoardsAsync(
            BoardsQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<BoardList>(HttpMethod.Get, Json.Path("boards"), cancel, null, query);

        /// <summary>A board's definition, and how many entries it has.</summary>
        public Task<Board> BoardAsync(
            string board, BoardQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Board>(HttpMethod.Get, Json.Path("boards", board), cancel, null, query);

        /// <summary>
        /// Opens the next manual season of a board, at a time or as soon as possible. It is sent once.
        /// </summary>
        public Task<OpenedSeason> OpenSeasonAsync(
            string board, DateTimeOffset? at = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<OpenedSeason>(
                HttpMethod.Post, Json.Path("boards", board) + "/seasons", cancel, new SeasonInput { At = at });

        /// <summary>Drops a board with all its entries.</summary>
        public Task<DroppedBoard> DropAsync(string board, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<DroppedBoard>(HttpMethod.Delete, Json.Path("boards", board), cancel);

        /// <summary>Removes all entries; the definition stays.</summary>
        public Task<RemovedEntries> ClearAsync(string board, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<RemovedEntries>(HttpMethod.Post, Json.Path("boards", board) + ":clear", cancel);

        /// <summary>
        /// Removes the entries behind a position, or those with a worse score: give one of the two.
        /// </summary>
        public Task<RemovedEntries> TrimAsync(
            string board, TrimInput what, TrimBoardQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<RemovedEntries>(HttpMethod.Post, Json.Path("boards", board) + ":trim", cancel, what, query);

        // Writes

        /// <summary>
        /// One job. With NATS, and without a `Wait` of `applied`, the answer has a token and nothing else.
        /// </summary>
        public Task<EntryWritten> WriteAsync(
            string board,
            string member,
            EntryInput job,
            PutMemberQuery query = null,
            CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<EntryWritten>(HttpMethod.Put, Json.Path("boards", board, "members", member), cancel, job, query);

        /// <summary>
        /// 1 to 1,000 jobs of any members. If one is invalid, none is applied: see <see
        /// cref="InvalidException.Errors"/>. With NATS, and without a `Wait` of `applied`, the answer has a
        /// token and nothing else.
        /// </summary>
        public Task<JobsWritten> WriteManyAsync(
            IList<Job> jobs, JobsQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<JobsWritten>(HttpMethod.Post, Json.Path("jobs"), cancel, jobs, query);

        /// <summary>Takes a member off a board.</summary>
        public Task<EntryWritten> RemoveAsync(
            string board, string member, DeleteMemberQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<EntryWritten>(HttpMethod.Delete, Json.Path("boards", board, "members", member), cancel, null, query);

        /// <summary>Takes a member off every board.</summary>
        public Task<MemberRemoved> RemoveEverywhereAsync(
            string member, DeleteEverywhereQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<MemberRemoved>(HttpMethod.Delete, Json.Path("members", member), cancel, null, query);

        // Reads

        /// <summary>
        /// A member's score, rank, position and percentile. <see cref="NotFoundException"/> if it is not on
        /// the board.
        /// </summary>
        public Task<Entry> MemberAsync(
            string board, string member, MemberQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Entry>(HttpMethod.Get, Json.Path("boards", board, "members", member), cancel, null, query);

        /// <summary>A member and its neighbours.</summary>
        public Task<Neighbours> AroundAsync(
            string board, string member, AroundQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Neighbours>(
                HttpMethod.Get, Json.Path("boards", board, "members", member, "around"), cancel, null, query);

        /// <summary>A page of the best, or of the worst if `From` is `bottom`.</summary>
        public Task<Page> TopAsync(
            string board, TopQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Page>(HttpMethod.Get, Json.Path("boards", board, "top"), cancel, null, query);

        /// <summary>A page from any position on, counted from 1.</summary>
        public Task<Page> PositionsAsync(
            string board, long position, PositionsQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Page>(
                HttpMethod.Get,
                Json.Path("boards", board, "positions", position.ToString(CultureInfo.InvariantCulture)),
                cancel,
                null,
                query);

        /// <summary>A page of the entries whose first key lies between `Min` and `Max`.</summary>
        public Task<Page> RangeAsync(
            string board, RangeQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Page>(HttpMethod.Get, Json.Path("boards", board, "range"), cancel, null, query);

        /// <summary>Up to 1,000 members among themselves: friends' boards.</summary>
        public Task<Group> LookupAsync(
            string board,
            IList<string> members,
            LookupQuery query = null,
            CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Group>(
                HttpMethod.Post,
                Json.Path("boards", board, "members") + ":lookup",
                cancel,
                new LookupInput { Members = members },
                query);

        /// <summary>The rank of a score, whether or not anybody has it.</summary>
        public Task<Rank> RankAsync(
            string board, Score score, RankQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Rank>(
                HttpMethod.Get, Json.Path("boards", board, "rank"), cancel, null, new OfScore { Score = score }, query);

        /// <summary>The ranks of up to 1,000 scores.</summary>
        public Task<Ranks> RanksAsync(
            string board,
            IList<Score> scores,
            RanksOfQuery query = null,
            CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Ranks>(
                HttpMethod.Post,
                Json.Path("boards", board, "ranks") + ":of",
                cancel,
                new ScoresInput { Scores = scores },
                query);

        /// <summary>The score at a `Rank`, a `Position` or a `Percentile`: give one of the three.</summary>
        public Task<Place> ScoreAsync(
            string board, ScoreQuery query, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Place>(HttpMethod.Get, Json.Path("boards", board, "score"), cancel, null, query);

        /// <summary>How many entries lie between `Min` and `Max`.</summary>
        public Task<Count> CountAsync(
            string board, CountQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Count>(HttpMethod.Get, Json.Path("boards", board, "count"), cancel, null, query);

        /// <summary>How scores are spread, over equal `Buckets` or between `Edges`.</summary>
        public Task<Histogram> HistogramAsync(
            string board, HistogramQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Histogram>(HttpMethod.Get, Json.Path("boards", board, "histogram"), cancel, null, query);

        /// <summary>The scores at some percentiles.</summary>
        public Task<Percentiles> PercentilesAsync(
            string board,
            IList<double> p,
            PercentilesQuery query = null,
            CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Percentiles>(
                HttpMethod.Get, Json.Path("boards", board, "percentiles"), cancel, null, new OfPercentiles { P = p }, query);

        /// <summary>A member's entries on some boards, or a page of all.</summary>
        public Task<MemberBoards> MemberBoardsAsync(
            string member, MemberBoardsQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<MemberBoards>(HttpMethod.Get, Json.Path("members", member), cancel, null, query);

        /// <summary>A page of the jobs that were refused, newest first.</summary>
        public Task<RejectList> RejectsAsync(
            RejectsQuery query = null, CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<RejectList>(HttpMethod.Get, Json.Path("rejects"), cancel, null, query);

        /// <summary>The state of the node, and of every shard.</summary>
        public Task<Status> StatusAsync(CancellationToken cancel = default(CancellationToken)) =>
            SendAsync<Status>(HttpMethod.Get, Json.Path("status"), cancel);

        // All pages. Each page is at least as new as the one before, also if another node answers.

        /// <summary>All entries from an end of a board on. `Limit` is the size of a page.</summary>
        public Pages<ListedEntry> AllTop(string board, TopQuery query = null)
        {
            var asked = Copied(query);
            return new Pages<ListedEntry>(async cancel =>
            {
                var page = await TopAsync(board, asked, cancel).ConfigureAwait(false);
                asked.Cursor = page.NextCursor;
                asked.After = Follow(asked.After, page.AsOf, asked.Partial);
                return Found.Of(page.Entries, page.NextCursor);
            });
        }

        /// <summary>All entries between `Min` and `Max`. `Limit` is the size of a page.</summary>
        public Pages<ListedEntry> AllRange(string board, RangeQuery query = null)
        {
            var asked = Copied(query);
            return new Pages<ListedEntry>(async cancel =>
            {
                var page = await RangeAsync(board, asked, cancel).ConfigureAwait(false);
                asked.Cursor = page.NextCursor;
                asked.After = Follow(asked.After, page.AsOf, asked.Partial);
                return Found.Of(page.Entries, page.NextCursor);
            });
        }

        /// <summary>All boards, by name. `Limit` is the size of a page.</summary>
        public Pages<ListedBoard> AllBoards(BoardsQuery query = null)
        {
            var asked = Copied(query);
            return new Pages<ListedBoard>(async cancel =>
            {
                var page = await BoardsAsync(asked, cancel).ConfigureAwait(false);
                asked.Cursor = page.NextCursor;
                asked.After = Follow(asked.After, page.AsOf, asked.Partial);
                return Found.Of(page.Boards, page.NextCursor);
            });
        }

        /// <summary>A member's entries on all boards.</summary>
        public Pages<Entry> AllMemberBoards(string member, MemberBoardsQuery query = null)
        {
            var asked = Copied(query);
            return new Pages<Entry>(async cancel =>
            {
                var page = await MemberBoardsAsync(member, asked, cancel).ConfigureAwait(false);
                asked.Cursor = page.NextCursor;
                asked.After = Follow(asked.After, page.AsOf, asked.Partial);
                return Found.Of(page.Entries, page.NextCursor);
            });
        }

        /// <summary>All jobs that were refused, newest first. `Limit` is the size of a page.</summary>
        public Pages<Reject> AllRejects(RejectsQuery query = null)
        {
            var asked = Copied(query);
            return new Pages<Reject>(async cancel =>
            {
                var page = await RejectsAsync(asked, cancel).ConfigureAwait(false);
                asked.Cursor = page.NextCursor;
                return Found.Of(page.Rejects, page.NextCursor);
            });
        }

        private static T Copied<T>(T query)
            where T : class, new()
        {
            var asked = new T();
            if (query != null)
            {
                foreach (var property in typeof(T).GetProperties())
                {
                    property.SetValue(asked, property.GetValue(query));
                }
            }
            return asked;
        }

        private static string Follow(string after, string asOf, bool? isPartial) =>
            isPartial == true ? after : Tokens.Latest(after, asOf);

        private sealed class OfScore
        {
            [JsonProperty("score")] public Score Score { get; set; }
        }

        private sealed class OfPercentiles
        {
            [JsonProperty("p")] public IList<double> P { get; set; }
        }
    }
}
