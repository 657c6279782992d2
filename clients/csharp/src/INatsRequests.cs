using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Ranktree
{
    /// <summary>
    /// What a <see cref="Publisher"/> needs of a NATS client. `nats/NatsRequests.cs` is it for NATS.Net, the
    /// official one.
    /// </summary>
    public interface INatsRequests
    {
        /// <summary>
        /// Publishes a message with a reply subject, and returns the first answer. Throws
        /// <see cref="NoRespondersException"/> if nobody listens to the subject, and a
        /// <see cref="TimeoutException"/> if no answer came in time, or the connection was lost: whether the
        /// message arrived is not known then. Anything else means that trying again is of no use.
        ///
        /// What could not be sent in time must not be sent later, when there is a connection again: the server
        /// may have forgotten the id of the message by then, and store it a second time.
        /// </summary>
        Task<NatsAnswer> RequestAsync(
            string subject,
            IReadOnlyDictionary<string, string> headers,
            byte[] data,
            TimeSpan timeout,
            CancellationToken cancel);
    }

    /// <summary>An answer of NATS.</summary>
    public sealed class NatsAnswer
    {
        public NatsAnswer(IReadOnlyDictionary<string, string> headers, byte[] data)
        {
            Headers = headers;
            Data = data;
        }

        public IReadOnlyDictionary<string, string> Headers { get; }

        public byte[] Data { get; }
    }

    /// <summary>Nobody listens to a subject.</summary>
    public sealed class NoRespondersException : Exception
    {
        public NoRespondersException()
            : base("nobody listens to the subject")
        {
        }
    }
}
