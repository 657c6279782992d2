using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using Newtonsoft.Json.Linq;

namespace Ranktree
{
    /// <summary>Anything that this package throws about the service.</summary>
    public class RanktreeException : Exception
    {
        public RanktreeException(string message, Exception inner = null)
            : base(message, inner)
        {
        }
    }

    /// <summary>No answer came.</summary>
    public sealed class ConnectionFailedException : RanktreeException
    {
        public ConnectionFailedException(string message, bool mayBeApplied, Exception inner = null)
            : base(message, inner)
        {
            MayBeApplied = mayBeApplied;
        }

        /// <summary>
        /// The request was a write and may have reached the service. Send it again with the `Version` it had,
        /// before later writes of the member: then it counts once.
        /// </summary>
        public bool MayBeApplied { get; }
    }

    /// <summary>The service refused a request, or could not do it (RFC 9457).</summary>
    public class ProblemException : RanktreeException
    {
        internal ProblemException(int status, JObject problem)
            : base($"{status} {Word(problem, "code", "unknown")}: {Word(problem, "detail", "the answer says no more")}")
        {
            Status = status;
            Code = Word(problem, "code", "unknown");
            Detail = Word(problem, "detail", "the answer says no more");
            Problem = problem;
        }

        public int Status { get; }

        /// <summary>Stable, and for programs: one of `Codes`.</summary>
        public string Code { get; }

        /// <summary>For people.</summary>
        public string Detail { get; }

        /// <summary>The whole answer, with fields that only some problems have.</summary>
        public JObject Problem { get; }

        /// <summary>When to try again, if the service said so.</summary>
        public TimeSpan? RetryAfter { get; internal set; }

        /// <summary>Names the jobs of a request that were stored although others failed.</summary>
        public string Token => (string)(Problem["token"] as JValue);

        /// <summary>The outcome of each job of a request that failed in part.</summary>
        public IReadOnlyList<JobResult> Results => List<JobResult>("results");

        internal IReadOnlyList<T> List<T>(string name) =>
            Problem[name] is JArray found ? found.ToObject<List<T>>(Json.Serializer) : new List<T>();

        private static string Word(JObject problem, string name, string otherwise) =>
            problem[name] is JValue found && found.Type == JTokenType.String ? (string)found : otherwise;

        /// <summary>The exception for an answer that is not a success.</summary>
        internal static ProblemException Of(int status, string body, string retryAfter = null)
        {
            var problem = Json.TryRead<JToken>(body) as JObject ?? new JObject();
            var error = Of(status, problem);
            if (int.TryParse(retryAfter, NumberStyles.None, CultureInfo.InvariantCulture, out var seconds))
            {
                error.RetryAfter = TimeSpan.FromSeconds(seconds);
            }
            return error;
        }

        private static ProblemException Of(int status, JObject problem)
        {
            switch (status)
            {
                case 400:
                case 413:
                case 422:
                    return new InvalidException(status, problem);
                case 401:
                case 403:
                    return new AccessException(status, problem);
                case 404:
                    return new NotFoundException(status, problem);
                case 409:
                    return new RejectedException(status, problem);
                case 503:
                    return new UnavailableException(status, problem);
                case 504:
                    return new NotYetAppliedException(status, problem);
                default:
                    return new ProblemException(status, problem);
            }
        }
    }

    /// <summary>400, 413, 422: the request can never succeed as it is. Nothing was applied.</summary>
    public sealed class InvalidException : ProblemException
    {
        internal InvalidException(int status, JObject problem)
            : base(status, problem)
        {
        }

        /// <summary>Which jobs of a request are invalid.</summary>
        public IReadOnlyList<InvalidJob> Errors => List<InvalidJob>("errors");
    }

    /// <summary>401, 403: the bearer token is missing or unknown, or does not allow this.</summary>
    public sealed class AccessException : ProblemException
    {
        internal AccessException(int status, JObject problem)
            : base(status, problem)
        {
        }
    }

    /// <summary>404: no such board, member or position.</summary>
    public sealed class NotFoundException : ProblemException
    {
        internal NotFoundException(int status, JObject problem)
            : base(status, problem)
        {
        }
    }

    /// <summary>409: the state refuses it: a stale version, a score out of range, and others.</summary>
    public sealed class RejectedException : ProblemException
    {
        internal RejectedException(int status, JObject problem)
            : base(status, problem)
        {
        }
    }

    /// <summary>
    /// 503: overloaded, or a shard that no node answers for. With the code `commit_unknown` a write may or
    /// may not be applied.
    /// </summary>
    public sealed class UnavailableException : ProblemException
    {
        internal UnavailableException(int status, JObject problem)
            : base(status, problem)
        {
        }

        /// <summary>The shards that no node answers for.</summary>
        public IReadOnlyList<long> Shards => Problem["shards"] is JArray found
            ? found.Where(shard => shard.Type == JTokenType.Integer).Select(shard => (long)shard).ToList()
            : new List<long>();
    }

    /// <summary>504: the writes that `After` names were not applied in time.</summary>
    public sealed class NotYetAppliedException : ProblemException
    {
        internal NotYetAppliedException(int status, JObject problem)
            : base(status, problem)
        {
        }
    }

    /// <summary>A message was not acknowledged by NATS.</summary>
    public class PublishException : RanktreeException
    {
        internal PublishException(string message, string messageId, bool mayBeStored, Exception inner = null)
            : base(message, inner)
        {
            MessageId = messageId;
            MayBeStored = mayBeStored;
        }

        /// <summary>
        /// The `Nats-Msg-Id` that follows from the one you gave: publish the same jobs under the same id to go
        /// on. It is null if you gave none. Then the jobs may have shared a message with others, and whether
        /// they may be published again is for their `Version` to say.
        /// </summary>
        public string MessageId { get; }

        /// <summary>
        /// False only if the message was refused each time, or not sent, and so is not stored.
        /// </summary>
        public bool MayBeStored { get; }
    }

    /// <summary>
    /// Some messages of a `PublishManyAsync` were not acknowledged. Its `MessageId` is the one that you gave.
    /// </summary>
    public sealed class PublishManyException : PublishException
    {
        internal PublishManyException(IReadOnlyList<PublishException> errors, string messageId, string token)
            : base(
                $"{errors.Count} messages: {errors[0].Message}",
                messageId,
                errors.Any(error => error.MayBeStored),
                errors[0])
        {
            Errors = errors;
            Token = token;
        }

        /// <summary>Of each of those messages, with its own id.</summary>
        public IReadOnlyList<PublishException> Errors { get; }

        /// <summary>Names the other messages, or is null.</summary>
        public string Token { get; }
    }
}
