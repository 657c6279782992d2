"""The publisher against a real nats-server and a real node."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Dict, List

import nats as nats_py
import pytest
from support import ROOT, LossyLink, Nats, Node, free_port, until

from ranktree import (
    ConnectionFailedError,
    InvalidError,
    PublishError,
    PublishManyError,
    Ranktree,
    RanktreeError,
    UnavailableError,
    latest,
    shard_of,
)
from ranktree.nats import AsyncPublisher, Publisher
from ranktree.types import Job


def job(member: str, score: int = 1, op: Any = "incr") -> Job:
    return {"board": "arena", "member": member, "score": score, "op": op}


@pytest.fixture(autouse=True)
def arena(request: pytest.FixtureRequest) -> None:
    """Jobs for a board that does not exist wait for its definition, and tokens do not wait for that."""
    if "nats_node" in request.fixturenames:
        with Ranktree(request.getfixturevalue("nats_node").url) as client:
            client.define("arena")


def members_of(shard: int, shards: int, count: int) -> List[str]:
    found = (f"p{number}" for number in range(100_000))
    return [member for member in found if shard_of(member, shards) == shard][:count]


def last_sequences(nats: Nats, shards: int) -> Dict[int, int]:
    async def ask() -> Dict[int, int]:
        connection = await nats_py.connect(nats.url)
        stream_info = connection.jetstream().stream_info
        infos = [await stream_info(f"RANKTREE_JOBS_{shard}") for shard in range(shards)]
        await connection.close()
        return {shard: info.state.last_seq for shard, info in enumerate(infos)}

    return asyncio.run(ask())


def test_a_published_job_is_ranked(nats: Nats, nats_node: Node) -> None:
    with Ranktree(nats_node.url) as client, Publisher.connect(nats.url) as publisher:
        assert publisher.shards == 3
        token = publisher.publish(job("p42", 1200))
        assert token.split(":")[0] == "1"
        entry = client.member("arena", "p42", after=token)
        assert (entry["score"], entry["rank"]) == (1200, 1)
        # An answer over HTTP is 202 there: a token, and nothing else.
        accepted = client.write("arena", "p42", {"score": 5, "op": "incr"})
        assert set(accepted) == {"token"}
        assert client.member("arena", "p42", after=latest(token, accepted["token"]))["score"] == 1205


def test_without_a_server_connecting_fails_soon_and_prints_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    url = f"nats://user:rkt_abc@127.0.0.1:{free_port()}"
    limits: List[Dict[str, Any]] = [
        {"connect_within": 0.5},
        {"max_reconnect_attempts": 1, "reconnect_time_wait": 0.05},
        {"connect_within": 0.5, "allow_reconnect": False},
    ]
    heard: List[Exception] = []

    async def hear(error: Exception) -> None:
        heard.append(error)

    async def play(**options: Any) -> None:
        await AsyncPublisher.connect(url, **options)

    for options in limits:
        begin = time.monotonic()
        for connect in (
            lambda: Publisher.connect(url, **options),
            lambda: asyncio.run(play(**options, error_cb=hear)),
        ):
            with pytest.raises(ConnectionFailedError, match="to NATS: .*Connect call failed") as error:
                connect()
            assert not error.value.may_be_applied and "rkt_abc" not in str(error.value)
        assert time.monotonic() - begin < 10
    assert heard, "who asks for the errors hears them"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(ConnectionFailedError, match="not within 0.5 s"):
            Publisher.connect(f"nats://127.0.0.1:{silent.getsockname()[1]}", connect_within=0.5)
    nowhere: List[Any] = [[], ""]
    for wrong in nowhere:
        with pytest.raises(ValueError, match="server"):
            Publisher.connect(wrong)
    assert not caplog.records and not capfd.readouterr().err


def test_a_lost_connection_is_told_in_a_line(
    nats: Nats, nats_node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    with Publisher.connect(nats.url, reconnect_time_wait=0.05) as publisher:
        nats.kill()
        until("it is told", lambda: caplog.records)
        nats.start()
        publisher.publish(job("p42"))
    lines = {(one.name, one.levelname, one.exc_info) for one in caplog.records}
    assert lines == {("ranktree", "WARNING", None)}


def test_an_id_counts_once(nats: Nats, nats_node: Node) -> None:
    with Ranktree(nats_node.url) as client, Publisher.connect(nats.url) as publisher:
        tokens = {publisher.publish(job("p42"), message_id="match-8841-p42") for _ in range(3)}
        assert len(tokens) == 1
        assert client.member("arena", "p42", after=tokens.pop())["score"] == 1
        jobs = [job(f"p{number}") for number in range(2_500)]
        first = publisher.publish_many(jobs, message_id="match-8842")
        assert publisher.publish_many(jobs, message_id="match-8842") == first
        assert client.board("arena", after=first)["totals"]["all"] == 2_500
        assert client.rank("arena", 1)["better"] == 1, "p42 has two points, and nobody else"


def test_jobs_of_the_same_moment_share_messages(nats: Nats, nats_node: Node) -> None:
    before = last_sequences(nats, 3)
    with Ranktree(nats_node.url) as client, Publisher.connect(nats.url) as publisher:
        futures = [publisher.submit(job(f"p{number % 700}", number, "set")) for number in range(7_000)]
        token = latest(*[future.result() for future in futures])
        # Each member's jobs stayed in their order: the last one stands.
        entries = client.iter_top("arena", limit=1000, after=token)
        scores = {entry["member"]: entry["score"] for entry in entries}
        assert scores == {f"p{number}": 6_300 + number for number in range(700)}
    after = last_sequences(nats, 3)
    messages = sum(after[shard] - before[shard] for shard in range(3))
    assert messages < 3_500, f"{messages} messages for 7,000 jobs"


def test_submits_wake_the_publisher_once_for_all_that_it_has_not_taken_over(
    nats: Nats, nats_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = last_sequences(nats, 3)
    members = members_of(1, 3, 5_000)
    with Publisher.connect(nats.url) as publisher:
        # The publisher's thread is as busy as it can be.
        is_busy, goes_on = threading.Event(), threading.Event()

        def be_busy() -> None:
            is_busy.set()
            goes_on.wait(60)

        publisher._loop.call_soon_threadsafe(be_busy)
        assert is_busy.wait(60)
        woken: List[Any] = []
        wake = publisher._loop.call_soon_threadsafe

        def counted(*arguments: Any) -> Any:
            woken.append(arguments)
            return wake(*arguments)

        monkeypatch.setattr(publisher._loop, "call_soon_threadsafe", counted)
        futures = [publisher.submit(job(member)) for member in members]
        assert len(woken) == 1, "to wake a thread costs many times what a job costs"
        goes_on.set()
        for future in futures:
            future.result(60)
    assert last_sequences(nats, 3)[1] == before[1] + 5, "5,000 jobs are five full arrays"


def test_a_job_with_an_id_has_a_message_of_its_own(nats: Nats, nats_node: Node) -> None:
    before = last_sequences(nats, 3)
    member = members_of(1, 3, 1)[0]
    with Publisher.connect(nats.url) as publisher:
        futures = [publisher.submit(job(member), message_id=f"match-{number}") for number in range(50)]
        tokens = [future.result(60) for future in futures]
        assert tokens == [f"1:{before[1] + 1 + number}" for number in range(50)]
        # As the documents say: one id for many jobs keeps them together.
        publisher.publish_many([job(member)] * 50, message_id="match-50")
    assert last_sequences(nats, 3)[1] == before[1] + 51


def test_lists_without_an_id_share_messages(nats: Nats, nats_node: Node) -> None:
    before = last_sequences(nats, 3)
    member = members_of(1, 3, 1)[0]

    async def play() -> List[str]:
        async with await AsyncPublisher.connect(nats.url) as publisher:
            return await asyncio.gather(*[publisher.publish_many([job(member)] * 2) for _ in range(500)])

    assert set(asyncio.run(play())) == {f"1:{before[1] + 1}"}


def test_no_more_than_max_waiting_submits_wait(nats: Nats, nats_node: Node) -> None:
    link = LossyLink(nats.port)
    with Publisher.connect(link.url, ack_timeout=0.5, max_waiting=2) as publisher:
        link.is_deaf = True
        for _ in range(2):
            publisher.submit(job("p42"))
        third: "Future[Future[str]]" = Future()
        thread = threading.Thread(target=lambda: third.set_result(publisher.submit(job("p42"))))
        thread.start()
        lost = link.lost
        # The second try of the first message has come and gone.
        until("two acknowledgements are lost", lambda: link.lost > lost + 100)
        assert not third.done(), "there is no room for a third"
        link.is_deaf = False
        assert third.result(60).result(60)
        thread.join()
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            Publisher.connect(nats.url, max_waiting=wrong)
    link.close()


def test_a_cancelled_submit_is_not_sent_unless_it_is_on_its_way(nats: Nats, nats_node: Node) -> None:
    link = LossyLink(nats.port)
    before = last_sequences(nats, 3)
    with Publisher.connect(link.url, ack_timeout=0.5, max_waiting=3) as publisher:
        link.is_deaf = True
        first = publisher.submit(job("p42"))
        until("the stream has it", lambda: last_sequences(nats, 3)[1] > before[1])
        second, third = publisher.submit(job("p42")), publisher.submit(job("p42", 10))
        assert not first.cancel(), "it is on its way"
        assert second.cancel()
        link.is_deaf = False
        # Room is there again, also that of the cancelled one.
        tokens = [future.result(60) for future in (first, third, publisher.submit(job("p42", 100)))]
    with Ranktree(nats_node.url) as client:
        assert client.member("arena", "p42", after=latest(*tokens))["score"] == 111
    link.close()


def test_arrays_are_cut_at_a_thousand_jobs_and_127_kib(nats: Nats, nats_node: Node) -> None:
    members = members_of(0, 3, 1)
    with Ranktree(nats_node.url) as client, Publisher.connect(nats.url) as publisher:
        jobs: List[Job] = [{**job(members[0]), "meta": {"text": "x" * 900}} for _ in range(300)]
        jobs += [job(members[0]) for _ in range(2_001)]
        token = publisher.publish_many(jobs)
        assert client.member("arena", members[0], after=token)["score"] == 2_301
        with pytest.raises(ValueError, match="at most"):
            publisher.publish({**job("p1"), "meta": {"text": "x" * 200_000}})
        for wrong in ("", "x" * 257):
            with pytest.raises(ValueError, match="1 to 256 bytes"):
                publisher.publish(job(wrong))
        nameless: Any = {"board": "arena", "score": 1}
        with pytest.raises(ValueError, match="a job names its member"):
            publisher.publish(nameless)
        with pytest.raises(ValueError, match="a job names its member"):
            publisher.publish_many([nameless])
        with pytest.raises(ValueError, match="a job names its member"):
            publisher.write([nameless])


def test_a_lost_acknowledgement_and_a_killed_node_count_once(nats: Nats, nats_node: Node) -> None:
    """The node is killed between a publish, whose acknowledgement is lost, and its retry."""
    link = LossyLink(nats.port)
    before = last_sequences(nats, 3)
    with Ranktree(nats_node.url) as client:
        with Publisher.connect(link.url, ack_timeout=1.0) as publisher:
            link.is_deaf = True
            publishing = publisher.submit(job("p42"), message_id="match-8841-p42")
            until("the stream has the message", lambda: last_sequences(nats, 3)[1] > before[1])
            until("its acknowledgement is lost", lambda: link.lost > 0)
            nats_node.kill()
            assert not publishing.done()
            lost = link.lost
            # The publisher sends it again, and the server acknowledges again: that is lost as well.
            until("the first retry is lost", lambda: link.lost > lost)
            link.is_deaf = False
            token = publishing.result(timeout=60)
        nats_node.start()
        assert client.member("arena", "p42", after=token, timeout_ms=60_000)["score"] == 1
        # Another process, which knows no more than the id, tries again.
        with Publisher.connect(nats.url) as again:
            assert again.publish(job("p42"), message_id="match-8841-p42") == token
        assert client.member("arena", "p42", after=token)["score"] == 1
    assert last_sequences(nats, 3)[1] == int(token.split(":")[1]) == before[1] + 1
    link.close()


def test_giving_up_says_what_is_known(nats: Nats, nats_node: Node) -> None:
    link = LossyLink(nats.port)
    with Publisher.connect(link.url, ack_timeout=0.2, give_up_after=1.0) as publisher:
        link.is_deaf = True
        with pytest.raises(PublishError) as unknown:
            publisher.publish(job("p42"), message_id="match-1")
        assert unknown.value.may_be_stored and unknown.value.message_id == "match-1"
        with pytest.raises(PublishManyError) as many:
            publisher.publish_many([job("p42"), job("alice")], message_id="match-2")
        assert many.value.token is None and len(many.value.errors) == 2
        # What is behind a message that failed is not sent, so that no job overtakes another.
        with pytest.raises(PublishManyError) as first:
            publisher.publish_many([job("p42")] * 1_500, message_id="match-3")
        assert [error.may_be_stored for error in first.value.errors] == [True, False]
        assert [error.message_id for error in first.value.errors] == ["match-3.1.0", "match-3.1.1"]
        assert (many.value.message_id, first.value.message_id) == ("match-2", "match-3")
        link.is_deaf = False
    with Publisher.connect(nats.url, shards=3, prefix="nobody", give_up_after=0.5) as publisher:
        with pytest.raises(PublishError, match="there is no stream NOBODY_JOBS_1") as absent:
            publisher.publish(job("p42"))
        assert not absent.value.may_be_stored
    with pytest.raises(ValueError, match="at most 110 s"):
        Publisher.connect(nats.url, shards=3, give_up_after=111)
    with pytest.raises(RanktreeError, match="NOBODY_JOBS_0"):
        Publisher.connect(nats.url, prefix="nobody")
    link.close()


def test_a_message_that_others_share_has_no_id_to_publish_again_under(nats: Nats, nats_node: Node) -> None:
    """The server would take one job, published alone under the id of the array, for all of them."""
    link = LossyLink(nats.port)
    with Publisher.connect(link.url, ack_timeout=0.2, give_up_after=0.5) as publisher:
        link.is_deaf = True
        for future in [publisher.submit(job(member)) for member in members_of(1, 3, 3)]:
            with pytest.raises(PublishError) as unknown:
                future.result(60)
            assert (unknown.value.message_id, unknown.value.may_be_stored) == (None, True)
        with pytest.raises(PublishManyError) as many:
            publisher.publish_many([job("p42")] * 1_500)
        assert many.value.message_id is None and many.value.may_be_stored
        assert [(error.message_id, error.may_be_stored) for error in many.value.errors] == [
            (None, True),
            (None, False),
        ]
        link.is_deaf = False
    link.close()


def test_what_was_given_up_without_a_connection_is_not_stored_later(tmp_path: Path) -> None:
    """Copies that wait in memory for a connection would arrive when the server has forgotten their id."""
    nats = Nats(tmp_path)
    node = Node(tmp_path, "--nats", nats.url, "--shards", "3")
    before = last_sequences(nats, 3)
    is_lost = threading.Event()

    async def lost() -> None:
        is_lost.set()

    options: Dict[str, Any] = {"disconnected_cb": lost, "reconnect_time_wait": 0.05}
    with Publisher.connect(nats.url, ack_timeout=0.2, give_up_after=1.0, **options) as publisher:
        nats.kill()
        assert is_lost.wait(60)
        with pytest.raises(PublishError) as given_up:
            publisher.publish(job("p42"), message_id="match-1")
        assert not given_up.value.may_be_stored, "nothing was sent"
        with pytest.raises(ConnectionFailedError) as unsent:
            publisher.write([job("p42")])
        assert not unsent.value.may_be_applied
        nats.start()

        def stored() -> bool:
            try:
                return publisher.publish(job("p42"), message_id="match-2") == f"1:{before[1] + 1}"
            except PublishError:
                return False

        until("what is published later is the next message", stored)
    assert last_sequences(nats, 3)[1] == before[1] + 1
    node.kill()
    nats.kill()


def test_close_waits_for_all_that_was_called(nats: Nats, nats_node: Node) -> None:
    member = members_of(1, 3, 1)[0]

    async def play() -> str:
        publisher = await AsyncPublisher.connect(nats.url, max_waiting=1)
        calls = [asyncio.ensure_future(publisher.publish(job(member))) for _ in range(20)]
        many = asyncio.ensure_future(publisher.publish_many([job(member)] * 2_001))
        await asyncio.sleep(0)
        await publisher.aclose()
        assert all(call.done() for call in [*calls, many])
        with pytest.raises(RanktreeError, match="closed"):
            await publisher.publish(job(member))
        return latest(await many, *[await call for call in calls]) or ""

    token = asyncio.run(play())
    with Ranktree(nats_node.url) as client:
        assert client.member("arena", member, after=token)["score"] == 2_021
    publisher = Publisher.connect(nats.url)
    futures = [publisher.submit(job(member)) for _ in range(2_000)]
    publisher.close()
    assert all(future.done() for future in futures)
    publisher.close()
    for closed in (publisher.submit, publisher.publish):
        with pytest.raises(RanktreeError, match="closed"):
            closed(job(member))
    with pytest.raises(RanktreeError, match="closed"):
        publisher.publish_many([job(member)])


def test_a_restarted_server_gets_what_waited(tmp_path: Path) -> None:
    nats = Nats(tmp_path)
    node = Node(tmp_path, "--nats", nats.url, "--shards", "3")
    with Ranktree(node.url) as client, Publisher.connect(nats.url, reconnect_time_wait=0.05) as publisher:
        client.define("arena", {"policy": "incr"})
        nats.kill()
        futures = [publisher.submit(job(f"p{number}")) for number in range(100)]
        nats.start()
        token = latest(*[future.result(timeout=60) for future in futures])
        page = client.top("arena", limit=1000, after=token, timeout_ms=60_000)
        assert [entry["score"] for entry in page["entries"]] == [1] * 100
    node.kill()
    nats.kill()


def test_nodes_write_jobs_and_answer(nats: Nats, nats_node: Node) -> None:
    first, second = members_of(2, 3, 2)
    with Publisher.connect(nats.url) as publisher:
        written = publisher.write([job(first, 2**60, "set"), job(second, 5)])
        entry = written["results"][0]["entry"]
        assert entry and entry["score"] == 2**60
        short = publisher.write([job(first)], changed_only=True)
        assert short["results"] == [{"changed": True}]
        with pytest.raises(InvalidError) as invalid:
            publisher.write([{"board": "no board", "member": first, "score": 1}])
        assert invalid.value.errors[0]["index"] == 0
        with pytest.raises(ValueError, match="belong to one shard"):
            publisher.write([job("p42"), job("alice")])
        nats_node.kill()

        def is_unavailable() -> bool:
            with pytest.raises((UnavailableError, ConnectionFailedError)) as nobody:
                publisher.write([job(first)], timeout=1.0)
            return isinstance(nobody.value, UnavailableError)

        until("the server knows that the node is gone", is_unavailable)


def test_a_game_with_the_least_permissions_publishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("NODE", "GAME", "REJECTS"):
        monkeypatch.setenv(f"RANKTREE_{user}_PASSWORD", f"nats_{user}")
    monkeypatch.setenv("RANKTREE_NATS_PASSWORD", "nats_NODE")
    config = tmp_path / "nats.conf"
    config.write_text((ROOT / "deploy" / "nats" / "ranktree.conf").read_text(encoding="utf-8"))
    nats = Nats(tmp_path, "-c", str(config))
    node = Node(tmp_path, "--nats", nats.url, "--nats-user", "node", "--shards", "3")
    with Ranktree(node.url) as client:
        client.define("arena")
        inbox = "_INBOX.game"
        with Publisher.connect(
            nats.url, shards=3, user="game", password="nats_GAME", inbox_prefix=inbox
        ) as publisher:
            token = publisher.publish(job("p42"), message_id="match-1")
            assert publisher.publish(job("p42"), message_id="match-1") == token
            assert client.member("arena", "p42", after=token)["score"] == 1
            assert publisher.write([job("p42")], changed_only=True)["results"] == [{"changed": True}]
    with pytest.raises(RanktreeError, match="give shards="):
        Publisher.connect(nats.url, user="game", password="nats_GAME", inbox_prefix=inbox)
    node.kill()
    nats.kill()


def test_the_async_publisher_does_the_same(nats: Nats, nats_node: Node) -> None:
    async def play() -> str:
        async with await AsyncPublisher.connect(nats.url, max_waiting=10) as publisher:
            tokens = await asyncio.gather(*[publisher.publish(job(f"p{number}")) for number in range(500)])
            waiting = asyncio.ensure_future(publisher.publish(job("p1")))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return latest(*tokens) or ""

    token = asyncio.run(play())
    with Ranktree(nats_node.url) as client:
        assert client.board("arena", after=token)["totals"]["all"] == 500
