using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Ranktree
{
    /// <summary>A watched board after an event.</summary>
    public sealed class LiveUpdate
    {
        internal LiveUpdate(LiveState state, LiveChanges changes)
        {
            State = state;
            Changes = changes;
        }

        /// <summary>
        /// All that is watched: the top, and the members in the order in which they were asked for.
        /// </summary>
        public LiveState State { get; }

        /// <summary>
        /// What has changed since the update before; null if the state is another as a whole, as the first
        /// is.
        /// </summary>
        public LiveChanges Changes { get; }
    }

    public sealed partial class RanktreeClient
    {
        /// <summary>
        /// Watches the top of a board, and members wherever they are. The first update has all of it, and
        /// each further one what has changed as well. Dispose of it when nobody watches any more.
        /// </summary>
        public Watch Live(string board, LiveQuery query = null) =>
            new Watch(this, Json.Path("boards", board) + "/live", query ?? new LiveQuery(), options);
    }

    /// <summary>
    /// A board that is watched, over one connection after the other: `while (await watch.MoveNextAsync()) {
    /// ... watch.Current ... }`.
    ///
    /// A connection that is lost, or silent for half a minute, is made anew, and goes on from the last
    /// event: nothing is missed. Only the first one fails after as many tries as a read. It ends with an
    /// exception if the service ended it: the board was dropped, the instance is not kept, the token was
    /// taken back.
    /// </summary>
    public sealed class Watch : IDisposable
    {
        private readonly RanktreeClient client;
        private readonly RanktreeClient.Request request;
        private readonly IList<string> asked;
        private readonly RanktreeOptions options;

        private HttpResponseMessage answer;
        private StreamReader reader;
        private string lastId;
        private int failures;
        private TimeSpan retry = TimeSpan.FromSeconds(2);

        internal Watch(RanktreeClient client, string route, LiveQuery query, RanktreeOptions options)
        {
            this.client = client;
            this.options = options;
            asked = query.Members ?? new List<string>();
            request = new RanktreeClient.Request { Method = HttpMethod.Get, Route = route, Query = Json.Query(query) };
        }

        public LiveUpdate Current { get; private set; }

        /// <summary>Closes the connection.</summary>
        public void Dispose() => Close();

        /// <summary>Waits for the next update. One call at a time.</summary>
        public async Task<bool> MoveNextAsync(CancellationToken cancel = default(CancellationToken))
        {
            while (true)
            {
                TimeSpan pause;
                try
                {
                    if (reader == null)
                    {
                        await ConnectAsync(cancel).ConfigureAwait(false);
                    }
                    Current = await ReadAsync(cancel).ConfigureAwait(false);
                    failures = 0;
                    return true;
                }
                catch (EndedException ended)
                {
                    Close();
                    throw ended.Problem;
                }
                catch (ProblemException error) when (Pause(error, out pause))
                {
                }
                catch (ConnectionFailedException error) when (Pause(error, out pause))
                {
                }
                Close();
                failures++;
                await Task.Delay(pause, cancel).ConfigureAwait(false);
            }
        }

        /// <summary>How long to wait after an error, and whether to try again at all.</summary>
        private bool Pause(RanktreeException error, out TimeSpan pause)
        {
            var problem = error as ProblemException;
            if (lastId == null)
            {
                pause = Ranktree.Pause.After(failures);
                return failures < options.Retries && (problem == null || request.MayRepeat(problem));
            }
            pause = Ranktree.Pause.Spread(retry);
            if (problem?.RetryAfter > pause)
            {
                pause = problem.RetryAfter.Value;
            }
            return problem == null || problem.Status >= 500;
        }

        private void Close()
        {
            answer?.Dispose();
            answer = null;
            reader = null;
        }

        private async Task ConnectAsync(CancellationToken cancel)
        {
            using (var limit = CancellationTokenSource.CreateLinkedTokenSource(cancel))
            {
                limit.CancelAfter(options.Timeout + request.Waits);
                var how = HttpCompletionOption.ResponseHeadersRead;
                answer = await client.OpenAsync(request, lastId, how, cancel, limit.Token).ConfigureAwait(false);
                try
                {
                    if (answer.StatusCode != HttpStatusCode.OK)
                    {
                        var text = await answer.Content.ReadAsStringAsync().ConfigureAwait(false);
                        throw RanktreeClient.Problem(answer, text);
                    }
                    reader = new StreamReader(await answer.Content.ReadAsStreamAsync().ConfigureAwait(false), Encoding.UTF8);
                }
                catch (Exception error) when (RanktreeClient.IsOfConnection(error))
                {
                    throw client.NoAnswer(request, false, error, cancel);
                }
            }
        }

        /// <summary>Reads to the end of an event that says something.</summary>
        private async Task<LiveUpdate> ReadAsync(CancellationToken cancel)
        {
            string kind = null, id = null, data = "";
            while (true)
            {
                var line = await LineAsync(cancel).ConfigureAwait(false);
                if (line.Length == 0)
                {
                    var update = Event(kind, data);
                    lastId = id ?? lastId;
                    if (update != null)
                    {
                        return update;
                    }
                    kind = id = null;
                    data = "";
                    continue;
                }
                var colon = line.IndexOf(':');
                var name = colon < 0 ? line : line.Substring(0, colon);
                var value = colon < 0 ? "" : line.Substring(colon + 1);
                value = value.StartsWith(" ", StringComparison.Ordinal) ? value.Substring(1) : value;
                switch (name)
                {
                    case "event":
                        kind = value;
                        break;
                    case "id":
                        id = value;
                        break;
                    case "data":
                        data += value;
                        break;
                    case "retry":
                        int milliseconds;
                        if (int.TryParse(value, out milliseconds) && milliseconds >= 0)
                        {
                            retry = TimeSpan.FromMilliseconds(milliseconds);
                        }
                        break;
                }
            }
        }

        private async Task<string> LineAsync(CancellationToken cancel)
        {
            var reading = reader.ReadLineAsync();
            using (var limit = CancellationTokenSource.CreateLinkedTokenSource(cancel))
            {
                var silence = Task.Delay(options.Silence, limit.Token);
                var isRead = await Task.WhenAny(reading, silence).ConfigureAwait(false) == reading;
                limit.Cancel();
                if (!isRead)
                {
                    // The read ends with the connection; nobody waits for it.
                    Close();
                    Forget(reading);
                    throw client.NoAnswer(request, false, new TimeoutException("the connection was silent"), cancel);
                }
            }
            try
            {
                var line = await reading.ConfigureAwait(false);
                return line ?? throw new IOException("the stream has ended");
            }
            catch (Exception error) when (RanktreeClient.IsOfConnection(error))
            {
                throw client.NoAnswer(request, false, error, cancel);
            }
        }

        private static void Forget(Task task) =>
            task.ContinueWith(ended => ended.Exception, TaskContinuationOptions.OnlyOnFaulted);

        private LiveUpdate Event(string kind, string data)
        {
            switch (kind)
            {
                case "state":
                    var state = Json.Read<LiveState>(data);
                    state.Members = Arranged(state.Members);
                    return new LiveUpdate(state, null);
                case "changes":
                    var changes = Json.Read<LiveChanges>(data);
                    return new LiveUpdate(Applied(Current.State, changes), changes);
                case "end":
                    var problem = Json.TryRead<JObject>(data) ?? new JObject();
                    throw new EndedException(ProblemException.Of((int?)problem["status"] ?? 0, data));
                default:
                    // One of a later version, or a comment.
                    return null;
            }
        }

        /// <summary>A new state, so that the one that the caller has stays as it is.</summary>
        private LiveState Applied(LiveState before, LiveChanges changes)
        {
            var members = Arranged(Replaced(before.Members, changes.Members, changes.NotFound));
            return new LiveState
            {
                Board = changes.Board,
                Window = changes.Window,
                Total = changes.Total,
                Entries = Replaced(before.Entries, changes.Entries, changes.Left).OrderBy(one => one.Position).ToList(),
                Members = members,
                NotFound = asked.Except(members.Select(one => one.Member)).ToList(),
                AsOf = changes.AsOf,
                Stale = changes.Stale,
            };
        }

        private List<ListedEntry> Arranged(IEnumerable<ListedEntry> members)
        {
            var places = asked.ToList();
            return members.OrderBy(one => places.IndexOf(one.Member)).ToList();
        }

        /// <summary>
        /// Changed entries in the place of those of the same member, without those who are gone.
        /// </summary>
        private static IEnumerable<ListedEntry> Replaced(
            IEnumerable<ListedEntry> entries, IList<ListedEntry> changed, IEnumerable<string> gone)
        {
            var known = new HashSet<string>(changed.Select(one => one.Member).Concat(gone));
            return entries.Where(one => !known.Contains(one.Member)).Concat(changed);
        }

        /// <summary>The service ended the watch.</summary>
        private sealed class EndedException : Exception
        {
            public EndedException(ProblemException problem)
            {
                Problem = problem;
            }

            public ProblemException Problem { get; }
        }
    }
}
