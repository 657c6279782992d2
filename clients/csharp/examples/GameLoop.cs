// A game's loop: matches end, scores are written, and players see where they stand.
//
//     GameLoop.exe http://127.0.0.1:8080 20
//
// It needs a running node: `ranktree serve`.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;

namespace Ranktree.Examples
{
    internal static class GameLoop
    {
        private const string Board = "arena";
        private static readonly Random Dice = new Random();

        /// <summary>
        /// Four players fight, and each gets points. With its version, a repeated job counts once. That is
        /// enough because one process plays all matches in their order: of two that overtake each other the
        /// older one is refused, and its points are not added.
        /// </summary>
        private static List<Job> Play(ulong match, IEnumerable<string> players)
        {
            var at = DateTimeOffset.UtcNow;
            return players.OrderBy(_ => Dice.Next()).Take(4).Select(player => new Job
            {
                Board = Board,
                Member = player,
                Score = Dice.Next(101),
                Op = "incr",
                Version = match,
                At = at,
                Meta = new { match },
            }).ToList();
        }

        private static async Task LoopAsync(string url, ulong matches)
        {
            var players = Enumerable.Range(1, 40).Select(number => $"player-{number}").ToList();
            // Of each player the token of the last write: a player's own reads are never older than that.
            var seen = new Dictionary<string, string>();
            using (var client = new RanktreeClient(url))
            {
                // Before the first job, so that no job waits for it.
                await client.DefineAsync(Board, new DefinitionInput { Policy = "incr", Ties = "first" });
                // A game goes on counting where it was. Versions of an earlier run are lower than these.
                var first = (ulong)DateTimeOffset.UtcNow.ToUnixTimeMilliseconds();
                for (var match = first; match < first + matches; match++)
                {
                    var jobs = Play(match, players);
                    var token = (await client.WriteManyAsync(jobs, new JobsQuery { Results = "changed" })).Token;
                    foreach (var job in jobs)
                    {
                        string known;
                        seen.TryGetValue(job.Member, out known);
                        seen[job.Member] = Tokens.Latest(known, token);
                    }
                    var star = jobs[0].Member;
                    var query = new AroundQuery { Above = 1, Below = 1, After = seen[star] };
                    foreach (var entry in (await client.AroundAsync(Board, star, query)).Entries)
                    {
                        var mark = entry.Member == star ? "<" : " ";
                        Console.WriteLine($"{entry.Rank,5}  {entry.Member,-12} {entry.Score,8} {mark}");
                    }
                    Console.WriteLine();
                }
                Console.WriteLine($"The best of {(await client.BoardAsync(Board)).Totals["all"]}:");
                var top = client.AllTop(Board, new TopQuery { Limit = 100 });
                while (await top.MoveNextAsync() && top.Current.Position <= 10)
                {
                    Console.WriteLine($"{top.Current.Rank,5}  {top.Current.Member,-12} {top.Current.Score,8}");
                }
            }
        }

        private static void Main(string[] arguments)
        {
            var url = arguments.Length > 0 ? arguments[0] : "http://127.0.0.1:8080";
            LoopAsync(url, arguments.Length > 1 ? ulong.Parse(arguments[1]) : 20).GetAwaiter().GetResult();
        }
    }
}
