using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json.Linq;

namespace Ranktree.Tests
{
    internal sealed class PublisherTests
    {
        private static readonly Dictionary<string, string> NoHeaders = new Dictionary<string, string>();

        /// <summary>A nats-server, and a node with three shards that reads from it.</summary>
        internal sealed class World : IDisposable
        {
            public Server Nats { get; set; }

            public Server Node { get; set; }

            public RanktreeClient Client { get; set; }

            public void Dispose()
            {
                Client.Dispose();
                Node.Dispose();
                Nats.Dispose();
            }

            public static async Task<World> StartAsync()
            {
                var nats = await Server.NatsAsync();
                var node = await Server.NodeAsync($"--nats {nats.Nats} --shards 3");
                var world = new World { Nats = nats, Node = node, Client = new RanktreeClient(node.Url) };
                await Servers.UntilAsync("the node is ready", async () =>
                {
                    try
                    {
                        // A job of no board waits for its definition, and a token does not.
                        await world.Client.DefineAsync("arena");
                        return (await world.Client.StatusAsync()).Ready;
                    }
                    catch (RanktreeException)
                    {
                        return false;
                    }
                });
                return world;
            }

            public async Task<List<long>> LastSequencesAsync()
            {
                var found = new List<long>();
                using (var plain = new PlainNats(Nats.Port))
                {
                    for (var shard = 0; shard < 3; shard++)
                    {
                        var subject = $"$JS.API.STREAM.INFO.RANKTREE_JOBS_{shard}";
                        var answer = await plain.RequestAsync(subject, NoHeaders, new byte[0], Servers.Limit, CancellationToken.None);
                        found.Add((long)JObject.Parse(Encoding.UTF8.GetString(answer.Data)).SelectToken("state.last_seq"));
                    }
                }
                return found;
            }

            public async Task<long> ScoreAsync(string member, string token)
            {
                var query = new MemberQuery { After = token, TimeoutMs = 60000 };
                return (long)(await Client.MemberAsync("arena", member, query)).Score;
            }
        }

        private static Job Job(string member, long score = 1, string op = "incr") =>
            new Job { Board = "arena", Member = member, Score = score, Op = op };

        private static List<string> MembersOf(int shard, int count) =>
            Enumerable.Range(0, 1000).Select(n => "p" + n).Where(one => Tokens.ShardOf(one, 3) == shard).Take(count).ToList();

        private static async Task WithPublisherAsync(Func<World, Publisher, Task> work)
        {
            using (var world = await World.StartAsync())
            using (var plain = new PlainNats(world.Nats.Port))
            {
                var publisher = await Publisher.CreateAsync(plain);
                await work(world, publisher);
                await publisher.CloseAsync();
            }
        }

        public Task APublishedJobIsRankedAndAnIdCountsOnce() => WithPublisherAsync(async (world, publisher) =>
        {
            Assert.Equal(3, publisher.Shards);
            var token = await publisher.PublishAsync(Job("p42", 1200));
            Assert.True(token.StartsWith("1:"), token);
            Assert.Equal(1200, await world.ScoreAsync("p42", token));
            // An answer over HTTP is 202 there: a token, and nothing else.
            var accepted = await world.Client.WriteAsync("arena", "p42", new EntryInput { Score = 5, Op = "incr" });
            Assert.True(accepted.Token != null && accepted.Entry == null);
            Assert.Equal(1205, await world.ScoreAsync("p42", Tokens.Latest(token, accepted.Token)));
            var first = await publisher.PublishAsync(Job("alice"), "match-8841");
            Assert.Equal(first, await publisher.PublishAsync(Job("alice"), "match-8841"));
            Assert.Equal(1, await world.ScoreAsync("alice", first));
            var jobs = Enumerable.Range(0, 2500).Select(n => Job("m" + n)).ToList();
            var many = await publisher.PublishManyAsync(jobs, "match-8842");
            Assert.Equal(many, await publisher.PublishManyAsync(jobs, "match-8842"));
            var board = await world.Client.BoardAsync("arena", new BoardQuery { After = many });
            Assert.Equal(2502, board.Totals["all"]);
            Assert.Equal(1, (await world.Client.RankAsync("arena", 1)).Better);
        });

