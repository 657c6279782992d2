package ranktree

import "testing"

// The contract's members and their hashes.
var vectors = map[string]uint32{"p42": 2517926281, "alice": 2267157479, "日本": 2670128721, "": 2166136261}

func TestHashIsThatOfTheContract(t *testing.T) {
	for member, expected := range vectors {
		if found := MemberHash(member); found != expected {
			t.Errorf("%q: %d, not %d", member, found, expected)
		}
		for _, shards := range []int{1, 3, 64} {
			shard, err := ShardOf(member, shards)
			if err != nil || shard != int(uint64(expected)%uint64(shards)) {
				t.Errorf("%q of %d: %d, %v", member, shards, shard, err)
			}
		}
	}
	for _, shards := range []int{0, 65, -1} {
		if _, err := ShardOf("p42", shards); err == nil {
			t.Errorf("%d shards are allowed", shards)
		}
	}
}

func TestLatestNamesTheGreatestSequenceOfEachShard(t *testing.T) {
	if found, err := Latest("0:7", "", "10:3,0:12", "2:0"); found != "0:12,2:0,10:3" || err != nil {
		t.Error(found, err)
	}
	if found, err := Latest("", ""); found != "" || err != nil {
		t.Error(found, err)
	}
	for _, wrong := range []string{"0", "a:1", "0:-1", "0:+1", "0:1,", ":", "0:1:2"} {
		if found, err := Latest(wrong); err == nil {
			t.Errorf("%q is a token: %q", wrong, found)
		}
	}
}
