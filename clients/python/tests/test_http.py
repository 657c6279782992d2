"""The HTTP client against a real node."""

from __future__ import annotations

import asyncio
import socket
import threading
from datetime import datetime, timezone
from typing import Any, List, Tuple

import httpx
import pytest
from support import Node, free_port, until

from ranktree import (
    AsyncRanktree,
    ConnectionFailedError,
    InvalidError,
    NotFoundError,
    NotYetAppliedError,
    ProblemError,
    Ranktree,
    RejectedError,
    UnavailableError,
)
from ranktree.types import DefinitionInput, EntryInput, Job


def fill(client: Ranktree, board: str, scores: List[Tuple[str, int]]) -> str:
    jobs: List[Job] = [{"board": board, "member": member, "score": score} for member, score in scores]
    return client.write_many(jobs)["token"]


def test_a_write_is_read_back(client: Ranktree) -> None:
    client.define("written", {"policy": "best", "ties": "member"})
    at = datetime(2026, 11, 20, 9, 59, 58, tzinfo=timezone.utc)
    job: EntryInput = {"score": 1200, "at": at, "meta": {"car": "mx5"}}
    written = client.write("written", "p42", job, wait="applied")
    assert written["changed"] and written["previous"] is None
    entry = client.member("written", "p42", after=written["token"])
    assert (entry["score"], entry["rank"], entry["total"]) == (1200, 1, 1)
    assert (entry["updated_at"], entry["meta"]) == ("2026-11-20T09:59:58Z", {"car": "mx5"})
    removed = client.remove("written", "p42")
    assert removed["changed"]
    with pytest.raises(NotFoundError) as error:
        client.member("written", "p42")
    assert (error.value.status, error.value.code) == (404, "unknown_member")


def test_a_manual_season_is_opened(client: Ranktree) -> None:
    client.define("league", {"windows": ["all", "season"], "season": "manual"})
    begin = datetime(2100, 1, 1, tzinfo=timezone.utc)
    opened = client.open_season("league", begin)
    assert (opened["season"], opened["begin"]) == ("s1", "2100-01-01T00:00:00Z")
    # With its name it can be asked for again.
    assert client.open_season("league", begin, name="s1")["begin"] == "2100-01-01T00:00:00Z"
    moved = client.move_season("league", "s1", begin.replace(year=2101))
    assert moved["begin"] == client.board("league")["planned_seasons"][0]["begin"] == "2101-01-01T00:00:00Z"
    assert client.cancel_season("league", "s1")["cancelled"]
    client.open_season("league", begin)
    with pytest.raises(RejectedError) as error:
        client.open_season("league")
    assert (error.value.status, error.value.code) == (409, "season_conflict")


def test_ids_of_members_survive_the_path(client: Ranktree) -> None:
    members = ["a/b", "..", ".", "日本", "with space", "%2F", "?a=b&c", "#", "a+b", ":lookup", "é\\\"'"]
    for number, member in enumerate(members):
        client.write("ids", member, {"score": number})
        assert client.member("ids", member)["member"] == member
        assert client.around("ids", member)["entries"][0]["member"] == member
        assert client.member_boards(member, boards=["ids"])["entries"][0]["member"] == member
    assert client.board("ids")["totals"]["all"] == len(members)
    for member in members:
        client.remove_everywhere(member)
    assert client.board("ids")["totals"]["all"] == 0


