"""A watched board: server-sent events, and the state that they make. Knows nothing of connections."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, cast

from . import types
from ._codec import decode
from ._retry import repeatable
from .errors import ProblemError, problem

# After so many seconds without an event the service sends a comment.
HEARTBEAT = 10.0
# When to connect again, in seconds, unless the service asks for another time.
RECONNECT = 2.0


class LiveView:
    """What a board shows, from the events that came."""

    def __init__(self, members: Sequence[str]) -> None:
        """`members`: those that are watched, in the order in which they are shown."""
        # Of the last event; a connection that is lost is gone on with from here.
        self.last_event_id: Optional[str] = None
        # In seconds, as the service asks for.
        self.reconnect = RECONNECT
        self.state: Optional[types.LiveState] = None
        self._members = list(dict.fromkeys(members))
        self.begin()

    def begin(self) -> None:
        """Forgets the part of an event that a lost connection left."""
        self._rest = b""
        self._kind = ""
        self._data: List[str] = []
        self._id: Optional[str] = None

    def feed(self, data: bytes) -> bool:
        """Takes bytes of the stream, and says whether events in them make another state.

        Of several only the last state is shown: who is slow gets what is newest. Raises the problem that the
        service ends the stream with.
        """
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        is_new = False
        for line in lines:
            is_new = self._line(line.rstrip(b"\r").decode("utf-8")) or is_new
        return is_new

    def _line(self, line: str) -> bool:
        if not line:
            kind, data, event_id = self._kind, self._data, self._id
            self._kind, self._data, self._id = "", [], None
            return bool(data) and self._apply(kind, "\n".join(data), event_id)
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        elif name == "retry" and value.isdecimal():
            self.reconnect = int(value) / 1000
        return False

    def _apply(self, kind: str, data: str, event_id: Optional[str]) -> bool:
        body = data.encode("utf-8")
        if kind == "end":
            told = decode(body, types.Problem)
            raise problem(told.get("status", 500), told)
        if kind == "state":
            self.state = self._in_order(decode(body, types.LiveState))
        elif kind == "changes" and self.state is not None:
            self.state = self._changed(self.state, decode(body, types.LiveChanges))
        else:
            return False
        self.last_event_id = event_id or self.last_event_id
        return True

    def _changed(self, before: types.LiveState, changes: Dict[str, Any]) -> types.LiveState:
        entries = by_member(before["entries"], changes["entries"])
        for member in changes["left"]:
            entries.pop(member, None)
        members = by_member(before["members"], changes["members"])
        for member in changes["not_found"]:
            members.pop(member, None)
        shown = {key: value for key, value in changes.items() if key != "left"}
        shown["entries"] = sorted(entries.values(), key=lambda entry: entry["position"])
        shown["members"] = list(members.values())
        return self._in_order(shown)

    def _in_order(self, state: Dict[str, Any]) -> types.LiveState:
        """With the watched members in the order in which they were asked for."""
        found = by_member(state["members"], [])
        members = [found[member] for member in self._members if member in found]
        missing = [member for member in self._members if member not in found]
        return cast(types.LiveState, {**state, "members": members, "not_found": missing})

    def stale(self) -> types.LiveState:
        """The state, of which it is not known whether it still is."""
        return cast(types.LiveState, {**(self.state or {}), "stale": True})

    def goes_on(self, route: str, error: ProblemError) -> bool:
        """Whether to connect again after a problem: as reads do, and later after whatever may pass."""
        return (self.state is not None and error.status >= 500) or repeatable("GET", route, error)


def by_member(
    before: Sequence[types.ListedEntry],
    after: Sequence[types.ListedEntry],
) -> Dict[str, types.ListedEntry]:
    return {entry["member"]: entry for entry in [*before, *after]}
