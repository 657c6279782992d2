"""The blocking client. `make clients-generate` writes it from `_async_client.py`: do not edit."""

from __future__ import annotations

import time
from datetime import datetime
from types import TracebackType
from typing import Any, Iterator, Dict, List, Mapping, Optional, Sequence, Type, Union, cast

import httpx
from typing_extensions import Self, Unpack

from . import types
from ._codec import decode, encode, path, query, split_url, target, waits
from ._live import HEARTBEAT, LiveView
from ._retry import PAUSE_MAX, is_read, pause, repeatable, spread, tries
from .errors import ConnectionFailedError, ProblemError, problem
from .tokens import latest


class Ranktree:
    """Writes and reads over HTTP, through any node.

    One client may be used by many tasks or threads at a time; it keeps connections open until it is closed.
    Answers are plain dictionaries, whose types are in `ranktree.types`.

    - `bearer`: the token that the node asks for, if it does.
    - `timeout`: seconds for a request. A read with `after` gets the time that it may wait in addition.
    - `retries`: how often a read is sent again if no answer came or the node was overloaded. A write is sent
      again only if it certainly was not taken.
    - `http`: an `httpx` client of your own, for proxies or certificates. It is not closed with this one.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        bearer: Optional[str] = None,
        timeout: float = 10.0,
        retries: int = 2,
        http: Optional[httpx.Client] = None,
    ) -> None:
        self._url, self._called = split_url(url)
        self._timeout = timeout
        self._retries = retries
        self._headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        self._is_own = http is None
        self._http = http or httpx.Client()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        if self._is_own:
            self._http.close()

    # Boards

    def define(
        self,
        board: str,
        definition: Optional[types.DefinitionInput] = None,
    ) -> types.DefinedBoard:
        """Creates a board, or changes what can be changed of it."""
        answer = self._send("PUT", path("boards", board), body=definition or {})
        return cast(types.DefinedBoard, answer)

    def boards(self, **options: Unpack[types.BoardsQuery]) -> types.BoardList:
        """A page of the boards, by name."""
        return cast(types.BoardList, self._send("GET", path("boards"), options))

    def board(self, board: str, **options: Unpack[types.BoardQuery]) -> types.Board:
        """A board's definition, and how many entries it has."""
        return cast(types.Board, self._send("GET", path("boards", board), options))

    def open_season(
        self,
        board: str,
        at: Optional[Union[str, datetime]] = None,
    ) -> types.OpenedSeason:
        """Opens the next manual season of a board, at a time or as soon as possible. It is sent once."""
        body = {} if at is None else {"at": at}
        answer = self._send("POST", path("boards", board) + "/seasons", body=body)
        return cast(types.OpenedSeason, answer)

    def drop(self, board: str) -> types.DroppedBoard:
        """Drops a board with all its entries."""
        return cast(types.DroppedBoard, self._send("DELETE", path("boards", board)))

    def clear(self, board: str) -> types.RemovedEntries:
        """Removes all entries; the definition stays."""
        return cast(types.RemovedEntries, self._send("POST", path("boards", board) + ":clear"))

    def trim(
        self,
        board: str,
        *,
        positions_beyond: Optional[int] = None,
        worse_than: Optional[types.ScoreInput] = None,
    ) -> types.RemovedEntries:
        """Removes the entries behind a position, or those with a worse score: give one of the two."""
        body = {"positions_beyond": positions_beyond, "worse_than": worse_than}
        body = {key: value for key, value in body.items() if value is not None}
        answer = self._send("POST", path("boards", board) + ":trim", body=body)
        return cast(types.RemovedEntries, answer)

    # Writes

    def write(
        self,
        board: str,
        member: str,
        job: types.EntryInput,
        **options: Unpack[types.PutMemberQuery],
    ) -> types.EntryWritten:
        """One job: `write("arena", "p42", {"score": 1200, "op": "best"}, wait="applied")`.

        With NATS and without `wait="applied"`, the answer has a `token` and nothing else.
        """
        route = path("boards", board, "members", member)
        return cast(types.EntryWritten, self._send("PUT", route, options, job))

    def write_many(
        self,
        jobs: Sequence[types.Job],
        **options: Unpack[types.JobsQuery],
    ) -> types.JobsWritten:
        """1 to 1,000 jobs of any members. If one is invalid, none is applied: see `InvalidError.errors`.

        With NATS and without `wait="applied"`, the answer has a `token` and nothing else.
        """
        return cast(types.JobsWritten, self._send("POST", path("jobs"), options, list(jobs)))

    def remove(
        self,
        board: str,
        member: str,
        **options: Unpack[types.DeleteMemberQuery],
    ) -> types.EntryWritten:
        """Takes a member off a board."""
        route = path("boards", board, "members", member)
        return cast(types.EntryWritten, self._send("DELETE", route, options))

    def remove_everywhere(
        self,
        member: str,
        **options: Unpack[types.DeleteEverywhereQuery],
    ) -> types.MemberRemoved:
        """Takes a member off every board."""
        return cast(types.MemberRemoved, self._send("DELETE", path("members", member), options))

    # Reads

    def member(self, board: str, member: str, **options: Unpack[types.MemberQuery]) -> types.Entry:
        """A member's score, rank, position and percentile. `NotFoundError` if it is not on the board."""
        return cast(types.Entry, self._send("GET", path("boards", board, "members", member), options))

    def around(self, board: str, member: str, **options: Unpack[types.AroundQuery]) -> types.Neighbours:
        """A member and its neighbours."""
        route = path("boards", board, "members", member, "around")
        return cast(types.Neighbours, self._send("GET", route, options))

    def top(self, board: str, **options: Unpack[types.TopQuery]) -> types.Page:
        """A page of the best, or with `from_="bottom"` of the worst."""
        return cast(types.Page, self._send("GET", path("boards", board, "top"), options))

    def positions(
        self,
        board: str,
        position: int,
        **options: Unpack[types.PositionsQuery],
    ) -> types.Page:
        """A page from any position on, counted from 1."""
        route = path("boards", board, "positions", str(position))
        return cast(types.Page, self._send("GET", route, options))

    def range(self, board: str, **options: Unpack[types.RangeQuery]) -> types.Page:
        """A page of the entries whose first key lies between `min` and `max`."""
        return cast(types.Page, self._send("GET", path("boards", board, "range"), options))

    def lookup(
        self,
        board: str,
        members: Sequence[str],
        **options: Unpack[types.LookupQuery],
    ) -> types.Group:
        """Up to 1,000 members among themselves: friends' boards."""
        route = path("boards", board, "members") + ":lookup"
        return cast(types.Group, self._send("POST", route, options, {"members": list(members)}))

    def rank(
        self,
        board: str,
        score: types.ScoreInput,
        **options: Unpack[types.RankQuery],
    ) -> types.Rank:
        """The rank of a score, whether or not anybody has it."""
        route = path("boards", board, "rank")
        return cast(types.Rank, self._send("GET", route, {**options, "score": score}))

    def ranks(
        self,
        board: str,
        scores: Sequence[types.ScoreInput],
        **options: Unpack[types.RanksOfQuery],
    ) -> types.Ranks:
        """The ranks of up to 1,000 scores."""
        route = path("boards", board, "ranks") + ":of"
        return cast(types.Ranks, self._send("POST", route, options, {"scores": list(scores)}))

    def score(self, board: str, **options: Unpack[types.ScoreQuery]) -> types.Place:
        """The score at a `rank`, a `position` or a `percentile`: give one of the three."""
        return cast(types.Place, self._send("GET", path("boards", board, "score"), options))

    def count(self, board: str, **options: Unpack[types.CountQuery]) -> types.Count:
        """How many entries lie between `min` and `max`."""
        return cast(types.Count, self._send("GET", path("boards", board, "count"), options))

    def histogram(self, board: str, **options: Unpack[types.HistogramQuery]) -> types.Histogram:
        """How scores are spread, over equal `buckets` or between `edges`."""
        return cast(types.Histogram, self._send("GET", path("boards", board, "histogram"), options))

    def percentiles(
        self,
        board: str,
        p: Sequence[float],
        **options: Unpack[types.PercentilesQuery],
    ) -> types.Percentiles:
        """The scores at some percentiles."""
        route = path("boards", board, "percentiles")
        return cast(types.Percentiles, self._send("GET", route, {**options, "p": list(p)}))

    def member_boards(
        self,
        member: str,
        **options: Unpack[types.MemberBoardsQuery],
    ) -> types.MemberBoards:
        """A member's entries on some boards, or a page of all."""
        return cast(types.MemberBoards, self._send("GET", path("members", member), options))

    def rejects(self, **options: Unpack[types.RejectsQuery]) -> types.RejectList:
        """A page of the jobs that were refused, newest first."""
        return cast(types.RejectList, self._send("GET", path("rejects"), options))

    def status(self) -> types.Status:
        """The state of the node, and of every shard."""
        return cast(types.Status, self._send("GET", path("status")))

    # All pages. Each page is at least as new as the one before, also if another node answers.

    def iter_top(
        self,
        board: str,
        **options: Unpack[types.TopQuery],
    ) -> Iterator[types.ListedEntry]:
        """All entries from an end of a board on, best or worst first. `limit` is the size of a page."""
        for page in self._pages(path("boards", board, "top"), options):
            for entry in page["entries"]:
                yield entry

    def iter_range(
        self,
        board: str,
        **options: Unpack[types.RangeQuery],
    ) -> Iterator[types.ListedEntry]:
        """All entries between `min` and `max`. `limit` is the size of a page."""
        for page in self._pages(path("boards", board, "range"), options):
            for entry in page["entries"]:
                yield entry

    def iter_boards(self, **options: Unpack[types.BoardsQuery]) -> Iterator[types.ListedBoard]:
        """All boards, by name. `limit` is the size of a page."""
        for page in self._pages(path("boards"), options):
            for board in page["boards"]:
                yield board

    def iter_member_boards(
        self,
        member: str,
        **options: Unpack[types.MemberBoardsQuery],
    ) -> Iterator[types.Entry]:
        """A member's entries on all boards."""
        for page in self._pages(path("members", member), options):
            for entry in page["entries"]:
                yield entry

    def iter_rejects(self, **options: Unpack[types.RejectsQuery]) -> Iterator[types.Reject]:
        """All jobs that were refused, newest first. `limit` is the size of a page."""
        for page in self._pages(path("rejects"), options):
            for reject in page["rejects"]:
                yield reject

    def _pages(self, route: str, options: Mapping[str, Any]) -> Iterator[Any]:
        options = dict(options)
        while True:
            page = self._send("GET", route, options)
            yield page
            if not page.get("next_cursor"):
                return
            options["cursor"] = page["next_cursor"]
            if "as_of" in page and not options.get("partial"):
                options["after"] = latest(options.get("after"), page["as_of"])

    # A board as it changes

    def live(self, board: str, **options: Unpack[types.LiveQuery]) -> Iterator[types.LiveState]:
        """The top of a board, and `members` wherever they are, as they change.

        Each turn of the loop has the whole state. A loop that is slow misses states, never the newest one. A
        lost connection is made again, to whichever node answers, for as long as the loop goes on; `stale` is
        true meanwhile, if connecting fails. The loop ends with an exception when there is nothing to watch any
        more: `NotFoundError` if the board was dropped, `AccessError` if the token was taken back.
        """
        route = path("boards", board, "live")
        parameters = query(options)
        read = self._timeout + max(HEARTBEAT, waits(parameters))
        view = LiveView(options.get("members") or [])
        failures = 0
        while True:
            rest: Optional[float] = None
            headers = {**self._headers, "Accept": "text/event-stream"}
            if view.last_event_id is not None:
                # A state that was shown is named by its id.
                headers["Last-Event-ID"] = view.last_event_id
                parameters.pop("after", None)
                parameters.pop("timeout_ms", None)
            view.begin()
            try:
                with self._http.stream(
                    "GET",
                    self._url + target(route, parameters),
                    headers=headers,
                    # The service says something all the time. The loop's own time does not count.
                    timeout=httpx.Timeout(self._timeout, read=read),
                ) as answer:
                    if not answer.is_success:
                        answer.read()
                        told = answer.headers.get("Retry-After")
                        raise problem(answer.status_code, body_of(answer), told)
                    for data in answer.iter_bytes():
                        if view.feed(data) and view.state is not None:
                            failures = 0
                            yield view.state
                # The node shuts down.
            except ProblemError as error:
                if (view.state is None and failures >= self._retries) or not view.goes_on(route, error):
                    raise
                rest = error.retry_after
                if rest is not None and view.state is None:
                    rest = min(rest, PAUSE_MAX)
            except httpx.TransportError as error:
                if view.state is None and failures >= self._retries:
                    raise self._failed("GET", route, error) from error
            if view.state is not None and failures == 1:
                yield view.stale()
            if rest is None:
                rest = pause(failures) if view.state is None else spread(view.reconnect)
            time.sleep(rest)
            failures += 1

    # Requests

    def _send(
        self,
        method: str,
        route: str,
        options: Mapping[str, Any] = {},
        body: Optional[Union[Mapping[str, Any], List[Any]]] = None,
    ) -> Any:
        parameters = query(options)
        content = None if body is None else encode(body)
        for attempt in tries(self._retries):
            try:
                return self._once(method, route, parameters, content)
            except ProblemError as error:
                if attempt.is_last or not repeatable(method, route, error):
                    raise
                rest = error.retry_after
            except ConnectionFailedError as error:
                if attempt.is_last or error.may_be_applied:
                    raise
                rest = None
            time.sleep(attempt.pause if rest is None else min(rest, PAUSE_MAX))
        raise AssertionError("the last try returns or raises")

    def _once(
        self,
        method: str,
        route: str,
        parameters: Dict[str, str],
        content: Optional[bytes],
    ) -> Any:
        headers = dict(self._headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = self._http.request(
                method,
                self._url + target(route, parameters),
                content=content,
                headers=headers,
                timeout=self._timeout + waits(parameters),
            )
        except httpx.TransportError as error:
            raise self._failed(method, route, error) from error
        value = body_of(answer)
        if not answer.is_success or value is None:
            raise problem(answer.status_code, value, answer.headers.get("Retry-After"))
        return value

    def _failed(self, method: str, route: str, error: httpx.TransportError) -> ConnectionFailedError:
        # Nothing was sent if there was no connection to send it on.
        unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
        may_be_applied = not unsent and not is_read(method, route)
        why = str(error) or type(error).__name__
        return ConnectionFailedError(f"{self._called} did not answer {method} {route}: {why}", may_be_applied)


def body_of(answer: httpx.Response) -> Any:
    """What an answer says; `None` if it is not JSON."""
    try:
        return decode(answer.content) if answer.content else None
    except ValueError:
        return None
