"""A watched board, of a real node that is killed, stopped and not heard."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Tuple

import httpx
import pytest
from support import LossyLink, Node, free_port, until

from ranktree import AsyncRanktree, ConnectionFailedError, NotFoundError, NotYetAppliedError, Ranktree
from ranktree.types import LiveState


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A node of its own, which tests may kill."""
    started = Node(tmp_path, "--shards", "2")
    with Ranktree(started.url) as client:
        client.define("arena", {"ties": "member"})
    yield started
    started.kill()


class Watch:
    """Watches beside the test, and keeps what it is shown, until the board is dropped."""

    def __init__(self, url: str, timeout: float = 10.0, **options: Any) -> None:
        self.states: List[LiveState] = []
        self.error: Optional[BaseException] = None
        self._url, self._timeout = url, timeout
        self._thread = threading.Thread(target=self._run, args=(options,), daemon=True)
        self._thread.start()

    def _run(self, options: Any) -> None:
        try:
            with Ranktree(self._url, timeout=self._timeout) as client:
                for state in client.live("arena", max_rate=20, **options):
                    self.states.append(state)
        except Exception as error:
            self.error = error

    def shows(self, what: str, found: Callable[[LiveState], bool]) -> LiveState:
        return until(what, lambda: self.states[-1] if self.states and found(self.states[-1]) else None)

    def end(self) -> Optional[BaseException]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.error


def shown(state: LiveState) -> List[Tuple[str, Any]]:
    return [(entry["member"], entry["score"]) for entry in state["entries"]]


def is_best(score: int) -> Callable[[LiveState], bool]:
    return lambda state: bool(state["entries"]) and state["entries"][0]["score"] == score


def test_the_whole_state_comes_first_and_then_what_changed(node: Node, client: Ranktree) -> None:
    client.write("arena", "alice", {"score": 3})
    token = client.write("arena", "bob", {"score": 2**60})["token"]
    watch = Watch(node.url, top=2, members=["nobody", "a,b c", "carol\u2028"], after=token)
    first = watch.shows("the state", lambda state: True)
    assert shown(first) == [("bob", 2**60), ("alice", 3)]
    assert (first["members"], first["not_found"]) == ([], ["nobody", "a,b c", "carol\u2028"])
    client.write("arena", "carol\u2028", {"score": 1})
    client.write("arena", "a,b c", {"score": 0})
    second = watch.shows("the watched members", lambda state: len(state["members"]) == 2)
    places = [(entry["member"], entry["position"]) for entry in second["members"]]
    assert places == [("a,b c", 4), ("carol\u2028", 3)]
    assert (second["not_found"], second["total"]) == (["nobody"], 4)
    client.write("arena", "carol\u2028", {"score": 9})
    watch.shows("carol in the top", lambda state: state["entries"][1]["member"] == "carol\u2028")
    client.remove("arena", "bob")
    client.remove("arena", "a,b c")
    third = watch.shows("who has left", lambda state: (state["total"], len(state["not_found"])) == (2, 2))
    assert shown(third) == [("carol\u2028", 9), ("alice", 3)]
    # States that were shown stay as they were.
    assert shown(first) == [("bob", 2**60), ("alice", 3)]
    client.clear("arena")
    watch.shows("the cleared board", lambda state: not state["entries"] and state["total"] == 0)
    client.drop("arena")
    assert isinstance(watch.end(), NotFoundError)
    assert isinstance(Watch(node.url).end(), NotFoundError)


def test_what_is_shown_is_what_a_read_finds(node: Node, client: Ranktree) -> None:
    watch = Watch(node.url, members=["p3", "p17"])
    for turn in range(300):
        member = f"p{turn % 23}"
        if turn % 7 == 3:
            client.remove("arena", member)
        else:
            client.write("arena", member, {"score": turn * 7919 % 50})
    page = client.top("arena", limit=10)
    watch.shows("the last write", lambda state: state["entries"] == page["entries"])
    group = client.lookup("arena", ["p3", "p17"])
    state = watch.shows("the total", lambda state: state["total"] == page["total"])
    found = {entry["member"]: entry["position"] for entry in group["entries"]}
    assert {entry["member"]: entry["position"] for entry in state["members"]} == found
    client.drop("arena")
    watch.end()


