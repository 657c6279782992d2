using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json.Linq;

namespace Ranktree
{
    /// <summary>Options of a <see cref="Publisher"/>.</summary>
    public sealed class PublisherOptions
    {
        /// <summary>
        /// How many shards there are. Without it the publisher asks the first jobs stream, for which its user
        /// needs the permission to publish to `$JS.API.STREAM.INFO.*`.
        /// </summary>
        public int? Shards { get; set; }

        /// <summary>The nodes' `--prefix`.</summary>
        public string Prefix { get; set; } = "ranktree";

        /// <summary>When a message that was not acknowledged is sent again.</summary>
        public TimeSpan AckTimeout { get; set; } = TimeSpan.FromSeconds(5);

        /// <summary>How long the publisher sends a message again, 110 seconds at most.</summary>
        public TimeSpan GiveUpAfter { get; set; } = TimeSpan.FromSeconds(60);

        /// <summary>How many jobs and arrays wait to be stored; further calls wait for room.</summary>
        public int MaxWaiting { get; set; } = 10000;
    }

    /// <summary>
    /// Publishes jobs to the streams that nodes read, without asking a node. Make one with
    /// <see cref="CreateAsync"/>.
    ///
    /// A message is an array of jobs of one shard. A publisher has one message of each shard on its way at a
    /// time: jobs that come meanwhile make the next array, and a message that is sent again cannot overtake
    /// another. Each message has a `Nats-Msg-Id`, which it keeps when it is sent again, so that the server
    /// stores it once.
    /// </summary>
    public sealed class Publisher
    {
        // Fixed, because ids of a `PublishManyAsync` follow from where it is cut into messages.
        internal const int JobsMax = 1000;
        // Every jobs stream takes messages of 128 KiB; the rest is for the headers.
        internal const int BytesMax = 127 * 1024;
        private const int IdMax = 512;
        // The server forgets an id after two minutes, unless the operator set another time on the stream.
        private static readonly TimeSpan GiveUpMax = TimeSpan.FromSeconds(110);
        private static readonly TimeSpan WriteTimeout = TimeSpan.FromSeconds(35);

        private readonly SemaphoreSlim room;
        private readonly Lane[] lanes;
        private int users;
        private volatile bool isClosed;

        private Publisher(INatsRequests connection, int shards, PublisherOptions options)
        {
            Connection = connection;
            Options = options;
            Shards = shards;
            Tokens.ShardOf("", shards);
            room = new SemaphoreSlim(options.MaxWaiting, options.MaxWaiting);
            lanes = Enumerable.Range(0, shards).Select(shard => new Lane(this, shard)).ToArray();
        }

        /// <summary>How many shards there are.</summary>
        public int Shards { get; }

        internal INatsRequests Connection { get; }

        internal PublisherOptions Options { get; }

        /// <summary>Uses a connection, which is not closed with the publisher.</summary>
        public static async Task<Publisher> CreateAsync(
            INatsRequests connection, PublisherOptions options = null, CancellationToken cancel = default(CancellationToken))
        {
            options = options ?? new PublisherOptions();
            if (options.GiveUpAfter > GiveUpMax)
            {
                var told = $"a message is given up after {GiveUpMax} at most, because the server forgets ids";
                throw new ArgumentException($"{told}; got {options.GiveUpAfter}");
            }
            if (options.MaxWaiting < 1)
            {
                throw new ArgumentException($"MaxWaiting is at least 1; got {options.MaxWaiting}");
            }
            var shards = options.Shards ?? await FindShardsAsync(connection, options.Prefix, cancel).ConfigureAwait(false);
            return new Publisher(connection, shards, options);
        }

        /// <summary>Waits for what is on its way. Nothing more can be published.</summary>
        public async Task CloseAsync(CancellationToken cancel = default(CancellationToken))
        {
            isClosed = true;
            while (Volatile.Read(ref users) > 0)
            {
                await Task.Delay(10, cancel).ConfigureAwait(false);
            }
        }

        /// <summary>
        /// Stores a job, and returns its token. Whether it is applied or rejected is not known then.
        ///
        /// Without a `messageId` jobs of the same moment share messages. A `messageId` switches that off: the
        /// job has a message of its own, and the next one of its shard waits until that is acknowledged. You
        /// may publish it again under the same id then, also after your process was killed: within two
        /// minutes it counts once. For many jobs give `PublishManyAsync` one id, or the jobs a `Version`.
        ///
        /// The order of calls is the order of the jobs, also if you do not wait for each. If it is cancelled,
        /// a job that is not on its way yet is not sent any more.
        /// </summary>
        public Task<string> PublishAsync(
            Job job, string messageId = null, CancellationToken cancel = default(CancellationToken))
        {
            CheckId(messageId);
            return PutOneAsync(ShardOf(job.Member), Encoded(job), messageId, cancel);
        }

