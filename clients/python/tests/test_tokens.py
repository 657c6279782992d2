from __future__ import annotations

import pytest

from ranktree import latest, member_hash, shard_of

# The contract's members and their hashes.
VECTORS = [("p42", 2517926281), ("alice", 2267157479), ("日本", 2670128721), ("", 2166136261)]


@pytest.mark.parametrize("member, expected", VECTORS)
def test_hash_is_that_of_the_contract(member: str, expected: int) -> None:
    assert member_hash(member) == expected
    assert [shard_of(member, shards) for shards in (1, 3, 64)] == [0, expected % 3, expected % 64]


def test_number_of_shards_has_bounds() -> None:
    for shards in (0, 65):
        with pytest.raises(ValueError, match="1 to 64 shards"):
            shard_of("p42", shards)


def test_latest_names_the_greatest_sequence_of_each_shard() -> None:
    assert latest("0:7", None, "1:3,0:12", "2:0") == "0:12,1:3,2:0"
    assert latest(None) is None
    for wrong in ("0", "a:1", "0:-1", "0:1,"):
        with pytest.raises(ValueError, match="not a token"):
            latest(wrong)
