using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json.Linq;

namespace Ranktree
{
    /// <summary>Jobs that go into one message, and who waits for it.</summary>
    internal sealed class Waiting
    {
        private readonly TaskCompletionSource<ulong> stored =
            new TaskCompletionSource<ulong>(TaskCreationOptions.RunContinuationsAsynchronously);

        public Waiting(List<byte[]> jobs, string messageId)
        {
            Jobs = jobs;
            MessageId = messageId;
            foreach (var job in jobs)
            {
                Size += job.Length + 1;
            }
        }

        public List<byte[]> Jobs { get; }

        public int Size { get; }

        /// <summary>Jobs without an id of the caller's may share a message with others.</summary>
        public string MessageId { get; }

        public Task<ulong> Stored => stored.Task;

        public void Finish(ulong sequence) => stored.TrySetResult(sequence);

        /// <summary>
        /// Not with the id of a shared message: the server would take one of its jobs, published again alone,
        /// for the whole.
        /// </summary>
        public void Fail(string told, bool mayBeStored, Exception why) =>
            stored.TrySetException(new PublishException(told, MessageId, mayBeStored, why));
    }

    /// <summary>The messages of one shard, one after the other.</summary>
    internal sealed class Lane
    {
        private readonly Publisher publisher;
        private readonly int shard;
        private readonly LinkedList<Waiting> waiting = new LinkedList<Waiting>();
        private bool isRunning;

        public Lane(Publisher publisher, int shard)
        {
            this.publisher = publisher;
            this.shard = shard;
        }

        public void Put(Waiting one)
        {
            lock (waiting)
            {
                waiting.AddLast(one);
                if (isRunning)
                {
                    return;
                }
                isRunning = true;
            }
            Task.Run(RunAsync);
        }

        /// <summary>Takes jobs out of the lane, unless they are on their way: those may be stored.</summary>
        public void Withdraw(Waiting one)
        {
            lock (waiting)
            {
                var isOut = waiting.Remove(one);
                var told = isOut ? "cancelled before it was sent" : "cancelled while it was on its way";
                one.Fail(told, !isOut, new OperationCanceledException());
            }
        }

        private async Task RunAsync()
        {
            while (true)
            {
                var message = Take();
                if (message.Count == 0)
                {
                    return;
                }
                var id = message[0].MessageId ?? Guid.NewGuid().ToString("N");
                try
                {
                    var sequence = await StoreAsync(Payload(message), id).ConfigureAwait(false);
                    message.ForEach(one => one.Finish(sequence));
                }
                catch (PublishException error)
                {
                    message.ForEach(one => one.Fail(error.Message, error.MayBeStored, error.InnerException));
                }
                catch (Exception error)
                {
                    // Nobody may wait forever, whatever a connection throws.
                    message.ForEach(one => one.Fail(error.Message, true, error));
                }
            }
        }

        /// <summary>
        /// The next message: the first that waits, and those after it that fit into the same array.
        /// </summary>
        private List<Waiting> Take()
        {
            var taken = new List<Waiting>();
            lock (waiting)
            {
                int jobs = 0, size = 0;
                while (waiting.Count > 0)
                {
                    var one = waiting.First.Value;
                    var isAlone = one.MessageId != null;
                    var isFull = jobs + one.Jobs.Count > Publisher.JobsMax || size + one.Size > Publisher.BytesMax;
                    if (taken.Count > 0 && (isAlone || isFull))
                    {
                        break;
                    }
                    waiting.RemoveFirst();
                    taken.Add(one);
                    jobs += one.Jobs.Count;
                    size += one.Size;
                    if (isAlone)
                    {
                        break;
                    }
                }
                isRunning = taken.Count > 0;
            }
            return taken;
        }

        private static byte[] Payload(List<Waiting> message)
        {
            using (var written = new MemoryStream())
            {
                foreach (var one in message)
                {
                    foreach (var job in one.Jobs)
                    {
                        written.WriteByte((byte)(written.Length == 0 ? '[' : ','));
                        written.Write(job, 0, job.Length);
                    }
                }
                written.WriteByte((byte)']');
                return written.ToArray();
            }
        }

        /// <summary>
        /// Publishes until the server acknowledges, always under the same id, and returns the sequence.
        /// </summary>
        private async Task<ulong> StoreAsync(byte[] payload, string id)
        {
            var options = publisher.Options;
            var subject = $"{options.Prefix}.jobs.{shard}";
            var stream = $"{options.Prefix.ToUpperInvariant()}_JOBS_{shard}";
            var headers = new Dictionary<string, string> { ["Nats-Msg-Id"] = id, ["Nats-Expected-Stream"] = stream };
            var clock = System.Diagnostics.Stopwatch.StartNew();
            var mayBeStored = false;
            for (var number = 0; ; number++)
            {
                string told;
                try
                {
                    var answer = await publisher.Connection
                        .RequestAsync(subject, headers, payload, options.AckTimeout, CancellationToken.None)
                        .ConfigureAwait(false);
                    var ack = Json.Read<JObject>(Encoding.UTF8.GetString(answer.Data));
                    if (ack["error"] == null)
                    {
                        return (ulong)ack["seq"];
                    }
                    told = $"{subject}: {ack["error"]["description"]}";
                    // A full stream, and one without a leader, have a status from 500 on: they may come back.
                    if (((int?)ack["error"]["code"] ?? 0) < 500)
                    {
                        throw new PublishException(told, id, mayBeStored);
                    }
                }
                catch (NoRespondersException)
                {
                    told = $"{subject}: there is no stream {stream}; a node with the same prefix creates it";
                }
                catch (TimeoutException)
                {
                    mayBeStored = true;
                    told = $"{subject}: not acknowledged within {options.GiveUpAfter}";
                }
                var pause = Pause.After(number);
                if (clock.Elapsed + pause >= options.GiveUpAfter)
                {
                    throw new PublishException(told, id, mayBeStored);
                }
                await Task.Delay(pause).ConfigureAwait(false);
            }
        }
    }
}