        /// <summary>
        /// Stores jobs of any members, in as few messages as possible, and returns one token for all.
        ///
        /// Jobs of a member stay in their order. With a `messageId` they share messages with each other and
        /// with no other jobs, and the ids of the messages follow from it; to publish again, give the same
        /// jobs in the same order. <see cref="PublishManyException"/> if messages were not acknowledged.
        /// </summary>
        public async Task<string> PublishManyAsync(
            IList<Job> jobs, string messageId = null, CancellationToken cancel = default(CancellationToken))
        {
            CheckId(messageId);
            if (jobs.Count == 0)
            {
                throw new ArgumentException("there are no jobs to publish");
            }
            var byShard = new SortedDictionary<int, List<byte[]>>();
            foreach (var job in jobs)
            {
                var shard = ShardOf(job.Member);
                List<byte[]> known;
                if (!byShard.TryGetValue(shard, out known))
                {
                    byShard[shard] = known = new List<byte[]>();
                }
                known.Add(Encoded(job));
            }
            var errors = new SortedDictionary<int, List<PublishException>>();
            Enter();
            try
            {
                var parts = byShard.Select(part =>
                {
                    errors[part.Key] = new List<PublishException>();
                    return PutAllAsync(part.Key, Cut(part.Value), messageId, errors[part.Key], cancel);
                });
                var tokens = await Task.WhenAll(parts.ToList()).ConfigureAwait(false);
                var token = Tokens.Latest(tokens);
                var failed = errors.Values.SelectMany(one => one).ToList();
                return failed.Count == 0 ? token : throw new PublishManyException(failed, messageId, token);
            }
            finally
            {
                Interlocked.Decrement(ref users);
            }
        }

        /// <summary>
        /// Has a node write jobs of members of one shard, and returns what came of them. Nothing is sent
        /// again. If no answer came in time, <see cref="ConnectionFailedException"/> is thrown; give jobs a
        /// `Version`, and send them again before later ones of the same members. `changedOnly` asks for a short
        /// answer.
        /// </summary>
        public async Task<JobsWritten> WriteAsync(
            IList<Job> jobs,
            bool changedOnly = false,
            TimeSpan? timeout = null,
            CancellationToken cancel = default(CancellationToken))
        {
            var shards = jobs.Select(job => ShardOf(job.Member)).Distinct().ToList();
            if (shards.Count != 1)
            {
                throw new ArgumentException($"the jobs of a write belong to one shard; these belong to {shards.Count}");
            }
            var subject = $"{Options.Prefix}.write.{shards[0]}";
            var headers = new Dictionary<string, string>();
            if (changedOnly)
            {
                headers["Ranktree-Results"] = "changed";
            }
            NatsAnswer answer;
            try
            {
                answer = await Connection.RequestAsync(subject, headers, Json.Write(jobs), timeout ?? WriteTimeout, cancel)
                    .ConfigureAwait(false);
            }
            catch (NoRespondersException)
            {
                var told = new JObject
                {
                    ["code"] = Codes.ShardUnavailable,
                    ["detail"] = $"no node answers to {subject}; try again",
                };
                throw ProblemException.Of(503, told.ToString());
            }
            catch (Exception error) when (!(error is OperationCanceledException))
            {
                throw new ConnectionFailedException($"no node answered to {subject}: {error.Message}", true, error);
            }
            var text = Encoding.UTF8.GetString(answer.Data);
            string status;
            if (answer.Headers.TryGetValue("Nats-Service-Error-Code", out status))
            {
                throw ProblemException.Of(int.Parse(status, CultureInfo.InvariantCulture), text);
            }
            return Json.Read<JobsWritten>(text);
        }

        /// <summary>
        /// Stores the messages of a shard. After one that failed the others are not sent, to stay in order.
        /// </summary>
        private async Task<string> PutAllAsync(
            int shard, List<List<byte[]>> messages, string start, List<PublishException> errors, CancellationToken cancel)
        {
            string token = null;
            for (var number = 0; number < messages.Count; number++)
            {
                var id = start == null ? null : $"{start}.{shard}.{number}";
                if (errors.Count > 0)
                {
                    var told = $"not sent, because {errors[0].MessageId ?? "a message before it"} was not acknowledged";
                    errors.Add(new PublishException(told, id, false));
                    continue;
                }
                try
                {
                    token = await PutAsync(shard, messages[number], id, cancel).ConfigureAwait(false);
                }
                catch (PublishException error)
                {
                    errors.Add(error);
                }
            }
            return token;
        }

