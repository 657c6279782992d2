"""Which jobs share a message, and in which order messages go. Knows nothing of connections."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from concurrent.futures import Future
from typing import Awaitable, Callable, Deque, List, Optional, Sequence, Union

from .errors import PublishError

# Fixed, because ids of a `publish_many` follow from where it is cut into messages.
JOBS_MAX = 1000
# Every jobs stream takes messages of 128 KiB; the rest is for the headers.
BYTES_MAX = 127 * 1024
ID_MAX = 512

# The token, once the jobs are stored: awaited in the loop of the publisher, or in another thread.
Stored = Union["asyncio.Future[str]", "Future[str]"]


class Waiting:
    """Jobs that go into one message, and who waits for it."""

    __slots__ = ("jobs", "size", "message_id", "stored")

    def __init__(self, jobs: List[bytes], message_id: Optional[str], stored: Stored) -> None:
        self.jobs = jobs
        # With the comma or bracket behind each.
        self.size = sum(map(len, jobs)) + len(jobs)
        # Jobs without an id of the caller's may share a message with others.
        self.message_id = message_id
        self.stored = stored

    def start(self) -> bool:
        """Whether somebody still waits. The future of a thread cannot be cancelled any more from then on."""
        if isinstance(self.stored, Future):
            return self.stored.set_running_or_notify_cancel()
        return not self.stored.done()

    def finish(self, token: str) -> None:
        if not self.stored.done():
            self.stored.set_result(token)

    def fail(self, error: PublishError) -> None:
        # An exception of its own for each, because raising one changes it. Not the id of a shared message:
        # the server would take one of its jobs, published again alone, for the whole.
        if not self.stored.done():
            self.stored.set_exception(PublishError(str(error), self.message_id, error.may_be_stored))


class Lane:
    """The messages of one shard, one after the other. To be called in the loop of the publisher only."""

    def __init__(self, shard: int, store: Callable[[int, bytes, str], Awaitable[int]]) -> None:
        self.task: Optional["asyncio.Task[None]"] = None
        self._shard = shard
        self._store = store
        self._waiting: Deque[Waiting] = deque()

    def put(self, one: Waiting) -> None:
        self._waiting.append(one)
        if self.task is None:
            self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        message: List[Waiting] = []
        try:
            while self._waiting:
                message = self._take()
                if message:
                    await self._send(message)
        finally:
            self.task = None
            # Only a loop that ends cancels this. Nobody may wait forever.
            if self._waiting or any(not one.stored.done() for one in message):
                for one in message:
                    one.fail(PublishError("the loop ended before it was acknowledged", None, True))
                for one in self._waiting:
                    one.fail(PublishError("the loop ended before it was sent", None, False))
                self._waiting.clear()

    def _take(self) -> List[Waiting]:
        """The next message: the first that waits, and those after it that fit into the same array."""
        taken: List[Waiting] = []
        jobs = size = 0
        while self._waiting:
            one = self._waiting[0]
            is_alone = one.message_id is not None
            is_full = jobs + len(one.jobs) > JOBS_MAX or size + one.size > BYTES_MAX
            if taken and (is_alone or is_full):
                break
            self._waiting.popleft()
            if not one.start():
                # Who waited for it was cancelled.
                continue
            taken.append(one)
            jobs, size = jobs + len(one.jobs), size + one.size
            if is_alone:
                break
        return taken

    async def _send(self, message: List[Waiting]) -> None:
        payload = b"[" + b",".join([job for one in message for job in one.jobs]) + b"]"
        try:
            sequence = await self._store(self._shard, payload, message[0].message_id or uuid.uuid4().hex)
        except PublishError as error:
            for one in message:
                one.fail(error)
        else:
            token = f"{self._shard}:{sequence}"
            for one in message:
                one.finish(token)


class Room:
    """How many may wait at a time. Others come in in their order: `asyncio.Semaphore` has one from 3.11 on."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._queue: Deque["asyncio.Future[None]"] = deque()

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # Its turn may have come at the moment of the cancellation.
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


def check_id(message_id: Optional[str]) -> None:
    if message_id is None:
        return
    is_plain = message_id.isascii() and message_id.isprintable()
    if not (is_plain and 0 < len(message_id) <= ID_MAX):
        raise ValueError(f"a message's id is 1 to {ID_MAX} printable ASCII characters; got {message_id!r}")


def check_size(job: bytes) -> bytes:
    if len(job) >= BYTES_MAX:
        raise ValueError(f"a job has at most {BYTES_MAX} bytes; got {len(job)}")
    return job


def cut(jobs: Sequence[bytes]) -> List[List[bytes]]:
    """Arrays of at most as many jobs and bytes as a message may have."""
    found: List[List[bytes]] = [[]]
    size = 0
    for job in jobs:
        if found[-1] and (len(found[-1]) == JOBS_MAX or size + len(job) + 1 > BYTES_MAX):
            found.append([])
            size = 0
        found[-1].append(job)
        size += len(job) + 1
    return found
