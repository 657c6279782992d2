using System;

namespace Ranktree
{
    /// <summary>Pauses between tries.</summary>
    internal static class Pause
    {
        public static readonly TimeSpan Longest = TimeSpan.FromSeconds(2);
        private static readonly Random Random = new Random();

        /// <summary>How long to wait after a try, counted from 0.</summary>
        public static TimeSpan After(int number) =>
            Spread(TimeSpan.FromSeconds(Math.Min(Longest.TotalSeconds, 0.05 * Math.Pow(2, Math.Min(number, 16)))));

        /// <summary>
        /// Half of it to all: clients that failed at the same moment do not come back at the same moment.
        /// </summary>
        public static TimeSpan Spread(TimeSpan pause)
        {
            lock (Random)
            {
                return TimeSpan.FromTicks((long)(pause.Ticks * (0.5 + Random.NextDouble() / 2)));
            }
        }
    }
}
