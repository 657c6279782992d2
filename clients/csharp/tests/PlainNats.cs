using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ranktree.Tests
{
    /// <summary>
    /// As much of NATS's protocol as the tests need, because NATS.Net cannot be had without NuGet. It is no
    /// client for games: one thread reads, and a lost connection is made anew by the next request.
    /// </summary>
    internal sealed class PlainNats : INatsRequests, IDisposable
    {
        private readonly int port;
        private readonly string user;
        private readonly string inbox;
        private readonly ConcurrentDictionary<string, TaskCompletionSource<NatsAnswer>> asked =
            new ConcurrentDictionary<string, TaskCompletionSource<NatsAnswer>>();
        private TcpClient connection;
        private int number;

        public PlainNats(int port, string user = null)
        {
            this.port = port;
            this.user = user;
            // A user may read answers by an inbox of its own alone.
            inbox = (user == null ? "_INBOX." : $"_INBOX.{user}.") + Guid.NewGuid().ToString("N");
        }

        public void Dispose()
        {
            lock (asked)
            {
                connection?.Close();
            }
        }

        public async Task<NatsAnswer> RequestAsync(
            string subject,
            IReadOnlyDictionary<string, string> headers,
            byte[] data,
            TimeSpan timeout,
            CancellationToken cancel)
        {
            var reply = $"{inbox}.{Interlocked.Increment(ref number)}";
            var answered = new TaskCompletionSource<NatsAnswer>(TaskCreationOptions.RunContinuationsAsynchronously);
            asked[reply] = answered;
            try
            {
                try
                {
                    Send(subject, reply, headers, data);
                }
                catch (Exception error) when (error is SocketException || error is IOException || error is ObjectDisposedException)
                {
                    // Whether it arrived is not known.
                }
                if (await Task.WhenAny(answered.Task, Task.Delay(timeout, cancel)) != answered.Task)
                {
                    cancel.ThrowIfCancellationRequested();
                    throw new TimeoutException();
                }
                return await answered.Task;
            }
            finally
            {
                TaskCompletionSource<NatsAnswer> gone;
                asked.TryRemove(reply, out gone);
            }
        }

        private void Send(string subject, string reply, IReadOnlyDictionary<string, string> headers, byte[] data)
        {
            lock (asked)
            {
                if (connection == null)
                {
                    connection = new TcpClient("127.0.0.1", port);
                    var as_ = user == null ? "" : $",\"user\":\"{user}\",\"pass\":\"nats_{user.ToUpperInvariant()}\"";
                    var hello = $"CONNECT {{\"verbose\":false,\"headers\":true,\"no_responders\":true{as_}}}\r\n";
                    Write(connection, Encoding.ASCII.GetBytes($"{hello}SUB {inbox}.* 1\r\n"));
                    var made = connection;
                    new Thread(() => Read(made)) { IsBackground = true }.Start();
                }
                var head = "";
                if (headers.Count > 0)
                {
                    head = "NATS/1.0\r\n" + string.Concat(headers.Select(one => $"{one.Key}: {one.Value}\r\n")) + "\r\n";
                }
                var sizes = headers.Count > 0 ? $"{head.Length} {head.Length + data.Length}" : $"{data.Length}";
                var command = headers.Count > 0 ? "HPUB" : "PUB";
                var first = Encoding.ASCII.GetBytes($"{command} {subject} {reply} {sizes}\r\n{head}");
                Write(connection, first.Concat(data).Concat(new[] { (byte)'\r', (byte)'\n' }).ToArray());
            }
        }

        private void Write(TcpClient to, byte[] bytes)
        {
            try
            {
                to.GetStream().Write(bytes, 0, bytes.Length);
            }
            catch (Exception)
            {
                connection = null;
                throw;
            }
        }

        private void Read(TcpClient from)
        {
            try
            {
                var stream = new BufferedStream(from.GetStream());
                while (true)
                {
                    var words = Line(stream).Split(' ');
                    if (words[0] == "PING")
                    {
                        lock (asked)
                        {
                            Write(from, Encoding.ASCII.GetBytes("PONG\r\n"));
                        }
                    }
                    if (words[0] != "MSG" && words[0] != "HMSG")
                    {
                        continue;
                    }
                    var all = Exactly(stream, int.Parse(words.Last()) + 2);
                    var headSize = words[0] == "HMSG" ? int.Parse(words[words.Length - 2]) : 0;
                    var head = Encoding.UTF8.GetString(all, 0, headSize).Split(new[] { "\r\n" }, StringSplitOptions.RemoveEmptyEntries);
                    TaskCompletionSource<NatsAnswer> answered;
                    if (!asked.TryGetValue(words[1], out answered))
                    {
                        continue;
                    }
                    if (headSize > 0 && head[0].StartsWith("NATS/1.0 503"))
                    {
                        answered.TrySetException(new NoRespondersException());
                        continue;
                    }
                    var headers = head.Skip(1).ToDictionary(one => one.Split(':')[0], one => one.Substring(one.IndexOf(':') + 1).Trim());
                    answered.TrySetResult(new NatsAnswer(headers, all.Skip(headSize).Take(all.Length - headSize - 2).ToArray()));
                }
            }
            catch (Exception)
            {
                lock (asked)
                {
                    from.Close();
                    if (connection == from)
                    {
                        connection = null;
                    }
                }
            }
        }

        private static string Line(System.IO.Stream stream)
        {
            var line = new List<byte>();
            while (true)
            {
                var one = stream.ReadByte();
                if (one < 0)
                {
                    throw new EndOfStreamException();
                }
                if (one == '\n')
                {
                    return Encoding.UTF8.GetString(line.ToArray()).TrimEnd('\r');
                }
                line.Add((byte)one);
            }
        }

        private static byte[] Exactly(System.IO.Stream stream, int count)
        {
            var all = new byte[count];
            for (var at = 0; at < count;)
            {
                var read = stream.Read(all, at, count - at);
                at += read > 0 ? read : throw new EndOfStreamException();
            }
            return all;
        }
    }
}
