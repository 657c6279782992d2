"""Where a node is, and what it is asked with: secrets are in no message."""

from __future__ import annotations

from typing import Any, Callable, List

import httpx
import pytest
from support import Node, free_port

from ranktree import (
    AsyncRanktree,
    ConnectionFailedError,
    NotFoundError,
    ProblemError,
    Ranktree,
    WrongAddressError,
)
from ranktree.nats import Publisher

SECRET = "rkt_abc"


def sends(seen: List[httpx.Request]) -> httpx.Client:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"token": "0:1"})

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_a_token_is_taken_as_a_file_has_it() -> None:
    seen: List[httpx.Request] = []
    for bearer in (SECRET, f"{SECRET}\n", f" {SECRET} \r\n", f"\t{SECRET}"):
        Ranktree(bearer=bearer, http=sends(seen)).drop("arena")
    assert [one.headers["Authorization"] for one in seen] == [f"Bearer {SECRET}"] * 4
    Ranktree(bearer=" \n", http=sends(seen)).drop("arena")
    assert "Authorization" not in seen[-1].headers


def test_what_is_no_token_is_refused_and_not_shown() -> None:
    for wrong in (f"{SECRET} x", f"{SECRET}\nx", f"{SECRET}\0", f"{SECRET}é", f"{SECRET}\u2028x"):
        for client in (Ranktree, AsyncRanktree):
            with pytest.raises(ValueError, match="the bearer token") as error:
                client(bearer=wrong)
            assert SECRET not in repr(error.value)


def test_credentials_of_an_address_are_sent_and_not_shown() -> None:
    seen: List[httpx.Request] = []
    Ranktree("http://user:pass@127.0.0.1:8080/", http=sends(seen)).drop("arena")
    assert seen[0].headers["Authorization"].startswith("Basic ")
    with pytest.raises(ValueError, match="give one of the two"):
        Ranktree("http://user:pass@127.0.0.1:8080", bearer=SECRET)
    port = free_port()
    with Ranktree(f"http://user:{SECRET}@127.0.0.1:{port}", retries=0) as client:
        with pytest.raises(ConnectionFailedError, match=f"http://127.0.0.1:{port} did not answer") as failed:
            client.board("arena")
        assert SECRET not in repr(failed.value) + repr(failed.value.__cause__)
    for wrong in (
        f"ftp://user:{SECRET}@host",
        f"user:{SECRET}@host",
        f"http://user:{SECRET}/x@host",
        f"http://user:x@{SECRET}:port",
        f"http://user:{SECRET}#x@host",
        f"http://user:{SECRET}?x@host",
        f"http://{SECRET}\n@host",
        "http://",
    ):
        with pytest.raises(ValueError, match="the address of a node") as refused:
            Ranktree(wrong)
        assert SECRET not in repr(refused.value) + repr(refused.value.__cause__), wrong
    for wrong in (f"nats://user:{SECRET}@host:port", f"nats://user:{SECRET}/x@host", f"http://{SECRET}@host"):
        with pytest.raises(ValueError, match="the address of a server") as no_server:
            Publisher.connect(wrong)
        assert SECRET not in repr(no_server.value)


def test_a_wrong_address_is_not_a_member_that_is_not_there(node: Node) -> None:
    with Ranktree(f"{node.url}/foo") as client:
        for call in (lambda: client.member("arena", "p42"), lambda: client.drop("arena")):
            with pytest.raises(WrongAddressError, match="the client's address") as wrong:
                call()
            assert not isinstance(wrong.value, NotFoundError)
            assert (wrong.value.status, wrong.value.code) == (404, "unknown_route")

    def page(status: int) -> httpx.Client:
        html = httpx.Response(status, text="<html>nothing of ranktree's</html>")
        return httpx.Client(transport=httpx.MockTransport(lambda _: html))

    for status in (200, 404):
        with pytest.raises(WrongAddressError):
            Ranktree(http=page(status)).member("arena", "p42")
    with pytest.raises(ProblemError) as proxy:
        Ranktree(http=page(502)).member("arena", "p42")
    assert not isinstance(proxy.value, WrongAddressError)


def test_an_empty_id_is_not_sent(client: Ranktree) -> None:
    calls: List[Callable[[], Any]] = [
        lambda: client.member("arena", ""),
        lambda: client.write("arena", "", {"score": 1}),
        lambda: client.around("arena", ""),
        lambda: client.remove_everywhere(""),
        lambda: client.member_boards(""),
        lambda: client.top(""),
        lambda: next(client.live("")),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="is empty"):
            call()
