using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Ranktree
{
    /// <summary>
    /// Goes over all pages, one entry at a time: `while (await pages.MoveNextAsync()) { ... pages.Current
    /// ... }`. .NET Standard 2.0 has no `await foreach`.
    /// </summary>
    public sealed class Pages<T>
    {
        private readonly Func<CancellationToken, Task<Found<T>>> next;
        private Found<T> page;
        private int at;

        internal Pages(Func<CancellationToken, Task<Found<T>>> next)
        {
            this.next = next;
        }

        public T Current => page.Entries[at];

        /// <summary>Goes on to the next entry, and says whether there is one.</summary>
        public async Task<bool> MoveNextAsync(CancellationToken cancel = default(CancellationToken))
        {
            at++;
            while (page == null || at >= page.Entries.Count)
            {
                if (page != null && page.IsLast)
                {
                    return false;
                }
                page = await next(cancel).ConfigureAwait(false);
                at = 0;
            }
            return true;
        }
    }

    internal sealed class Found<T>
    {
        public IList<T> Entries { get; set; }

        public bool IsLast { get; set; }
    }

    internal static class Found
    {
        public static Found<T> Of<T>(IList<T> entries, string cursor) =>
            new Found<T> { Entries = entries, IsLast = string.IsNullOrEmpty(cursor) };
    }
}