def test_pages_are_iterated_without_a_gap(client: Ranktree) -> None:
    # Ties everywhere.
    fill(client, "pages", [(f"p{number:03}", number // 3) for number in range(500)])
    best = [entry["position"] for entry in client.iter_top("pages", limit=37)]
    assert best == list(range(1, 501))
    worst = [entry["position"] for entry in client.iter_top("pages", limit=499, from_="bottom")]
    assert worst == list(range(500, 0, -1))
    middle = [entry["score"] for entry in client.iter_range("pages", min=10, max=20, limit=7)]
    assert middle == [score for score in range(20, 9, -1) for _ in range(3)]
    assert client.count("pages", min=10, max=20)["count"] == 33
    names = [board["board"] for board in client.iter_boards(limit=1)]
    assert "pages" in names and names == sorted(names)
    assert [entry["board"] for entry in client.iter_member_boards("p007")] == ["pages"]


def test_every_read_answers(client: Ranktree) -> None:
    token = fill(client, "reads", [("alice", 30), ("bob", 20), ("carol", 20), ("dave", 10)])
    page = client.top("reads", limit=2, after=token)
    assert [entry["member"] for entry in page["entries"]] == ["alice", "bob"]
    assert [entry["rank"] for entry in client.positions("reads", 3)["entries"]] == [2, 4]
    group = client.lookup("reads", ["dave", "alice", "nobody"])
    ranks = {entry["member"]: entry["group_rank"] for entry in group["entries"]}
    assert ranks == {"alice": 1, "dave": 2}
    assert group["not_found"] == ["nobody"]
    assert [rank["rank"] for rank in client.ranks("reads", [31, 20, 0])["ranks"]] == [1, 2, 5]
    place = client.score("reads", rank=2)
    assert (place["score"], place["tied"]) == (20, 2)
    assert [bucket["count"] for bucket in client.histogram("reads", edges=[0, 15, 25])["buckets"]] == [1, 2]
    fill(client, "reads-too", [("alice", 1)])
    boards = client.member_boards("alice", boards=["reads", "reads-too"])["entries"]
    assert [entry["board"] for entry in boards] == ["reads", "reads-too"]
    assert len(client.percentiles("reads", [10, 50, 99.9])["percentiles"]) == 3
    assert len(client.around("reads", "dave", above=1, below=0)["entries"]) == 2
    assert client.trim("reads", positions_beyond=3)["removed"] == 1
    assert client.clear("reads")["removed"] == 3
    assert client.drop("reads")["dropped"] is True
    assert client.status()["ready"]


def test_what_operators_do(client: Ranktree) -> None:
    fill(client, "kept", [(f"p{number}", number) for number in range(10)])
    fill(client, "kept-too", [("p3", 100)])
    both = client.combine({"boards": {"kept": 2, "kept-too": 0.5}, "limit": 1, "member": "p9"})
    assert [(entry["member"], entry["score"]) for entry in both["entries"]] == [("p3", 56)]
    assert both["member"] and (both["member"]["score"], both["member"]["rank"]) == (18, 2)
    client.write("kept", "p4", {"op": "hide"})
    client.write_many([{"member": "p5", "op": "hide"}])
    assert [ban["member"] for ban in client.hidden(board="kept")["hidden"]] == ["p5", "p4"]
    assert {ban["member"] for ban in client.iter_hidden(limit=1)} >= {"p4", "p5"}
    assert client.trim("kept", better_than=7)["removed"] == 2
    assert client.trim("kept", worse_than=1, window="all")["removed"] == 1
    assert client.set_read_only({"board": "kept", "readonly": True, "reason": "a review"})["readonly"]
    with pytest.raises(ProblemError) as refused:
        client.write("kept", "p1", {"score": 1})
    assert refused.value.code == "read_only"
    assert not client.set_read_only({"board": "kept", "readonly": False})["readonly"]
    client.write_many([{"member": "p5", "op": "show"}])
    over: DefinitionInput = {"expires_at": "2020-01-01T00:00:00Z"}
    with pytest.raises(RejectedError) as drops:
        client.define("kept", over)
    assert drops.value.code == "would_drop"
    client.define("kept", over, force=True)


def test_a_member_in_several_windows(client: Ranktree) -> None:
    client.define("slices", {"windows": ["all", "day"]})
    client.write("slices", "p1", {"score": 2**60})
    # The type of the answer is that of what was asked for: mypy reads this as well.
    windows = client.member("slices", "p1", windows="*")["windows"]
    assert {name: entry and entry["score"] for name, entry in windows.items()} == {"all": 2**60, "day": 2**60}
    assert client.member("slices", "p1", window="day")["rank"] == 1


def test_problems_become_exceptions(client: Ranktree, node: Node) -> None:
    client.define("bounded", {"keys": [{"name": "points", "min": 0, "max": 100}]})
    with pytest.raises(RejectedError) as rejected:
        client.write("bounded", "p42", {"score": 101})
    assert rejected.value.code == "out_of_range"
    client.write("bounded", "p42", {"score": 1, "version": 7})
    with pytest.raises(RejectedError) as stale:
        client.write("bounded", "p42", {"score": 1, "version": 7})
    assert stale.value.code == "stale_version"
    jobs: List[Job] = [{"board": "bounded", "member": member, "score": 1} for member in ("p1", "")]
    with pytest.raises(InvalidError) as invalid:
        client.write_many(jobs)
    assert [(error["index"], error["code"]) for error in invalid.value.errors] == [(1, "bad_member")]
    with pytest.raises(RejectedError) as differs:
        client.define("bounded", {"ties": "last"})
    assert differs.value.code == "board_differs"
    with pytest.raises(NotYetAppliedError) as late:
        client.member("bounded", "p42", after="0:1000000", timeout_ms=1)
    assert late.value.code == "not_yet_applied"
    with pytest.raises(ValueError, match="time zone"):
        client.write("bounded", "p42", {"score": 1, "at": datetime(2026, 11, 20)})
    codes = [reject["reason"] for reject in client.iter_rejects(limit=1)]
    assert codes[:2] == ["stale_version", "out_of_range"]


def test_no_node_is_told_from_no_answer() -> None:
    with Ranktree(f"http://127.0.0.1:{free_port()}", retries=1) as client:
        with pytest.raises(ConnectionFailedError) as nobody:
            client.write("arena", "p42", {"score": 1})
        assert not nobody.value.may_be_applied
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with Ranktree(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2, retries=0) as client:
            with pytest.raises(ConnectionFailedError) as unknown:
                client.write("arena", "p42", {"score": 1})
            assert unknown.value.may_be_applied
            with pytest.raises(ConnectionFailedError) as read:
                client.member("arena", "p42")
            assert not read.value.may_be_applied


def test_an_overloaded_node_is_asked_again() -> None:
    told = {"code": "overloaded", "detail": "too many requests"}
    refused = httpx.Response(503, json=told, headers={"Retry-After": "0"})
    answers = [refused, httpx.Response(200, json={"token": "0:1"})]

    def answer(_: httpx.Request) -> httpx.Response:
        return answers.pop(0)

    with Ranktree(http=httpx.Client(transport=httpx.MockTransport(answer))) as client:
        assert client.write("arena", "p42", {"score": 1})["token"] == "0:1"
        # Nobody knows what became of it, so that it is for the caller to decide.
        answers.append(httpx.Response(503, json={**told, "code": "commit_unknown"}))
        with pytest.raises(UnavailableError) as unknown:
            client.write("arena", "p42", {"score": 1})
        assert unknown.value.code == "commit_unknown" and not answers


def test_a_bearer_token_is_sent() -> None:
    seen: List[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Authorization"])
        return httpx.Response(200, json={"token": "0:1"})

    with Ranktree(bearer="rkt_abc", http=httpx.Client(transport=httpx.MockTransport(answer))) as client:
        client.write("arena", "p42", {"score": 1})
    assert seen == ["Bearer rkt_abc"]


def test_a_read_waits_for_a_write_of_another_client(client: Ranktree, node: Node) -> None:
    first = fill(client, "waits", [("p1", 1)])
    shard, sequence = first.split(",")[0].split(":")
    found: List[int] = []

    def read() -> None:
        with Ranktree(node.url) as reader:
            token = f"{shard}:{int(sequence) + 1}"
            found.append(reader.board("waits", after=token, timeout_ms=60_000)["totals"]["all"])

    reading = threading.Thread(target=read)
    reading.start()
    number = 1

    def is_read() -> bool:
        nonlocal number
        number += 1
        fill(client, "waits", [(f"p{number}", number)])
        return bool(found)

    until("the read is answered", is_read)
    reading.join()
    assert found[0] > 1


def test_the_async_client_does_the_same(node: Node) -> None:
    async def play() -> None:
        async with AsyncRanktree(node.url) as client:
            writes = [client.write("async", f"p{number}", {"score": number}) for number in range(50)]
            await asyncio.gather(*writes)
            entries = [entry["member"] async for entry in client.iter_top("async", limit=8)]
            assert entries == [f"p{number}" for number in range(49, -1, -1)]
            with pytest.raises(NotFoundError):
                await client.member("async", "nobody")

    asyncio.run(play())
