using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Reflection;
using System.Threading.Tasks;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Ranktree.Tests
{
    /// <summary>
    /// Runs every method of the tests' classes. It needs no framework, because none can be had without
    /// NuGet.
    /// </summary>
    internal static class Runner
    {
        private static int Main(string[] arguments)
        {
            var failed = 0;
            var of = new[] { typeof(TokenTests), typeof(HttpTests), typeof(LiveTests), typeof(PublisherTests), typeof(GameTests), typeof(ReadmeTests) };
            const BindingFlags Own = BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly;
            foreach (var test in of.SelectMany(type => type.GetMethods(Own)))
            {
                if (arguments.Length > 0 && !test.Name.Contains(arguments[0]))
                {
                    continue;
                }
                var clock = Stopwatch.StartNew();
                try
                {
                    var running = (Task)test.Invoke(Activator.CreateInstance(test.DeclaringType), null);
                    if (!running.Wait(TimeSpan.FromMinutes(3)))
                    {
                        throw new TimeoutException("the test did not end");
                    }
                    Console.WriteLine($"ok      {test.Name} {clock.Elapsed.TotalSeconds:0.0} s");
                }
                catch (Exception error)
                {
                    failed++;
                    Console.WriteLine($"FAILED  {test.Name}: {(error as AggregateException)?.InnerException ?? error}");
                }
            }
            Console.WriteLine(failed == 0 ? "all is well" : $"{failed} failed");
            Console.Out.Flush();
            Environment.Exit(failed == 0 ? 0 : 1);
            return 0;
        }
    }

    internal sealed class GameTests
    {
        public async Task TheGamePlaysAndEveryPointCounts()
        {
            using (var world = await PublisherTests.World.StartAsync())
            {
                await world.Client.DropAsync("arena");
                // Twice: a game that is started again goes on.
                for (var run = 0; run < 2; run++)
                {
                    var how = new ProcessStartInfo("mono", $".tools/game.exe {world.Node.Url} 30")
                    {
                        UseShellExecute = false, RedirectStandardOutput = true,
                    };
                    using (var game = Process.Start(how))
                    {
                        var told = await game.StandardOutput.ReadToEndAsync();
                        game.WaitForExit();
                        Assert.True(game.ExitCode == 0 && told.Contains("The best of"), told);
                    }
                }
                Assert.True((await world.Client.StatusAsync()).Shards.All(shard => shard.Rejects == 0), "no reject");
            }
        }
    }

    internal static class Assert
    {
        /// <summary>Compares as JSON, so that lists and scores are compared by what they hold.</summary>
        public static void Equal(object expected, object found)
        {
            var (first, second) = (JsonConvert.SerializeObject(expected), JsonConvert.SerializeObject(found));
            if (first != second)
            {
                throw new Exception($"expected {first}, found {second}");
            }
        }

        public static void True(bool isSo, string what = "a condition")
        {
            if (!isSo)
            {
                throw new Exception(what + " does not hold");
            }
        }

        public static async Task<T> ThrowsAsync<T>(Func<Task> work)
            where T : Exception
        {
            try
            {
                await work();
            }
            catch (T error)
            {
                return error;
            }
            throw new Exception($"no {typeof(T).Name}");
        }
    }

    internal sealed class TokenTests
    {
        public Task HashIsThatOfTheContract()
        {
            var vectors = new Dictionary<string, uint>
            {
                ["p42"] = 2517926281, ["alice"] = 2267157479, ["日本"] = 2670128721, [""] = 2166136261,
            };
            foreach (var one in vectors)
            {
                Assert.Equal(one.Value, Tokens.MemberHash(one.Key));
                Assert.Equal(one.Value % 3, Tokens.ShardOf(one.Key, 3));
            }
            return Task.FromResult(0);
        }

        public async Task LatestNamesTheGreatestSequenceOfEachShard()
        {
            Assert.Equal("0:12,2:0,10:3", Tokens.Latest("0:7", null, "10:3,0:12", "2:0"));
            Assert.Equal(null, Tokens.Latest(null, ""));
            foreach (var wrong in new[] { "0", "a:1", "0:-1", "0:+1", "0:1,", ":", "0: 1" })
            {
                await Assert.ThrowsAsync<ArgumentException>(() => Task.Run(() => Tokens.Latest(wrong)));
            }
        }
    }

    internal sealed class HttpTests
    {
        private static readonly PutMemberQuery Wait = new PutMemberQuery { Wait = "applied" };

        internal static async Task WithNodeAsync(Func<RanktreeClient, Task> work)
        {
            using (var node = await Server.NodeAsync("--shards 2"))
            using (var client = new RanktreeClient(node.Url))
            {
                await work(client);
            }
        }

        internal static async Task<string> FillAsync(RanktreeClient client, string board, params object[] scores)
        {
            var jobs = new List<Job>();
            for (var at = 0; at < scores.Length; at += 2)
            {
                jobs.Add(new Job { Board = board, Member = (string)scores[at], Score = Convert.ToInt64(scores[at + 1]) });
            }
            return (await client.WriteManyAsync(jobs)).Token;
        }

        internal static async Task<List<T>> AllAsync<T>(Pages<T> pages)
        {
            var found = new List<T>();
            while (await pages.MoveNextAsync())
            {
                found.Add(pages.Current);
            }
            Assert.True(!await pages.MoveNextAsync(), "the end stays the end");
            return found;
        }

        public Task AWriteIsReadBack() => WithNodeAsync(async client =>
        {
            await client.DefineAsync("written", new DefinitionInput { Policy = "best", Ties = "member" });
            var at = new DateTimeOffset(2026, 11, 20, 9, 59, 58, TimeSpan.FromHours(9)).AddTicks(1234560);
            var meta = new JObject { ["car"] = "mx5", ["when"] = "2026-11-20T09:59:58Z" };
            var job = new EntryInput { Score = 1200, At = at, Meta = meta };
            var written = await client.WriteAsync("written", "p42", job, Wait);
            Assert.True(written.Changed && written.Previous == null);
            var entry = await client.MemberAsync("written", "p42", new MemberQuery { After = written.Token });
            Assert.Equal(new object[] { new Score(1200), 1, 1 }, new object[] { entry.Score, entry.Rank, entry.Total });
            Assert.True(entry.UpdatedAt == at, $"{entry.UpdatedAt:o} is {at:o}");
            Assert.True(JToken.DeepEquals(entry.Meta, meta), $"{entry.Meta} is {meta}");
            Assert.True((await client.RemoveAsync("written", "p42")).Changed);
            var gone = await Assert.ThrowsAsync<NotFoundException>(() => client.MemberAsync("written", "p42"));
            Assert.Equal(Codes.UnknownMember, gone.Code);
        });

        public Task SeasonsAreManualOrFixed() => WithNodeAsync(async client =>
        {
            var windows = new[] { "all", "season" };
            await client.DefineAsync("league", new DefinitionInput { Windows = windows, Season = Season.Manual });
            var begin = new DateTimeOffset(2100, 1, 1, 0, 0, 0, TimeSpan.Zero);
            var opened = await client.OpenSeasonAsync("league", begin);
            Assert.True(opened.Season == "s1" && opened.Begin == begin);
            var conflict = await Assert.ThrowsAsync<RejectedException>(() => client.OpenSeasonAsync("league"));
            Assert.Equal(Codes.SeasonConflict, conflict.Code);
            Assert.True((await client.BoardAsync("league")).Season.IsManual);
            var season = new Season(new DateTimeOffset(2026, 11, 2, 0, 0, 0, TimeSpan.Zero), "15d");
            await client.DefineAsync("fixed", new DefinitionInput { Windows = windows, Season = season });
            var found = (await client.BoardAsync("fixed")).Season;
            Assert.True(found.Starts == season.Starts && found.Every == "15d");
        });

        public Task IdsOfMembersSurviveThePathAndLists() => WithNodeAsync(async client =>
        {
            var members = new[]
            {
                "a/b", "...", "日本", "with space", "%2F", "%2E", "?a=b&c", "#", "a+b", ":lookup", "é\\\"'", "a,b", "a/../b", "a/./b",
            };
            foreach (var member in members)
            {
                await client.WriteAsync("ids", member, new EntryInput { Score = 1 });
                Assert.Equal(member, (await client.MemberAsync("ids", member)).Member);
                var boards = await client.MemberBoardsAsync(member, new MemberBoardsQuery { Boards = new[] { "ids", "none" } });
                Assert.Equal(new[] { "none" }, boards.NotFound);
            }
            // What `Uri` cannot have in a path goes another way.
            await Assert.ThrowsAsync<ArgumentException>(() => client.MemberAsync("ids", ".."));
            await FillAsync(client, "ids", "..", 2);
            Assert.Equal("..", (await client.LookupAsync("ids", new[] { ".." })).Entries[0].Member);
            using (var watch = client.Live("ids", new LiveQuery { Members = members }))
            {
                Assert.True(await watch.MoveNextAsync());
                Assert.Equal(members, watch.Current.State.Members.Select(one => one.Member));
            }
            foreach (var member in members)
            {
                Assert.True((await client.RemoveEverywhereAsync(member)).Changed);
            }
            Assert.Equal(1, (await client.BoardAsync("ids")).Totals["all"]);
        });

        public Task IntegersAreExactUpTo64Bits() => WithNodeAsync(async client =>
        {
            var keys = new[] { new KeyInput { Name = "points", Min = -(1L << 62) }, new KeyInput { Name = "time" } };
            await client.DefineAsync("exact", new DefinitionInput { Keys = keys });
            var scores = new[]
            {
                new Score(long.MaxValue, long.MinValue), new Score((1L << 53) + 1, 5), new Score(1L << 53, 4),
            };
            foreach (var score in scores)
            {
                var meta = new Dictionary<string, object> { ["score"] = (1L << 60).ToString() };
                var job = new EntryInput { Score = score, Meta = meta, Version = ulong.MaxValue };
                var entry = (await client.WriteAsync("exact", score.ToString(), job, Wait)).Entry;
                Assert.True(entry.Score.Equals(score), "the score is exact");
                Assert.True(entry.Meta["score"].Type == JTokenType.String, "what callers keep there is theirs");
            }
            Assert.Equal(2, (await client.RankAsync("exact", scores[1])).RankValue);
            Assert.Equal(-(1L << 62), (await client.BoardAsync("exact")).Keys[0].Min);
            var all = await client.PercentilesAsync("exact", new[] { 100, 0.5 });
            Assert.True(all.PercentilesValue[0].Score.Equals(scores[0]));
            var count = await client.CountAsync("exact", new CountQuery { Min = (1L << 53) + 1 });
            Assert.Equal(new long?[] { 2, (1L << 53) + 1, null }, new[] { count.CountValue, count.Min, count.Max });
        });

        public Task PagesAreIteratedWithoutAGap() => WithNodeAsync(async client =>
        {
            var jobs = Enumerable.Range(0, 500).Select(n => new Job { Board = "pages", Member = $"p{n:000}", Score = n / 3 });
            await client.WriteManyAsync(jobs.ToList());
            var best = await AllAsync(client.AllTop("pages", new TopQuery { Limit = 37 }));
            Assert.Equal(Enumerable.Range(1, 500), best.Select(one => one.Position));
            var worst = await AllAsync(client.AllTop("pages", new TopQuery { Limit = 499, From = "bottom" }));
            Assert.Equal(Enumerable.Range(1, 500).Reverse(), worst.Select(one => one.Position));
            var middle = await AllAsync(client.AllRange("pages", new RangeQuery { Min = 10, Max = 20, Limit = 7 }));
            Assert.Equal(33, middle.Count);
            Assert.Equal(new[] { "pages" }, (await AllAsync(client.AllBoards())).Select(one => one.Board));
            Assert.Equal(new[] { "pages" }, (await AllAsync(client.AllMemberBoards("p007"))).Select(one => one.Board));
            await Assert.ThrowsAsync<NotFoundException>(() => AllAsync(client.AllTop("nothing")));
        });

        public Task EveryReadAnswers() => WithNodeAsync(async client =>
        {
            var token = await FillAsync(client, "reads", "alice", 30, "bob", 20, "carol", 20, "dave", 10);
            var page = await client.TopAsync("reads", new TopQuery { Limit = 2, After = token });
            Assert.Equal(new[] { "alice", "bob" }, page.Entries.Select(one => one.Member));
            Assert.Equal(new[] { 2, 4 }, (await client.PositionsAsync("reads", 3)).Entries.Select(one => one.Rank));
            var group = await client.LookupAsync("reads", new[] { "dave", "alice", "nobody" });
            Assert.Equal(new[] { 1, 2 }, group.Entries.Select(one => one.GroupRank));
            Assert.Equal(new[] { "nobody" }, group.NotFound);
            var ranks = await client.RanksAsync("reads", new Score[] { 31, 20, 0 });
            Assert.Equal(new[] { 1, 2, 5 }, ranks.RanksValue.Select(one => one.Rank));
            var place = await client.ScoreAsync("reads", new ScoreQuery { Rank = 2 });
            Assert.True((long)place.Score == 20 && place.Tied == 2);
            var spread = await client.HistogramAsync("reads", new HistogramQuery { Edges = new long[] { 0, 15, 25 } });
            Assert.Equal(new[] { 1, 2 }, spread.Buckets.Select(one => one.Count));
            var near = await client.AroundAsync("reads", "dave", new AroundQuery { Above = 1, Below = 0 });
            Assert.Equal(2, near.Entries.Count);
            Assert.Equal(1, (await client.TrimAsync("reads", new TrimInput { PositionsBeyond = 3 })).Removed);
            Assert.Equal(3, (await client.ClearAsync("reads")).Removed);
            Assert.True((await client.DropAsync("reads")).Dropped);
            var status = await client.StatusAsync();
            Assert.True(status.Ready && status.Shards.Count == 2);
        });

        public Task ProblemsBecomeExceptions() => WithNodeAsync(async client =>
        {
            var keys = new[] { new KeyInput { Name = "points", Min = 0, Max = 100 } };
            await client.DefineAsync("bounded", new DefinitionInput { Keys = keys });
            Func<long, ulong?, Task> write = (score, version) =>
                client.WriteAsync("bounded", "p42", new EntryInput { Score = score, Version = version });
            Assert.Equal(Codes.OutOfRange, (await Assert.ThrowsAsync<RejectedException>(() => write(101, null))).Code);
            await write(1, 7);
            Assert.Equal(Codes.StaleVersion, (await Assert.ThrowsAsync<RejectedException>(() => write(1, 7))).Code);
            var invalid = await Assert.ThrowsAsync<InvalidException>(() => FillAsync(client, "bounded", "p1", 1, "", 1));
            Assert.True(invalid.Errors.Count == 1 && invalid.Errors[0].Index == 1 && invalid.Errors[0].Code == Codes.BadMember);
            var late = new MemberQuery { After = "0:1000000", TimeoutMs = 1 };
            await Assert.ThrowsAsync<NotYetAppliedException>(() => client.MemberAsync("bounded", "p42", late));
            var rejects = await AllAsync(client.AllRejects(new RejectsQuery { Limit = 1 }));
            Assert.Equal(new[] { Codes.StaleVersion, Codes.OutOfRange }, rejects.Select(one => one.Reason));
        });

        public async Task NoNodeIsToldFromNoAnswer()
        {
            var job = new EntryInput { Score = 1 };
            using (var client = new RanktreeClient($"http://127.0.0.1:{Servers.FreePort()}"))
            {
                var nobody = await Assert.ThrowsAsync<ConnectionFailedException>(() => client.WriteAsync("arena", "p42", job));
                Assert.True(!nobody.MayBeApplied, "nothing was sent");
            }
            var silent = new System.Net.Sockets.TcpListener(System.Net.IPAddress.Loopback, 0);
            silent.Start();
            var options = new RanktreeOptions { Timeout = TimeSpan.FromMilliseconds(300), Retries = 0 };
            using (var client = new RanktreeClient($"http://{silent.LocalEndpoint}", options))
            {
                var unknown = await Assert.ThrowsAsync<ConnectionFailedException>(() => client.WriteAsync("arena", "p42", job));
                Assert.True(unknown.MayBeApplied, "it may be applied");
                var read = await Assert.ThrowsAsync<ConnectionFailedException>(() => client.MemberAsync("arena", "p42"));
                Assert.True(!read.MayBeApplied, "a read is not applied");
                var cancel = new System.Threading.CancellationTokenSource(50).Token;
                await Assert.ThrowsAsync<OperationCanceledException>(() => client.MemberAsync("arena", "p42", null, cancel));
            }
            silent.Stop();
        }

        public async Task WhatIsSentAgain()
        {
            var cases = new[]
            {
                new { Code = 503, Body = "{'code':'overloaded','detail':''}", Write = 2, Read = 2 },
                // Nobody knows what became of it, so that it is for the caller to decide.
                new { Code = 503, Body = "{'code':'commit_unknown','detail':''}", Write = 1, Read = 1 },
                new { Code = 503, Body = "{'code':'overloaded','detail':'','token':'0:1'}", Write = 1, Read = 2 },
                new { Code = 503, Body = "{'code':'shard_unavailable','detail':'','shards':[1]}", Write = 1, Read = 2 },
                new { Code = 500, Body = "{'code':'internal','detail':''}", Write = 1, Read = 1 },
                new { Code = 200, Body = "no JSON", Write = 1, Read = 1 },
            };
            foreach (var one in cases)
            {
                foreach (var isWrite in new[] { true, false })
                {
                    var told = new Told(one.Code, one.Body.Replace('\'', '"'));
                    var options = new RanktreeOptions { Bearer = "rkt_abc", Http = new System.Net.Http.HttpClient(told) };
                    var client = new RanktreeClient(options: options);
                    try
                    {
                        await (isWrite
                            ? (Task)client.WriteAsync("arena", "p42", new EntryInput { Score = 1 })
                            : client.StatusAsync());
                    }
                    catch (ProblemException)
                    {
                    }
                    Assert.True(told.Asked == (isWrite ? one.Write : one.Read), $"{one.Body} {isWrite} {told.Asked}");
                    Assert.Equal("Bearer rkt_abc", told.Bearer);
                }
            }
        }

        private sealed class Told : System.Net.Http.HttpMessageHandler
        {
            private readonly int first;
            private readonly string body;

            public Told(int first, string body)
            {
                this.first = first;
                this.body = body;
            }

            public int Asked { get; private set; }

            public string Bearer { get; private set; }

            protected override Task<System.Net.Http.HttpResponseMessage> SendAsync(
                System.Net.Http.HttpRequestMessage request, System.Threading.CancellationToken cancel)
            {
                Asked++;
                Bearer = request.Headers.Authorization.ToString();
                var status = (System.Net.HttpStatusCode)(Asked == 1 ? first : 200);
                var answer = new System.Net.Http.HttpResponseMessage(status);
                answer.Content = new System.Net.Http.StringContent(Asked == 1 ? body : "{\"token\":\"0:1\"}");
                answer.Headers.Add("Retry-After", "0");
                return Task.FromResult(answer);
            }
        }
    }
}
