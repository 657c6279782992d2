// Shards of members, and tokens.

const encoder = new TextEncoder();

/** FNV-1a, 32 bits, of the UTF-8 bytes of a member's id. */
export function memberHash(member: string): number {
  let hash = 0x811c9dc5;
  for (const byte of encoder.encode(member)) {
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash >>> 0;
}

/** The shard that a member belongs to. */
export function shardOf(member: string, shards: number): number {
  if (!Number.isInteger(shards) || shards < 1 || shards > 64) {
    throw new RangeError(`there are 1 to 64 shards; got ${shards}`);
  }
  return memberHash(member) % shards;
}

/**
 * One token that names all that the given ones name: of each shard the greatest sequence.
 *
 * `undefined` stands for no token. Use it to read what several writes did, or never older than an earlier
 * read.
 */
export function latest(...tokens: (string | null | undefined)[]): string | undefined {
  const sequences = new Map<number, bigint>();
  for (const token of tokens) {
    for (const part of token ? token.split(",") : []) {
      const found = /^(\d+):(\d+)$/.exec(part);
      if (!found) {
        throw new TypeError(`not a token: "${token}"; it is shard:sequence, several joined by commas`);
      }
      const shard = Number(found[1]);
      const sequence = BigInt(found[2] as string);
      const known = sequences.get(shard);
      if (known === undefined || known < sequence) sequences.set(shard, sequence);
    }
  }
  const sorted = [...sequences].sort(([one], [other]) => one - other);
  return sorted.map(([shard, sequence]) => `${shard}:${sequence}`).join(",") || undefined;
}
