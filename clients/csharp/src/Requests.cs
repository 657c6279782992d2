using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Net.Sockets;
using System.Threading;
using System.Threading.Tasks;

namespace Ranktree
{
    public sealed partial class RanktreeClient
    {
        private readonly string url;
        private readonly string called;
        private readonly RanktreeOptions options;
        private readonly HttpClient http;

        /// <summary>A client of the node at an address.</summary>
        public RanktreeClient(string url = "http://127.0.0.1:8080", RanktreeOptions options = null)
        {
            if (!url.StartsWith("http://", StringComparison.Ordinal) && !url.StartsWith("https://", StringComparison.Ordinal))
            {
                throw new ArgumentException($"the address of a node begins with http:// or https://; got {url}");
            }
            this.url = url.TrimEnd('/');
            this.options = options ?? new RanktreeOptions();
            // Without what is secret in it.
            called = this.url.Split('@').Last();
            http = this.options.Http ?? Made();
        }

        public void Dispose()
        {
            if (options.Http == null)
            {
                http.Dispose();
            }
        }

        private static HttpClient Made()
        {
            var handler = new HttpClientHandler { AllowAutoRedirect = false, MaxConnectionsPerServer = 256 };
            return new HttpClient(handler) { Timeout = Timeout.InfiniteTimeSpan };
        }

        internal sealed class Request
        {
            public HttpMethod Method { get; set; }

            public string Route { get; set; }

            public List<KeyValuePair<string, string>> Query { get; set; }

            public byte[] Body { get; set; }

            public bool IsRead => Method == HttpMethod.Get
                || Route.EndsWith(":lookup", StringComparison.Ordinal)
                || Route.EndsWith("/ranks:of", StringComparison.Ordinal);

            /// <summary>
            /// Whether a request that was refused may be sent again as it is. A write may be only if the
            /// service says that it is overloaded, and has stored no part of it.
            /// </summary>
            public bool MayRepeat(ProblemException error)
            {
                if (error.Status != 503)
                {
                    return false;
                }
                return IsRead
                    ? error.Code == Codes.Overloaded || error.Code == Codes.ShardUnavailable
                    : error.Code == Codes.Overloaded && error.Token == null && error.Results.Count == 0;
            }

            /// <summary>How long a read may wait on the service's side, for what `After` names.</summary>
            public TimeSpan Waits
            {
                get
                {
                    var given = Query.FirstOrDefault(one => one.Key == "timeout_ms").Value ?? "5000";
                    return Query.Any(one => one.Key == "after")
                        ? TimeSpan.FromMilliseconds(long.Parse(given, CultureInfo.InvariantCulture))
                        : TimeSpan.Zero;
                }
            }
        }

        private async Task<T> SendAsync<T>(
            HttpMethod method, string route, CancellationToken cancel, object body = null, params object[] queries)
            where T : class
        {
            var request = new Request { Method = method, Route = route, Query = Json.Query(queries) };
            request.Body = body == null ? null : Json.Write(body);
            for (var number = 0; ; number++)
            {
                var isLast = number >= options.Retries;
                var pause = Pause.After(number);
                try
                {
                    return await OnceAsync<T>(request, cancel).ConfigureAwait(false);
                }
                catch (ProblemException error) when (!isLast && request.MayRepeat(error))
                {
                    pause = error.RetryAfter ?? pause;
                    pause = pause < Pause.Longest ? pause : Pause.Longest;
                }
                catch (ConnectionFailedException error) when (!isLast && !error.MayBeApplied)
                {
                }
                await Task.Delay(pause, cancel).ConfigureAwait(false);
            }
        }

        private async Task<T> OnceAsync<T>(Request request, CancellationToken cancel)
            where T : class
        {
            using (var limit = CancellationTokenSource.CreateLinkedTokenSource(cancel))
            {
                limit.CancelAfter(options.Timeout + request.Waits);
                using (var answer = await OpenAsync(request, null, HttpCompletionOption.ResponseContentRead, cancel, limit.Token)
                    .ConfigureAwait(false))
                {
                    var text = await TextAsync(request, answer, cancel).ConfigureAwait(false);
                    var value = answer.IsSuccessStatusCode ? Json.TryRead<T>(text) : null;
                    return value ?? throw Problem(answer, text);
                }
            }
        }

        private async Task<string> TextAsync(Request request, HttpResponseMessage answer, CancellationToken cancel)
        {
            try
            {
                return await answer.Content.ReadAsStringAsync().ConfigureAwait(false);
            }
            catch (Exception error) when (IsOfConnection(error))
            {
                throw NoAnswer(request, !request.IsRead, error, cancel);
            }
        }

        internal static ProblemException Problem(HttpResponseMessage answer, string text)
        {
            var after = answer.Headers.TryGetValues("Retry-After", out var values) ? values.FirstOrDefault() : null;
            return ProblemException.Of((int)answer.StatusCode, text, after);
        }

        /// <summary>Sends a request once, and returns its answer, whatever it is.</summary>
        internal async Task<HttpResponseMessage> OpenAsync(
            Request request, string lastEventId, HttpCompletionOption how, CancellationToken cancel, CancellationToken limit)
        {
            var query = string.Join("&", request.Query.Select(one => one.Key + "=" + one.Value));
            var address = new Uri(url + request.Route + (query.Length > 0 ? "?" + query : ""));
            using (var message = new HttpRequestMessage(request.Method, address))
            {
                message.Headers.ExpectContinue = false;
                if (options.Bearer != null)
                {
                    message.Headers.Authorization = new AuthenticationHeaderValue("Bearer", options.Bearer);
                }
                if (lastEventId != null)
                {
                    message.Headers.TryAddWithoutValidation("Last-Event-ID", lastEventId);
                }
                if (request.Body != null)
                {
                    message.Content = new ByteArrayContent(request.Body);
                    message.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
                }
                try
                {
                    return await http.SendAsync(message, how, limit).ConfigureAwait(false);
                }
                catch (Exception error) when (IsOfConnection(error))
                {
                    throw NoAnswer(request, !request.IsRead && !IsUnsent(error), error, cancel);
                }
            }
        }

        internal static bool IsOfConnection(Exception error) =>
            error is HttpRequestException || error is OperationCanceledException || error is IOException
            || error is WebException || error is SocketException || error is ObjectDisposedException;

        /// <summary>No answer came; or the caller has cancelled, which it is told as it expects.</summary>
        internal Exception NoAnswer(Request request, bool mayBeApplied, Exception error, CancellationToken cancel)
        {
            if (cancel.IsCancellationRequested)
            {
                return new OperationCanceledException(cancel);
            }
            var why = error is OperationCanceledException ? "not in time" : error.GetBaseException().Message;
            var told = $"{called} did not answer {request.Method} {request.Route}: {why}";
            return new ConnectionFailedException(told, mayBeApplied, error);
        }

        /// <summary>Nothing was sent if there was no connection to send it on.</summary>
        private static bool IsUnsent(Exception error)
        {
            for (var one = error; one != null; one = one.InnerException)
            {
                if (one is WebException web
                    && (web.Status == WebExceptionStatus.ConnectFailure || web.Status == WebExceptionStatus.NameResolutionFailure))
                {
                    return true;
                }
                if (one is SocketException socket
                    && (socket.SocketErrorCode == SocketError.ConnectionRefused || socket.SocketErrorCode == SocketError.HostNotFound))
                {
                    return true;
                }
            }
            return false;
        }
    }
}