        public Task JobsOfTheSameMomentShareMessagesInTheirOrder() => WithPublisherAsync(async (world, publisher) =>
        {
            var before = await world.LastSequencesAsync();
            var tokens = await Task.WhenAll(Enumerable.Range(0, 7000)
                .Select(n => publisher.PublishAsync(Job("p" + n % 700, n, "set"))).ToList());
            var query = new TopQuery { Limit = 1000, After = Tokens.Latest(tokens) };
            var entries = (await world.Client.TopAsync("arena", query)).Entries;
            Assert.Equal(700, entries.Count);
            Assert.True(entries.All(one => (long)one.Score == 6300 + long.Parse(one.Member.Substring(1))), "the last one stands");
            var messages = (await world.LastSequencesAsync()).Zip(before, (last, first) => last - first).Sum();
            Assert.True(messages < 3500, $"{messages} messages for 7,000 jobs");
        });

        public Task AJobWithAnIdHasAMessageOfItsOwnAndListsWithoutOneShareThem() => WithPublisherAsync(async (world, publisher) =>
        {
            var before = (await world.LastSequencesAsync())[1];
            var member = MembersOf(1, 1)[0];
            var numbers = Enumerable.Range(0, 50).ToList();
            var tokens = await Task.WhenAll(numbers.Select(n => publisher.PublishAsync(Job(member), "match-" + n)).ToList());
            Assert.Equal(numbers.Select(n => $"1:{before + 1 + n}"), tokens);
            // As the documents say: one id for many jobs keeps them together.
            await publisher.PublishManyAsync(numbers.Select(_ => Job(member)).ToList(), "match-50");
            Assert.Equal(before + 51, (await world.LastSequencesAsync())[1]);
            var lists = Enumerable.Range(0, 400).Select(_ => publisher.PublishManyAsync(new[] { Job(member), Job(member) }));
            await Task.WhenAll(lists.ToList());
            // One for each list if they did not share.
            var messages = (await world.LastSequencesAsync())[1] - before - 51;
            Assert.True(messages < 200, $"{messages} messages for 400 lists");
        });

        public Task ArraysAreCutAtAThousandJobsAnd127KiB() => WithPublisherAsync(async (world, publisher) =>
        {
            var member = MembersOf(0, 1)[0];
            var jobs = new List<Job>();
            for (var number = 0; number < 2301; number++)
            {
                jobs.Add(Job(member));
                jobs[number].Meta = number < 300 ? new { text = new string('x', 900) } : null;
            }
            var before = (await world.LastSequencesAsync())[0];
            Assert.Equal(2301, await world.ScoreAsync(member, await publisher.PublishManyAsync(jobs)));
            var messages = (await world.LastSequencesAsync())[0] - before;
            Assert.True(messages <= 6, $"{messages} messages");
            var big = Job("p1");
            big.Meta = new { text = new string('x', 200000) };
            foreach (var wrong in new[] { big, Job(""), Job(new string('x', 257)), Job(null) })
            {
                await Assert.ThrowsAsync<ArgumentException>(() => publisher.PublishAsync(wrong));
            }
            foreach (var wrong in new[] { "", "é", "a\nb", new string('x', 513) })
            {
                await Assert.ThrowsAsync<ArgumentException>(() => publisher.PublishAsync(Job("p1"), wrong));
            }
        });

        // The node is killed between a publish, whose acknowledgement is lost, and its retry.
        public async Task ALostAcknowledgementAndAKilledNodeCountOnce()
        {
            using (var world = await World.StartAsync())
            using (var link = new Link(world.Nats.Port))
            using (var plain = new PlainNats(link.Port))
            {
                var before = await world.LastSequencesAsync();
                var publisher = await Publisher.CreateAsync(plain, new PublisherOptions { AckTimeout = TimeSpan.FromSeconds(1) });
                link.IsDeaf = true;
                var publishing = publisher.PublishAsync(Job("p42"), "match-8841-p42");
                await Servers.UntilAsync(
                    "the stream has the message", async () => (await world.LastSequencesAsync())[1] > before[1]);
                await Servers.UntilAsync("its acknowledgement is lost", () => link.Lost > 0);
                world.Node.Kill();
                var lost = link.Lost;
                // The publisher sends it again, and the server acknowledges again: that is lost as well.
                await Servers.UntilAsync("the first retry is lost", () => link.Lost > lost);
                Assert.True(!publishing.IsCompleted, "nothing was acknowledged");
                link.IsDeaf = false;
                var token = await publishing;
                await world.Node.StartAsync();
                await Servers.UntilAsync("it counts once", async () =>
                {
                    try
                    {
                        return await world.ScoreAsync("p42", token) == 1;
                    }
                    catch (UnavailableException)
                    {
                        return false;
                    }
                });
                using (var other = new PlainNats(world.Nats.Port))
                {
                    var again = await Publisher.CreateAsync(other);
                    Assert.Equal(token, await again.PublishAsync(Job("p42"), "match-8841-p42"));
                }
                Assert.Equal($"1:{before[1] + 1}", token);
                Assert.Equal(before[1] + 1, (await world.LastSequencesAsync())[1]);
            }
        }

