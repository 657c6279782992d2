"""Without asyncio. `make clients-generate` writes it from `_async_client.py`: do not edit."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Iterator, Optional, Sequence, Union, overload

import httpx
from typing_extensions import Unpack

from . import types
from ._requests import Requests, refused
from ._codec import encode, given, path, query, target, waits
from ._live import HEARTBEAT, LiveView
from ._retry import PAUSE_MAX, pause, spread
from .errors import ProblemError


class Ranktree(Requests):
    """Writes and reads over HTTP, through any node.

    One client may be used by many tasks or threads at a time; it keeps connections open until it is closed.
    Answers are plain dictionaries, whose types are in `ranktree.types`.

    - `url`: where a node is. With `http://user:password@host` it is asked with these, for a proxy that wants
      them; then there is no `bearer`.
    - `bearer`: the token that the node asks for, if it does. White space around it does not count.
    - `timeout`: seconds for a request. A read with `after` gets the time that it may wait in addition.
    - `retries`: how often a read is sent again if no answer came or the node was overloaded. A write is sent
      again only if it certainly was not taken.
    - `http`: an `httpx` client of your own, for proxies or certificates. It is not closed with this one.
    """

    # Boards

    def define(
        self,
        board: str,
        definition: Optional[types.DefinitionInput] = None,
        **options: Unpack[types.PutBoardQuery],
    ) -> types.DefinedBoard:
        """Creates a board, or changes what can be changed of it."""
        body = encode(definition or {}, types.DefinitionInput)
        return self._send(types.DefinedBoard, "PUT", path("boards", board), options, body)

    def boards(self, **options: Unpack[types.BoardsQuery]) -> types.BoardList:
        """A page of the boards, by name."""
        return self._send(types.BoardList, "GET", path("boards"), options)

    def board(self, board: str, **options: Unpack[types.BoardQuery]) -> types.Board:
        """A board's definition, and how many entries it has."""
        return self._send(types.Board, "GET", path("boards", board), options)

    def open_season(
        self,
        board: str,
        at: Optional[Union[str, datetime]] = None,
        *,
        name: Optional[str] = None,
        **options: Unpack[types.OpenSeasonQuery],
    ) -> types.OpenedSeason:
        """Opens or plans the next manual season, at a time or as soon as possible. It is sent once.

        With a `name`, the next one's, you may repeat it.
        """
        body = encode(given(at=at, name=name), types.SeasonInput)
        return self._send(types.OpenedSeason, "POST", path("boards", board, "seasons"), options, body)

    def move_season(
        self,
        board: str,
        season: str,
        at: Union[str, datetime],
        **options: Unpack[types.MoveSeasonQuery],
    ) -> types.OpenedSeason:
        """Has a planned season begin at another time."""
        route = path("boards", board, "seasons", season)
        body = encode({"at": at}, types.MovedSeasonInput)
        return self._send(types.OpenedSeason, "PUT", route, options, body)

    def cancel_season(
        self,
        board: str,
        season: str,
        **options: Unpack[types.CancelSeasonQuery],
    ) -> types.CancelledSeason:
        """Cancels a planned season."""
        route = path("boards", board, "seasons", season)
        return self._send(types.CancelledSeason, "DELETE", route, options)

    def drop(self, board: str, **options: Unpack[types.DeleteBoardQuery]) -> types.DroppedBoard:
        """Drops a board with all its entries."""
        return self._send(types.DroppedBoard, "DELETE", path("boards", board), options)

    def clear(self, board: str, **options: Unpack[types.ClearBoardQuery]) -> types.RemovedEntries:
        """Removes all entries; the definition stays."""
        return self._send(types.RemovedEntries, "POST", path("boards", board) + ":clear", options)

    def trim(
        self,
        board: str,
        *,
        positions_beyond: Optional[int] = None,
        worse_than: Optional[types.ScoreInput] = None,
        better_than: Optional[types.ScoreInput] = None,
        **options: Unpack[types.TrimBoardQuery],
    ) -> types.RemovedEntries:
        """Removes the entries behind a position, or with a worse or better score: give one of the three."""
        wanted = given(positions_beyond=positions_beyond, worse_than=worse_than, better_than=better_than)
        body = encode(wanted, types.TrimInput)
        return self._send(types.RemovedEntries, "POST", path("boards", board) + ":trim", options, body)

    def set_read_only(
        self,
        wanted: types.ReadOnlyInput,
        **options: Unpack[types.SetReadOnlyQuery],
    ) -> types.ReadOnlySet:
        """Has a board, or the service, refuse writes with a reason, or take them again."""
        body = encode(wanted, types.ReadOnlyInput)
        return self._send(types.ReadOnlySet, "POST", path("readonly"), options, body)

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
        return self._send(types.EntryWritten, "PUT", route, options, encode(job, types.EntryInput))

    def write_many(
        self,
        jobs: Sequence[types.Job],
        **options: Unpack[types.JobsQuery],
    ) -> types.JobsWritten:
        """1 to 1,000 jobs of any members. If one is invalid, none is applied: see `InvalidError.errors`.

        With NATS and without `wait="applied"`, the answer has a `token` and nothing else.
        """
        body = encode(list(jobs), types.Job)
        return self._send(types.JobsWritten, "POST", path("jobs"), options, body)

    def remove(
        self,
        board: str,
        member: str,
        **options: Unpack[types.DeleteMemberQuery],
    ) -> types.EntryWritten:
        """Takes a member off a board."""
        route = path("boards", board, "members", member)
        return self._send(types.EntryWritten, "DELETE", route, options)

    def remove_everywhere(
        self,
        member: str,
        **options: Unpack[types.DeleteEverywhereQuery],
    ) -> types.MemberRemoved:
        """Takes a member off every board."""
        return self._send(types.MemberRemoved, "DELETE", path("members", member), options)

    # Reads

    @overload
    def member(
        self,
        board: str,
        member: str,
        *,
        windows: None = None,
        **options: Unpack[types.MemberQuery],
    ) -> types.Entry: ...

    @overload
    def member(
        self,
        board: str,
        member: str,
        *,
        windows: str,
        **options: Unpack[types.MemberQuery],
    ) -> types.EntryByWindow: ...

    def member(
        self,
        board: str,
        member: str,
        *,
        windows: Optional[str] = None,
        **options: Unpack[types.MemberQuery],
    ) -> Union[types.Entry, types.EntryByWindow]:
        """A member's score, rank, position and percentile. `NotFoundError` if it is not on the board.

        With `windows`, names joined by commas or `*`, its entries in several windows.
        """
        route = path("boards", board, "members", member)
        if windows is None:
            return self._send(types.Entry, "GET", route, options)
        return self._send(types.EntryByWindow, "GET", route, {**options, "windows": windows})

    def around(self, board: str, member: str, **options: Unpack[types.AroundQuery]) -> types.Neighbours:
        """A member and its neighbours."""
        route = path("boards", board, "members", member, "around")
        return self._send(types.Neighbours, "GET", route, options)

    def top(self, board: str, **options: Unpack[types.TopQuery]) -> types.Page:
        """A page of the best, or with `from_="bottom"` of the worst."""
        return self._send(types.Page, "GET", path("boards", board, "top"), options)

    def positions(
        self,
        board: str,
        position: int,
        **options: Unpack[types.PositionsQuery],
    ) -> types.Page:
        """A page from any position on, counted from 1."""
        route = path("boards", board, "positions", str(position))
        return self._send(types.Page, "GET", route, options)

    def range(self, board: str, **options: Unpack[types.RangeQuery]) -> types.Page:
        """A page of the entries whose first key lies between `min` and `max`."""
        return self._send(types.Page, "GET", path("boards", board, "range"), options)

    def lookup(
        self,
        board: str,
        members: Sequence[str],
        **options: Unpack[types.LookupQuery],
    ) -> types.Group:
        """Up to 1,000 members among themselves: friends' boards."""
        route = path("boards", board, "members") + ":lookup"
        body = encode({"members": list(members)}, types.LookupInput)
        return self._send(types.Group, "POST", route, options, body)

    def rank(
        self,
        board: str,
        score: types.ScoreInput,
        **options: Unpack[types.RankQuery],
    ) -> types.Rank:
        """The rank of a score, whether or not anybody has it."""
        route = path("boards", board, "rank")
        return self._send(types.Rank, "GET", route, {**options, "score": score})

    def ranks(
        self,
        board: str,
        scores: Sequence[types.ScoreInput],
        **options: Unpack[types.RanksOfQuery],
    ) -> types.Ranks:
        """The ranks of up to 1,000 scores."""
        route = path("boards", board, "ranks") + ":of"
        body = encode({"scores": list(scores)}, types.ScoresInput)
        return self._send(types.Ranks, "POST", route, options, body)

    def score(self, board: str, **options: Unpack[types.ScoreQuery]) -> types.Place:
        """The score at a `rank`, a `position` or a `percentile`: give one of the three."""
        return self._send(types.Place, "GET", path("boards", board, "score"), options)

    def count(self, board: str, **options: Unpack[types.CountQuery]) -> types.Count:
        """How many entries lie between `min` and `max`."""
        return self._send(types.Count, "GET", path("boards", board, "count"), options)

    def histogram(self, board: str, **options: Unpack[types.HistogramQuery]) -> types.Histogram:
        """How scores are spread, over equal `buckets` or between `edges`."""
        return self._send(types.Histogram, "GET", path("boards", board, "histogram"), options)

    def percentiles(
        self,
        board: str,
        p: Sequence[float],
        **options: Unpack[types.PercentilesQuery],
    ) -> types.Percentiles:
        """The scores at some percentiles."""
        route = path("boards", board, "percentiles")
        return self._send(types.Percentiles, "GET", route, {**options, "p": list(p)})

    def member_boards(
        self,
        member: str,
        **options: Unpack[types.MemberBoardsQuery],
    ) -> types.MemberBoards:
        """A member's entries on some boards, or a page of all."""
        return self._send(types.MemberBoards, "GET", path("members", member), options)

    def combine(
        self,
        wanted: types.CombineInput,
        **options: Unpack[types.CombineQuery],
    ) -> types.CombinedBoards:
        """A page of boards together: `combine({"boards": {"race": 1, "arena": 0.5}, "limit": 9})`."""
        body = encode(wanted, types.CombineInput)
        return self._send(types.CombinedBoards, "POST", path("boards") + ":combine", options, body)

    def hidden(self, **options: Unpack[types.HiddenQuery]) -> types.HiddenList:
        """A page of the members who are hidden, on a board or on all."""
        return self._send(types.HiddenList, "GET", path("hidden"), options)

    def rejects(self, **options: Unpack[types.RejectsQuery]) -> types.RejectList:
        """A page of the jobs that were refused, newest first."""
        return self._send(types.RejectList, "GET", path("rejects"), options)

    def status(self) -> types.Status:
        """The state of the node, and of every shard."""
        return self._send(types.Status, "GET", path("status"))

    # All pages. Each page is at least as new as the one before, also if another node answers.

    def iter_top(
        self,
        board: str,
        **options: Unpack[types.TopQuery],
    ) -> Iterator[types.ListedEntry]:
        """All entries from an end of a board on, best or worst first. `limit` is the size of a page."""
        for page in self._pages(types.Page, path("boards", board, "top"), options):
            for entry in page["entries"]:
                yield entry

    def iter_range(
        self,
        board: str,
        **options: Unpack[types.RangeQuery],
    ) -> Iterator[types.ListedEntry]:
        """All entries between `min` and `max`. `limit` is the size of a page."""
        for page in self._pages(types.Page, path("boards", board, "range"), options):
            for entry in page["entries"]:
                yield entry

    def iter_boards(self, **options: Unpack[types.BoardsQuery]) -> Iterator[types.ListedBoard]:
        """All boards, by name. `limit` is the size of a page."""
        for page in self._pages(types.BoardList, path("boards"), options):
            for board in page["boards"]:
                yield board

    def iter_member_boards(
        self,
        member: str,
        **options: Unpack[types.MemberBoardsQuery],
    ) -> Iterator[types.Entry]:
        """A member's entries on all boards."""
        for page in self._pages(types.MemberBoards, path("members", member), options):
            for entry in page["entries"]:
                yield entry

    def iter_hidden(self, **options: Unpack[types.HiddenQuery]) -> Iterator[types.Ban]:
        """All who are hidden. `limit` is the size of a page."""
        for page in self._pages(types.HiddenList, path("hidden"), options):
            for ban in page["hidden"]:
                yield ban

    def iter_rejects(self, **options: Unpack[types.RejectsQuery]) -> Iterator[types.Reject]:
        """All jobs that were refused, newest first. `limit` is the size of a page."""
        for page in self._pages(types.RejectList, path("rejects"), options):
            for reject in page["rejects"]:
                yield reject

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
                        raise refused(answer)
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