        /// <summary>Counts a call, for which <see cref="CloseAsync"/> waits.</summary>
        private void Enter()
        {
            Interlocked.Increment(ref users);
            if (isClosed)
            {
                Interlocked.Decrement(ref users);
                throw new RanktreeException("the publisher is closed");
            }
        }

        private async Task<string> PutOneAsync(int shard, byte[] job, string messageId, CancellationToken cancel)
        {
            Enter();
            try
            {
                return await PutAsync(shard, new List<byte[]> { job }, messageId, cancel).ConfigureAwait(false);
            }
            finally
            {
                Interlocked.Decrement(ref users);
            }
        }

        private async Task<string> PutAsync(int shard, List<byte[]> jobs, string messageId, CancellationToken cancel)
        {
            // There is room at once unless many wait; then calls do not keep their order by themselves.
            try
            {
                await room.WaitAsync(cancel).ConfigureAwait(false);
            }
            catch (OperationCanceledException error)
            {
                throw new PublishException("cancelled before it was sent", messageId, false, error);
            }
            try
            {
                var one = new Waiting(jobs, messageId);
                lanes[shard].Put(one);
                using (cancel.Register(() => lanes[shard].Withdraw(one)))
                {
                    var sequence = await one.Stored.ConfigureAwait(false);
                    return $"{shard}:{sequence}";
                }
            }
            finally
            {
                room.Release();
            }
        }

        private int ShardOf(string member)
        {
            var size = member == null ? 0 : Encoding.UTF8.GetByteCount(member);
            if (size < 1 || size > 256)
            {
                throw new ArgumentException($"a member's id is 1 to 256 bytes; got {member}");
            }
            return Tokens.ShardOf(member, Shards);
        }

        private static byte[] Encoded(Job job)
        {
            var text = Json.Write(job);
            if (text.Length >= BytesMax)
            {
                throw new ArgumentException($"a job has at most {BytesMax} bytes; got {text.Length}");
            }
            return text;
        }

        private static void CheckId(string messageId)
        {
            if (messageId != null
                && (messageId.Length < 1 || messageId.Length > IdMax || messageId.Any(letter => letter < ' ' || letter > '~')))
            {
                throw new ArgumentException($"a message's id is 1 to {IdMax} printable ASCII characters; got {messageId}");
            }
        }

        /// <summary>Arrays of at most as many jobs and bytes as a message may have.</summary>
        private static List<List<byte[]>> Cut(List<byte[]> jobs)
        {
            var found = new List<List<byte[]>> { new List<byte[]>() };
            var size = 0;
            foreach (var job in jobs)
            {
                var last = found[found.Count - 1];
                if (last.Count > 0 && (last.Count == JobsMax || size + job.Length + 1 > BytesMax))
                {
                    found.Add(last = new List<byte[]>());
                    size = 0;
                }
                last.Add(job);
                size += job.Length + 1;
            }
            return found;
        }

        /// <summary>How many shards there are, as the first jobs stream says.</summary>
        private static async Task<int> FindShardsAsync(INatsRequests connection, string prefix, CancellationToken cancel)
        {
            var stream = $"{prefix.ToUpperInvariant()}_JOBS_0";
            string why;
            try
            {
                var answer = await connection.RequestAsync(
                    "$JS.API.STREAM.INFO." + stream,
                    new Dictionary<string, string>(),
                    new byte[0],
                    TimeSpan.FromSeconds(5),
                    cancel).ConfigureAwait(false);
                var info = Json.Read<JObject>(Encoding.UTF8.GetString(answer.Data));
                why = (string)info.SelectToken("error.description");
                if (why == null)
                {
                    var found = (string)info.SelectToken("config.metadata.ranktree-shards");
                    return found != null
                        ? int.Parse(found, CultureInfo.InvariantCulture)
                        : throw new RanktreeException($"the stream {stream} is not one of ranktree's");
                }
            }
            catch (Exception error) when (error is TimeoutException || error is NoRespondersException)
            {
                why = error.Message;
            }
            var told = $"the stream {stream} does not say how many shards there are: {why}";
            throw new RanktreeException($"{told}; start a node, or give Shards");
        }
    }
}