def test_a_slow_loop_is_told_of_the_newest_state_at_last(client: Ranktree) -> None:
    client.write("arena", "p", {"score": 0})
    seen: List[Any] = []
    for state in client.live("arena", max_rate=20):
        seen.append(state["entries"][0]["score"])
        if len(seen) == 1:
            for score in range(1, 101):
                client.write("arena", "p", {"score": score})
        if seen[-1] == 100:
            break
    # How many it misses depends on how much the connection holds.
    assert seen == sorted(set(seen))


def test_a_lost_connection_is_gone_on_with_from_the_last_event(node: Node, client: Ranktree) -> None:
    link = LossyLink(int(node.url.rsplit(":", 1)[1]))
    client.write("arena", "p", {"score": 1})
    watch = Watch(f"http://127.0.0.1:{link.port}", timeout=0.3)
    watch.shows("the state", is_best(1))
    link.sent = b""
    link.cut()
    client.write("arena", "p", {"score": 2})
    watch.shows("what came meanwhile", is_best(2))
    assert re.search(rb"last-event-id: [0-9a-f]{16}@\d+:\d+", link.sent, re.IGNORECASE)
    assert not any(state.get("stale") for state in watch.states)
    # Nothing comes, not even a comment: that connection is lost as well.
    link.is_deaf = True
    before = link.connections
    client.write("arena", "p", {"score": 3})
    until("another connection", lambda: link.connections > before)
    link.is_deaf = False
    watch.shows("the lost event", is_best(3))
    client.drop("arena")
    watch.end()
    link.close()


def test_a_node_that_is_killed_or_stopped_is_waited_for(node: Node, client: Ranktree) -> None:
    client.write("arena", "p", {"score": 1})
    watch = Watch(node.url, members=["p"])
    watch.shows("the state", is_best(1))
    node.kill()
    stale = watch.shows("that it is stale", lambda state: state.get("stale", False))
    assert shown(stale) == [("p", 1)]
    node.start()
    watch.shows("that it is not stale any more", lambda state: not state.get("stale"))
    node.stop()
    node.start()
    client.write("arena", "p", {"score": 2})
    assert watch.shows("what came later", is_best(2))["members"][0]["score"] == 2
    client.drop("arena")
    assert isinstance(watch.end(), NotFoundError)


def test_the_first_connection_fails_as_a_read_does(node: Node, client: Ranktree) -> None:
    with Ranktree(f"http://127.0.0.1:{free_port()}") as absent:
        with pytest.raises(ConnectionFailedError):
            next(iter(absent.live("arena")))
    with pytest.raises(NotYetAppliedError):
        next(iter(client.live("arena", after="0:1000000", timeout_ms=10)))


def watchers(node: Node) -> int:
    found = re.search(r"^ranktree_live_watchers (\d+)$", httpx.get(f"{node.url}/metrics").text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def test_the_async_client_does_the_same(node: Node) -> None:
    async def play() -> None:
        async with AsyncRanktree(node.url) as client:
            await client.write("arena", "p", {"score": 1})
            async for state in client.live("arena", max_rate=20):
                if state["entries"][0]["score"] == 1:
                    assert watchers(node) == 1
                    await client.write("arena", "p", {"score": 2})
                else:
                    break
            assert state["entries"][0]["score"] == 2
            # A task that watches may be cancelled.
            shows: "asyncio.Future[LiveState]" = asyncio.get_running_loop().create_future()

            async def watch() -> None:
                async for state in client.live("arena"):
                    shows.set_result(state)

            watching = asyncio.ensure_future(watch())
            assert (await shows)["total"] == 1
            watching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await watching
            while watchers(node):
                await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(play(), 60))
