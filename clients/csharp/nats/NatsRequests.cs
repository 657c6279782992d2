using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using NATS.Client.Core;

namespace Ranktree.Nats
{
    /// <summary>What a <see cref="Publisher"/> needs, of NATS.Net, the official client.</summary>
    public sealed class NatsRequests : INatsRequests
    {
        private readonly NatsConnection connection;

        /// <summary>Uses a connection, which is yours to dispose of.</summary>
        public NatsRequests(NatsConnection connection)
        {
            this.connection = connection;
        }

        public async Task<NatsAnswer> RequestAsync(
            string subject,
            IReadOnlyDictionary<string, string> headers,
            byte[] data,
            TimeSpan timeout,
            CancellationToken cancel)
        {
            var sent = new NatsHeaders();
            foreach (var header in headers)
            {
                sent[header.Key] = header.Value;
            }
            using (var limit = CancellationTokenSource.CreateLinkedTokenSource(cancel))
            {
                // Also while there is no connection, which a request waits for.
                limit.CancelAfter(timeout);
                try
                {
                    var answer = await connection.RequestAsync<byte[], byte[]>(
                        subject,
                        data,
                        headers.Count > 0 ? sent : null,
                        replyOpts: new NatsSubOpts { Timeout = timeout, ThrowIfNoResponders = true },
                        cancellationToken: limit.Token).ConfigureAwait(false);
                    var got = new Dictionary<string, string>();
                    foreach (var header in answer.Headers ?? new NatsHeaders())
                    {
                        got[header.Key] = header.Value.LastOrDefault();
                    }
                    return new NatsAnswer(got, answer.Data ?? new byte[0]);
                }
                catch (NatsNoRespondersException)
                {
                    throw new NoRespondersException();
                }
                catch (NatsNoReplyException error)
                {
                    throw new TimeoutException(error.Message, error);
                }
                catch (OperationCanceledException error) when (!cancel.IsCancellationRequested)
                {
                    throw new TimeoutException("no answer came in time", error);
                }
            }
        }
    }
}