        public async Task GivingUpAndCancellingSayWhatIsKnown()
        {
            using (var world = await World.StartAsync())
            using (var link = new Link(world.Nats.Port))
            using (var plain = new PlainNats(link.Port))
            {
                var options = new PublisherOptions
                {
                    AckTimeout = TimeSpan.FromMilliseconds(200), GiveUpAfter = TimeSpan.FromSeconds(1),
                };
                var publisher = await Publisher.CreateAsync(plain, options);
                link.IsDeaf = true;
                var unknown = await Assert.ThrowsAsync<PublishException>(() => publisher.PublishAsync(Job("p42"), "match-1"));
                Assert.True(unknown.MayBeStored && unknown.MessageId == "match-1");
                var two = new[] { Job("p42"), Job("alice") };
                var many = await Assert.ThrowsAsync<PublishManyException>(() => publisher.PublishManyAsync(two, "match-2"));
                Assert.True(many.Token == null && many.Errors.Count == 2 && many.MayBeStored);
                // What is behind a message that failed is not sent, so that no job overtakes another.
                var lots = Enumerable.Range(0, 1500).Select(_ => Job("p42")).ToList();
                many = await Assert.ThrowsAsync<PublishManyException>(() => publisher.PublishManyAsync(lots, "match-3"));
                Assert.Equal(new[] { true, false }, many.Errors.Select(one => one.MayBeStored));
                Assert.Equal(new[] { "match-3.1.0", "match-3.1.1" }, many.Errors.Select(one => one.MessageId));
                Assert.Equal("match-3", many.MessageId);
                // The server would take one job, published alone under the id of an array, for all of it.
                foreach (var shared in lots.Take(3).Select(one => publisher.PublishAsync(one)).ToList())
                {
                    unknown = await Assert.ThrowsAsync<PublishException>(() => shared);
                    Assert.True(unknown.MayBeStored && unknown.MessageId == null, "others share its message");
                }
                many = await Assert.ThrowsAsync<PublishManyException>(() => publisher.PublishManyAsync(lots));
                Assert.True(many.MessageId == null && many.Errors.All(one => one.MessageId == null), "there is no id");
                Assert.Equal(new[] { true, false }, many.Errors.Select(one => one.MayBeStored));
                link.IsDeaf = false;
                options.Prefix = "other";
                options.Shards = 2;
                var other = await Publisher.CreateAsync(plain, options);
                var nowhere = await Assert.ThrowsAsync<PublishException>(() => other.PublishAsync(Job("p42")));
                Assert.True(!nowhere.MayBeStored, "there is no such stream");

                var slow = await Publisher.CreateAsync(plain, new PublisherOptions { AckTimeout = TimeSpan.FromSeconds(1) });
                link.IsDeaf = true;
                var lost = link.Lost;
                var cancel = new CancellationTokenSource();
                var first = slow.PublishAsync(Job("p7"), null, cancel.Token);
                await Servers.UntilAsync("it is on its way", () => link.Lost > lost);
                var second = slow.PublishAsync(Job("p7", 10), null, cancel.Token);
                cancel.Cancel();
                Assert.True((await Assert.ThrowsAsync<PublishException>(() => first)).MayBeStored, "it is on its way");
                Assert.True(!(await Assert.ThrowsAsync<PublishException>(() => second)).MayBeStored, "it was not sent");
                link.IsDeaf = false;
                Assert.Equal(1, await world.ScoreAsync("p7", await slow.PublishAsync(Job("p7", 0))));
                await slow.CloseAsync();
                await Assert.ThrowsAsync<RanktreeException>(() => slow.PublishAsync(Job("p7")));
            }
        }

        public Task EveryJobCountsOnceWhateverIsKilled() => EveryJobCountsOnceAsync();

