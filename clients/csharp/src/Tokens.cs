using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;

namespace Ranktree
{
    /// <summary>Shards of members, and tokens.</summary>
    public static class Tokens
    {
        /// <summary>FNV-1a, 32 bits, of the UTF-8 bytes of a member's id.</summary>
        public static uint MemberHash(string member)
        {
            var value = 0x811C9DC5u;
            foreach (var one in Encoding.UTF8.GetBytes(member))
            {
                value = unchecked((value ^ one) * 0x01000193u);
            }
            return value;
        }

        /// <summary>The shard that a member belongs to.</summary>
        public static int ShardOf(string member, int shards)
        {
            if (shards < 1 || shards > 64)
            {
                throw new ArgumentException($"there are 1 to 64 shards; got {shards}");
            }
            return (int)(MemberHash(member) % (uint)shards);
        }

        /// <summary>
        /// One token that names all that the given ones name: of each shard the greatest sequence. Null
        /// stands for no token. Use it to read what several writes did, or never older than an earlier
        /// read.
        /// </summary>
        public static string Latest(params string[] tokens)
        {
            var sequences = new SortedDictionary<ulong, ulong>();
            foreach (var token in tokens)
            {
                if (string.IsNullOrEmpty(token))
                {
                    continue;
                }
                foreach (var part in token.Split(','))
                {
                    var words = part.Split(':');
                    if (words.Length != 2 || !Digits(words[0], out var shard) || !Digits(words[1], out var sequence))
                    {
                        var told = "it is shard:sequence, several joined by commas";
                        throw new ArgumentException($"not a token: {token}; {told}");
                    }
                    sequences.TryGetValue(shard, out var known);
                    sequences[shard] = Math.Max(known, sequence);
                }
            }
            return sequences.Count == 0 ? null : string.Join(",", sequences.Select(one => $"{one.Key}:{one.Value}"));
        }

        private static bool Digits(string text, out ulong value) =>
            ulong.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out value);
    }
}
