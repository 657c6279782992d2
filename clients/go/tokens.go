package ranktree

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MemberHash is FNV-1a, 32 bits, of the UTF-8 bytes of a member's id.
func MemberHash(member string) uint32 {
	value := uint32(0x811C9DC5)
	for at := range len(member) {
		value = (value ^ uint32(member[at])) * 0x01000193
	}
	return value
}

// ShardOf is the shard that a member belongs to. There are 1 to 64 shards.
func ShardOf(member string, shards int) (int, error) {
	if shards < 1 || shards > 64 {
		return 0, fmt.Errorf("there are 1 to 64 shards; got %d", shards)
	}
	return int(uint64(MemberHash(member)) % uint64(shards)), nil
}

// Latest makes one token of several, which names all that they name: of each shard the greatest
// sequence. An empty string stands for no token. Use it to read what several writes did, or never
// older than an earlier read.
func Latest(tokens ...string) (string, error) {
	sequences := map[uint64]uint64{}
	for _, token := range tokens {
		if token == "" {
			continue
		}
		for part := range strings.SplitSeq(token, ",") {
			first, second, _ := strings.Cut(part, ":")
			shard, err := digits(first)
			sequence, err2 := digits(second)
			if err != nil || err2 != nil {
				told := "not a token: %q; it is shard:sequence, several joined by commas"
				return "", fmt.Errorf(told, token)
			}
			sequences[shard] = max(sequences[shard], sequence)
		}
	}
	type part struct{ shard, sequence uint64 }
	var parts []part
	for shard, sequence := range sequences {
		parts = append(parts, part{shard, sequence})
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.shard, b.shard) })
	var words []string
	for _, one := range parts {
		words = append(words, fmt.Sprintf("%d:%d", one.shard, one.sequence))
	}
	return strings.Join(words, ","), nil
}

// digits are read without a sign.
func digits(text string) (uint64, error) {
	return strconv.ParseUint(text, 10, 64)
}
