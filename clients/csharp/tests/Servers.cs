using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using System.Threading.Tasks;

namespace Ranktree.Tests
{
    /// <summary>
    /// Real servers for the tests: a nats-server, nodes, and a connection that loses answers.
    /// </summary>
    internal static class Servers
    {
        // As long as a machine may take that does much else.
        public static readonly TimeSpan Limit = TimeSpan.FromSeconds(60);

        public static string Variable(string name) =>
            Environment.GetEnvironmentVariable(name) ?? throw new InvalidOperationException("set " + name);

        public static string Folder()
        {
            var folder = Path.Combine(Path.GetTempPath(), "ranktree-csharp-" + Guid.NewGuid().ToString("N"));
            Directory.CreateDirectory(folder);
            return folder;
        }

        public static int FreePort()
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            var port = ((IPEndPoint)listener.LocalEndpoint).Port;
            listener.Stop();
            return port;
        }

        /// <summary>Waits for a state.</summary>
        public static async Task UntilAsync(string what, Func<Task<bool>> isSo)
        {
            var clock = Stopwatch.StartNew();
            while (!await isSo())
            {
                if (clock.Elapsed > Limit)
                {
                    throw new Exception($"{what}: not within {Limit}");
                }
                await Task.Delay(20);
            }
        }

        public static Task UntilAsync(string what, Func<bool> isSo) => UntilAsync(what, () => Task.FromResult(isSo()));

        public static bool Listens(int port)
        {
            try
            {
                using (new TcpClient("127.0.0.1", port))
                {
                    return true;
                }
            }
            catch (SocketException)
            {
                return false;
            }
        }
    }

    /// <summary>A program, which may be killed and started again with the same data and port.</summary>
    internal sealed class Server : IDisposable
    {
        private readonly string program;
        private readonly string flags;
        private readonly string folder;
        private Process process;

        private Server(string program, int port, string folder, string flags)
        {
            this.program = program;
            this.flags = flags;
            this.folder = folder;
            Port = port;
        }

        public int Port { get; }

        public string Url => $"http://127.0.0.1:{Port}";

        public string Nats => $"nats://127.0.0.1:{Port}";

        public static async Task<Server> NatsAsync(string more = "")
        {
            var port = Servers.FreePort();
            var folder = Servers.Folder();
            var flags = $"-js -a 127.0.0.1 -p {port} -sd {folder}/nats {more}";
            var made = new Server(Servers.Variable("NATS_SERVER_BIN"), port, folder, flags);
            await made.StartAsync();
            return made;
        }

        public static async Task<Server> NodeAsync(string more)
        {
            var port = Servers.FreePort();
            var folder = Servers.Folder();
            var flags = $"serve --listen 127.0.0.1:{port} --data-dir {folder}/data {more}";
            var made = new Server(Servers.Variable("RANKTREE_BIN"), port, folder, flags);
            await made.StartAsync();
            return made;
        }

        public async Task StartAsync()
        {
            var how = new ProcessStartInfo(program, flags)
            {
                UseShellExecute = false,
                RedirectStandardOutput = true,
                RedirectStandardError = true,
            };
            process = Process.Start(how);
            process.OutputDataReceived += (_, line) => { };
            process.ErrorDataReceived += (_, line) => { };
            process.BeginOutputReadLine();
            process.BeginErrorReadLine();
            await Servers.UntilAsync(program + " listens", () => process.HasExited
                ? throw new Exception($"{program} {flags} ended")
                : Servers.Listens(Port));
        }

        /// <summary>kill -9: nothing is written, closed or said.</summary>
        public void Kill()
        {
            if (!process.HasExited)
            {
                process.Kill();
            }
            process.WaitForExit();
        }

        public void Dispose()
        {
            Kill();
            Directory.Delete(folder, true);
        }
    }

    /// <summary>
    /// Passes bytes on between clients and a server, and loses what the server says while it is deaf.
    /// </summary>
    internal sealed class Link : IDisposable
    {
        private readonly TcpListener listener = new TcpListener(IPAddress.Loopback, 0);
        private readonly List<TcpClient> ends = new List<TcpClient>();
        private readonly int server;
        private long lost;

        public Link(int server)
        {
            this.server = server;
            listener.Start();
            new Thread(Accept) { IsBackground = true }.Start();
        }

        public int Port => ((IPEndPoint)listener.LocalEndpoint).Port;

        public volatile bool IsDeaf;

        /// <summary>Bytes that the server said and the client did not hear.</summary>
        public long Lost => Interlocked.Read(ref lost);

        /// <summary>Ends all connections.</summary>
        public void Cut()
        {
            lock (ends)
            {
                ends.ForEach(end => end.Close());
                ends.Clear();
            }
        }

        public void Dispose()
        {
            listener.Stop();
            Cut();
        }

        private void Accept()
        {
            while (true)
            {
                TcpClient client = null;
                try
                {
                    client = listener.AcceptTcpClient();
                    var other = new TcpClient("127.0.0.1", server);
                    lock (ends)
                    {
                        ends.Add(client);
                        ends.Add(other);
                    }
                    new Thread(() => Pass(client, other, false)) { IsBackground = true }.Start();
                    new Thread(() => Pass(other, client, true)) { IsBackground = true }.Start();
                }
                catch (Exception)
                {
                    if (client == null)
                    {
                        return;
                    }
                    client.Close();
                }
            }
        }

        private void Pass(TcpClient from, TcpClient to, bool isAnswer)
        {
            var data = new byte[65536];
            try
            {
                for (int count; (count = from.GetStream().Read(data, 0, data.Length)) > 0;)
                {
                    if (isAnswer && IsDeaf)
                    {
                        Interlocked.Add(ref lost, count);
                    }
                    else
                    {
                        to.GetStream().Write(data, 0, count);
                    }
                }
            }
            catch (Exception)
            {
                // One of the two is gone, and so is the other then.
            }
            from.Close();
            to.Close();
        }
    }
}
