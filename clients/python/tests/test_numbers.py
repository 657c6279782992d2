"""Numbers that JSON has as strings, against a real node; and their types, which mypy reads here."""

from __future__ import annotations

import math
from typing import Any, List, Union

import pytest

from ranktree import RejectedError, Ranktree
from ranktree.types import EntryInput, Job


def test_integers_are_exact_up_to_64_bits(client: Ranktree) -> None:
    client.define("exact", {"keys": [{"name": "points", "min": -(2**62)}, {"name": "time"}]})
    for number, score in enumerate([[2**63 - 1, -(2**63)], [2**53 + 1, 5], [2**53, 4]]):
        meta = {"score": str(2**60)}
        entry = client.write("exact", f"p{number}", {"score": score, "meta": meta}, wait="applied")["entry"]
        assert entry and entry["score"] == score
        # What callers keep there is theirs.
        assert entry["meta"] == meta
    assert client.rank("exact", [2**53 + 1, 5])["rank"] == 2
    assert client.board("exact")["keys"][0]["min"] == -(2**62)
    assert client.percentiles("exact", [100])["percentiles"][0]["score"] == [2**63 - 1, -(2**63)]


def test_boards_may_be_named_as_the_fields_of_answers(client: Ranktree) -> None:
    scores = {"meta": 2**60, "score": 2**61, "job": 1}
    result = client.write_many([{"member": "p1", "scores": scores}], wait="applied")["results"][0]
    boards: Any = result["boards"]
    assert {board: change["entry"]["score"] for board, change in boards.items()} == scores
    # Beside the entries of another board, too, by whose names no number is.
    listed = client.top("job", with_=["score", "meta"], with_rank=True)["entries"][0]["with"]
    assert listed == {"meta": {"score": 2**60, "rank": 1}, "score": {"score": 2**61, "rank": 1}}
    # What is below is of the caller's.
    client.write_many([{"member": "p1", "op": "profile", "profile": {"score": str(2**60)}}])
    entry = client.member("score", "p1", profile=True)
    assert (entry["score"], entry["profile"]) == (2**61, {"score": str(2**60)})


def test_a_version_and_an_error_are_numbers(client: Ranktree) -> None:
    job: EntryInput = {"score": 1, "version": 2**64 - 1}
    client.write("versions", "p1", job)
    assert client.member("versions", "p1", version=True)["version"] == 2**64 - 1
    assert client.top("versions", version=True)["entries"][0]["version"] == 2**64 - 1
    client.define("streamed", {"kind": "top_k", "capacity": 1, "policy": "incr", "ties": "first"})
    for number in range(3):
        client.write("streamed", f"p{number}", {"score": 2**60})
    errors = [entry["error"] for entry in client.iter_top("streamed")]
    assert max(errors) >= 2**60


def test_fractions_and_infinities(client: Ranktree) -> None:
    client.define("lap", {"keys": [{"name": "km", "type": "float", "min": -math.inf, "max": math.inf}]})
    given: List[Union[int, float, str]] = ["inf", math.inf, 83.456, 1e22, 7, "-inf", -math.inf]
    wanted = [math.inf, math.inf, 83.456, 1e22, 7, -math.inf, -math.inf]
    for number, (score, found) in enumerate(zip(given, wanted)):
        entry = client.write("lap", f"p{number}", {"score": score}, wait="applied")["entry"]
        assert entry and entry["score"] == found
        assert client.member("lap", f"p{number}")["score"] == found
    assert client.write("lap", "p9", {"score": 1.5, "meta": {"score": "inf"}}, wait="applied")["changed"]
    ranked = sorted([*wanted, 1.5], reverse=True)
    assert [entry["score"] for entry in client.top("lap")["entries"]] == ranked
    assert [entry["score"] for entry in client.iter_top("lap", limit=1)] == ranked
    assert client.member("lap", "p9")["meta"] == {"score": "inf"}
    assert next(client.live("lap"))["entries"][0]["score"] == math.inf
    assert (client.rank("lap", 83.5)["rank"], client.rank("lap", math.inf)["tied"]) == (4, 2)
    assert [rank["score"] for rank in client.ranks("lap", [math.inf, 0.5])["ranks"]] == [math.inf, 0.5]
    assert client.count("lap", min=83.1)["count"] == 4
    count = client.count("lap", min=-math.inf, max=83.1)
    assert (count["min"], count["max"], count["count"]) == (-math.inf, 83.1, 4)
    assert client.histogram("lap", edges=[0.5, math.inf])["buckets"][0]["max"] == math.inf
    jobs: List[Job] = [{"member": "p1", "scores": {"lap": -math.inf, "meta-lap": 1}}]
    assert client.write_many(jobs, wait="applied")["results"][0]["changed"]
    assert client.trim("lap", better_than=math.inf)["removed"] == 0


def test_what_is_no_number_is_not_sent(client: Ranktree) -> None:
    client.define("lap", {"keys": [{"name": "km", "type": "float", "min": -math.inf, "max": math.inf}]})
    calls: List[Any] = [
        lambda: client.write("lap", "nan", {"score": math.nan}),
        lambda: client.write_many([{"member": "nan", "scores": {"lap": math.nan}}]),
        lambda: client.rank("lap", math.nan),
        lambda: client.ranks("lap", [1, math.nan]),
        # An infinity has no JSON where callers keep something of their own.
        lambda: client.write("lap", "nan", {"score": 1, "meta": {"score": math.inf}}),
        lambda: client.combine({"boards": {"lap": math.inf}}),
    ]
    for call in calls:
        with pytest.raises(ValueError):
            call()
    with pytest.raises(Exception) as unknown:
        client.member("lap", "nan")
    assert "unknown_member" in str(unknown.value)
    # Integer boards take none, and that is the service's to say.
    client.define("whole")
    with pytest.raises(Exception, match="bad_score"):
        client.write("whole", "p1", {"score": math.inf})