        private static async Task EveryJobCountsOnceAsync()
        {
            using (var world = await World.StartAsync())
            using (var link = new Link(world.Nats.Port))
            using (var plain = new PlainNats(link.Port))
            {
                var publisher = await Publisher.CreateAsync(
                    plain, new PublisherOptions { AckTimeout = TimeSpan.FromMilliseconds(500) });
                var writers = Enumerable.Range(0, 8).Select(_ => Task.Run(async () =>
                {
                    string token = null;
                    for (var number = 0; number < 200; number++)
                    {
                        token = Tokens.Latest(token, await publisher.PublishAsync(Job("p" + number % 20)));
                        await Task.Delay(5);
                    }
                    return token;
                })).ToList();
                for (var round = 0; round < 3; round++)
                {
                    await Task.Delay(200);
                    link.Cut();
                    await Task.Delay(200);
                    world.Nats.Kill();
                    await world.Nats.StartAsync();
                }
                var all = Tokens.Latest(await Task.WhenAll(writers));
                for (var number = 0; number < 20; number++)
                {
                    Assert.Equal(80, await world.ScoreAsync("p" + number, all));
                }
            }
        }

        public Task NodesWriteJobsAndAnswer() => WithPublisherAsync(async (world, publisher) =>
        {
            var members = MembersOf(2, 2);
            var written = await publisher.WriteAsync(new[] { Job(members[0], 1L << 60, "set"), Job(members[1], 5) });
            Assert.True((long)written.Results[0].Entry.Score == 1L << 60);
            var brief = await publisher.WriteAsync(new[] { Job(members[0]) }, true);
            Assert.True(brief.Results[0].Changed == true && brief.Results[0].Entry == null);
            var wrong = new Job { Board = "no board", Member = members[0], Score = 1 };
            var invalid = await Assert.ThrowsAsync<InvalidException>(() => publisher.WriteAsync(new[] { wrong }));
            Assert.Equal(0, invalid.Errors[0].Index);
            await Assert.ThrowsAsync<ArgumentException>(() => publisher.WriteAsync(new[] { Job("p42"), Job("alice") }));
            world.Node.Kill();
            await Servers.UntilAsync("the server knows that the node is gone", async () =>
            {
                try
                {
                    await publisher.WriteAsync(new[] { Job(members[0]) }, false, TimeSpan.FromSeconds(1));
                    return false;
                }
                catch (UnavailableException)
                {
                    return true;
                }
                catch (ConnectionFailedException error)
                {
                    Assert.True(error.MayBeApplied);
                    return false;
                }
            });
        });

        public async Task AGameWithTheLeastPermissionsPublishes()
        {
            foreach (var user in new[] { "NODE", "GAME", "REJECTS" })
            {
                Environment.SetEnvironmentVariable($"RANKTREE_{user}_PASSWORD", "nats_" + user);
            }
            Environment.SetEnvironmentVariable("RANKTREE_NATS_PASSWORD", "nats_NODE");
            var config = Path.Combine(Servers.Variable("RANKTREE_ROOT"), "deploy", "nats", "ranktree.conf");
            using (var nats = await Server.NatsAsync("-c " + config))
            using (var node = await Server.NodeAsync($"--nats {nats.Nats} --nats-user node --shards 3"))
            using (var client = new RanktreeClient(node.Url))
            using (var plain = new PlainNats(nats.Port, "game"))
            {
                await Servers.UntilAsync("the node is ready", async () =>
                {
                    try
                    {
                        await client.DefineAsync("arena");
                        return true;
                    }
                    catch (RanktreeException)
                    {
                        return false;
                    }
                });
                var publisher = await Publisher.CreateAsync(plain, new PublisherOptions { Shards = 3 });
                var token = await publisher.PublishAsync(Job("p42"), "match-1");
                Assert.Equal(token, await publisher.PublishAsync(Job("p42"), "match-1"));
                var query = new MemberQuery { After = token, TimeoutMs = 60000 };
                Assert.Equal(1, (long)(await client.MemberAsync("arena", "p42", query)).Score);
                var error = await Assert.ThrowsAsync<RanktreeException>(() => Publisher.CreateAsync(plain));
                Assert.True(error.Message.Contains("give Shards"), error.Message);
            }
            Environment.SetEnvironmentVariable("RANKTREE_NATS_PASSWORD", null);
        }
    }
}
