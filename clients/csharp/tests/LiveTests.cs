using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Ranktree.Tests
{
    internal sealed class LiveTests
    {
        /// <summary>
        /// Goes on to an update for which something holds. It must come before the time is up.
        /// </summary>
        private static async Task<LiveUpdate> UntilAsync(Watch watch, Func<LiveUpdate, bool> isSo)
        {
            using (var limit = new CancellationTokenSource(Servers.Limit))
            {
                do
                {
                    Assert.True(await watch.MoveNextAsync(limit.Token));
                }
                while (!isSo(watch.Current));
                return watch.Current;
            }
        }

        private static IEnumerable<string> Names(IEnumerable<ListedEntry> entries) => entries.Select(one => one.Member);

        private static async Task<string> PutAsync(RanktreeClient client, string board, string member, long score) =>
            (await client.WriteAsync(board, member, new EntryInput { Score = score })).Token;

        public Task AWatcherIsShownTheStateAndThenWhatChanges() => HttpTests.WithNodeAsync(async client =>
        {
            var token = await HttpTests.FillAsync(client, "live", "a", 40, "b", 30, "c", 20, "d", 10);
            var query = new LiveQuery { Top = 2, Members = new[] { "d", "nobody", "a" }, After = token, MaxRate = 20 };
            using (var watch = client.Live("live", query))
            {
                var first = await UntilAsync(watch, update => true);
                Assert.True(first.Changes == null, "the first update is the whole state");
                Assert.Equal(new[] { "a", "b" }, Names(first.State.Entries));
                Assert.Equal(new[] { "d", "a" }, Names(first.State.Members));
                Assert.Equal(new[] { "nobody" }, first.State.NotFound);
                await PutAsync(client, "live", "c", 35);
                await PutAsync(client, "live", "nobody", 1L << 60);
                var both = await UntilAsync(watch, update => update.State.Total == 5);
                Assert.Equal(new[] { "nobody", "a" }, Names(both.State.Entries));
                Assert.Equal(new[] { "d", "nobody", "a" }, Names(both.State.Members));
                Assert.True(both.Changes != null && (long)both.State.Entries[0].Score == 1L << 60);
                await client.RemoveAsync("live", "d");
                var gone = await UntilAsync(watch, update => update.State.Total == 4);
                Assert.Equal(new[] { "d" }, gone.State.NotFound);
                // What the caller has stays as it was.
                Assert.Equal(new[] { "a", "b" }, Names(first.State.Entries));
                await client.ClearAsync("live");
                await UntilAsync(watch, update => update.Changes == null && update.State.Total == 0);
                await client.DropAsync("live");
                var end = await Assert.ThrowsAsync<NotFoundException>(() => UntilAsync(watch, update => false));
                Assert.Equal(Codes.UnknownBoard, end.Code);
            }
        });

        public Task WhatIsShownIsWhatIsRead() => HttpTests.WithNodeAsync(async client =>
        {
            var random = new Random();
            var members = new[] { "p1", "p7", "p30" };
            await client.DefineAsync("shown");
            using (var watch = client.Live("shown", new LiveQuery { Members = members, MaxRate = 20 }))
            {
                for (var round = 0; round < 20; round++)
                {
                    string token = null;
                    for (var number = 0; number < 10; number++)
                    {
                        var member = "p" + random.Next(31);
                        var one = random.Next(4) > 0
                            ? await PutAsync(client, "shown", member, random.Next(50))
                            : (await client.RemoveAsync("shown", member)).Token;
                        token = Tokens.Latest(token, one);
                    }
                    var page = await client.TopAsync("shown", new TopQuery { Limit = 10, After = token });
                    var group = await client.LookupAsync("shown", members, new LookupQuery { After = token });
                    var top = page.Entries.Select(one => $"{one.Member} {one.Score} {one.Position}").ToList();
                    var known = group.Entries.Select(one => $"{one.Member} {one.Score} {one.Position}").OrderBy(one => one).ToList();
                    await UntilAsync(watch, update =>
                        update.State.Entries.Select(one => $"{one.Member} {one.Score} {one.Position}").SequenceEqual(top)
                        && update.State.Members.Select(one => $"{one.Member} {one.Score} {one.Position}").OrderBy(one => one)
                            .SequenceEqual(known));
                }
            }
        });

        public async Task ALostOrSilentConnectionGoesOnWhereItWas()
        {
            using (var node = await Server.NodeAsync(""))
            using (var link = new Link(node.Port))
            using (var client = new RanktreeClient(node.Url))
            using (var far = new RanktreeClient(
                $"http://127.0.0.1:{link.Port}", new RanktreeOptions { Silence = TimeSpan.FromSeconds(2) }))
            {
                await PutAsync(client, "lost", "a", 1);
                using (var watch = far.Live("lost"))
                {
                    await UntilAsync(watch, update => update.State.Total == 1);
                    link.Cut();
                    await PutAsync(client, "lost", "b", 2);
                    var after = await UntilAsync(watch, update => update.State.Total == 2);
                    Assert.True(after.Changes != null, "the node still knew what this watcher had");
                    node.Kill();
                    await node.StartAsync();
                    await PutAsync(client, "lost", "c", 3);
                    var last = await UntilAsync(watch, update => update.State.Total == 3);
                    Assert.Equal(new[] { "c", "b", "a" }, Names(last.State.Entries));
                    // The connection stays open, and says nothing more.
                    link.IsDeaf = true;
                    await PutAsync(client, "lost", "d", 4);
                    await Servers.UntilAsync("the event is lost", () => link.Lost > 0);
                    var waiting = UntilAsync(watch, update => update.State.Total == 4);
                    await Task.Delay(2500);
                    link.IsDeaf = false;
                    await waiting;
                    using (var ended = new CancellationTokenSource(50))
                    {
                        await Assert.ThrowsAsync<OperationCanceledException>(() => watch.MoveNextAsync(ended.Token));
                    }
                }
                using (var unknown = far.Live("nothing"))
                {
                    await Assert.ThrowsAsync<NotFoundException>(() => unknown.MoveNextAsync());
                }
            }
        }
    }
}
