"""Publishes jobs to NATS, without asking a node. Needs `pip install ranktree-client[nats]`.

A message is an array of jobs of one shard. A publisher has one message of each shard on its way at a time:
jobs that come meanwhile make the next array, and a message that is sent again cannot overtake another. Each
message has a `Nats-Msg-Id`, which it keeps when it is sent again, so that the server stores it once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from types import TracebackType
from typing import (
    Any,
    Callable,
    Coroutine,
    Deque,
    Dict,
    List,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
)

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from typing_extensions import Self

from . import types
from ._batch import Lane, Room, Waiting, check_id, check_size, cut
from ._codec import decode, encode
from ._connect import connected, find_shards
from ._retry import pause
from .errors import ConnectionFailedError, PublishError, PublishManyError, RanktreeError, problem
from .tokens import latest, shard_of

# The server forgets an id after two minutes, unless the operator set another time on the stream.
GIVE_UP_MAX = 110.0

T = TypeVar("T")


class AsyncPublisher:
    """Publishes jobs to the streams that nodes read, for asyncio. Make one with `AsyncPublisher.connect`."""

    def __init__(
        self,
        connection: Client,
        *,
        shards: int,
        prefix: str = "ranktree",
        ack_timeout: float = 5.0,
        give_up_after: float = 60.0,
        max_waiting: int = 10_000,
    ) -> None:
        """Uses a connection of your own, which is not closed with the publisher."""
        if give_up_after > GIVE_UP_MAX:
            told = f"give_up_after is at most {GIVE_UP_MAX:.0f} s, because the server forgets ids"
            raise ValueError(f"{told}; got {give_up_after}")
        check_room(max_waiting)
        shard_of("", shards)
        self.shards = shards
        self._connection = connection
        self._jetstream: JetStreamContext = connection.jetstream()
        self._prefix = prefix
        self._ack_timeout = ack_timeout
        self._give_up_after = give_up_after
        self._room = Room(max_waiting)
        self._lanes = [Lane(shard, self._store) for shard in range(shards)]
        self._is_own = False
        self._is_closed = False
        # How many calls `aclose` waits for, and what it waits for then.
        self._calls = 0
        self._is_idle = asyncio.Event()

    @classmethod
    async def connect(
        cls,
        servers: Union[str, List[str]] = "nats://127.0.0.1:4222",
        *,
        shards: Optional[int] = None,
        prefix: str = "ranktree",
        ack_timeout: float = 5.0,
        give_up_after: float = 60.0,
        max_waiting: int = 10_000,
        connect_within: float = 10.0,
        **options: Any,
    ) -> Self:
        """Connects to NATS. `options` are those of `nats.connect`, such as `user`, `password` and `tls`.

        `ConnectionFailedError` if that fails. A connection that is lost later is made again without end.

        - `shards`: how many there are. Without it the publisher asks the first jobs stream, for which its
          user needs the permission to publish to `$JS.API.STREAM.INFO.*`.
        - `prefix`: the nodes' `--prefix`.
        - `ack_timeout`: seconds until a message that was not acknowledged is sent again.
        - `give_up_after`: seconds until the publisher stops sending it, at most 110.
        - `max_waiting`: how many jobs and arrays wait to be stored; further calls wait for room.
        - `connect_within`: seconds until the publisher stops trying to connect.
        """
        connection = await connected(servers, connect_within, options)
        try:
            found = await find_shards(connection, prefix) if shards is None else shards
            publisher = cls(
                connection,
                shards=found,
                prefix=prefix,
                ack_timeout=ack_timeout,
                give_up_after=give_up_after,
                max_waiting=max_waiting,
            )
        except BaseException:
            await connection.close()
            raise
        publisher._is_own = True
        return publisher

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Waits for all that was called before, and closes the connection if `connect` made it.

        Nothing can be published afterwards.
        """
        self._is_closed = True
        while self._calls:
            self._is_idle.clear()
            await self._is_idle.wait()
        tasks = [lane.task for lane in self._lanes if lane.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._is_own:
            await self._connection.close()

    async def publish(self, job: types.Job, *, message_id: Optional[str] = None) -> str:
        """Stores a job, and returns its token. Whether it is applied or rejected is not known then.

        Without a `message_id` jobs of the same moment share messages. A `message_id` switches that off: the
        job has a message of its own, and the next one of its shard waits until that is acknowledged. You may
        publish it again under the same id then, also after your process was killed: within two minutes it
        counts once. For many jobs give `publish_many` one id, or the jobs a `version`.
        """
        check_id(message_id)
        shard, text = self._encode(job)
        return await self._call(self._put(shard, [text], message_id))

    async def publish_many(self, jobs: Sequence[types.Job], *, message_id: Optional[str] = None) -> str:
        """Stores jobs of any members, in as few messages as possible, and returns one token for all.

        Jobs of a member stay in their order. With a `message_id` they share messages with each other and with
        no other jobs, and the ids of the messages follow from it; to publish again, give the same jobs in the
        same order. `PublishManyError` if messages were not acknowledged.
        """
        check_id(message_id)
        if not jobs:
            raise ValueError("there are no jobs to publish")
        by_shard: Dict[int, List[bytes]] = {}
        for job in jobs:
            shard, text = self._encode(job)
            by_shard.setdefault(shard, []).append(text)
        return await self._call(self._put_many(by_shard, message_id))

    async def write(
        self,
        jobs: Sequence[types.Job],
        *,
        changed_only: bool = False,
        timeout: float = 35.0,
    ) -> types.JobsWritten:
        """Has a node write jobs of members of one shard, and returns what came of them.

        Nothing is sent again. If no answer came in time, `ConnectionFailedError` is raised; give jobs a
        `version`, and send them again before later ones of the same members. `changed_only` asks for a short
        answer.
        """
        shards = {self._shard(job) for job in jobs}
        if len(shards) != 1:
            raise ValueError(f"the jobs of a write belong to one shard; these belong to {sorted(shards)}")
        subject = f"{self._prefix}.write.{shards.pop()}"
        headers = {"Ranktree-Results": "changed"} if changed_only else None
        body = encode(list(jobs), types.Job)
        # It would be sent once there is a connection again, however long nobody has waited for it by then.
        if self._is_waiting():
            raise ConnectionFailedError(f"{subject}: not connected to NATS; nothing was sent", False)
        try:
            answer = await self._call(
                self._connection.request(subject, body, timeout=timeout, headers=headers)
            )
        except nats.errors.NoRespondersError:
            told = {"code": "shard_unavailable", "detail": f"no node answers to {subject}; try again"}
            raise problem(503, told) from None
        except nats.errors.TimeoutError:
            raise ConnectionFailedError(f"no node answered to {subject} within {timeout} s", True) from None
        except nats.errors.Error as error:
            raise ConnectionFailedError(f"{subject}: {error}", True) from error
        status = (answer.headers or {}).get("Nats-Service-Error-Code")
        if status is not None:
            raise problem(int(status), decode(answer.data, types.Problem))
        return cast(types.JobsWritten, decode(answer.data, types.JobsWritten))

    def _shard(self, job: types.Job) -> int:
        member = job.get("member")
        if not isinstance(member, str):
            raise ValueError(f"a job names its member; got {member!r}")
        if not 1 <= len(member.encode("utf-8")) <= 256:
            raise ValueError(f"a member's id is 1 to 256 bytes; got {member!r}")
        return shard_of(member, self.shards)

    def _encode(self, job: types.Job) -> Tuple[int, bytes]:
        return self._shard(job), check_size(encode(job, types.Job))

    def _is_waiting(self) -> bool:
        """Whether the connection was lost and is being made anew."""
        return not self._connection.is_connected and not self._connection.is_closed

    async def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Counts a call, for which `aclose` waits."""
        if self._is_closed:
            work.close()
            raise RanktreeError("the publisher is closed")
        self._calls += 1
        try:
            return await work
        finally:
            self._calls -= 1
            if not self._calls:
                self._is_idle.set()

    async def _put_many(self, by_shard: Dict[int, List[bytes]], message_id: Optional[str]) -> str:
        parts = [self._put_all(shard, cut(jobs), message_id) for shard, jobs in by_shard.items()]
        outcomes = await asyncio.gather(*parts)
        token = latest(*[token for token, _ in outcomes])
        errors = [error for _, errors in outcomes for error in errors]
        if errors:
            raise PublishManyError(errors, message_id, token)
        return cast(str, token)

    async def _put_all(
        self,
        shard: int,
        messages: List[List[bytes]],
        base: Optional[str],
    ) -> Tuple[Optional[str], List[PublishError]]:
        """Stores the messages of a shard. After one that failed the others are not sent, to stay in order."""
        token: Optional[str] = None
        errors: List[PublishError] = []
        for number, jobs in enumerate(messages):
            message_id = None if base is None else f"{base}.{shard}.{number}"
            if errors:
                first = errors[0].message_id or "a message before it"
                errors.append(PublishError(f"not sent, because {first} was not acknowledged", message_id, False))
                continue
            try:
                token = await self._put(shard, jobs, message_id)
            except PublishError as error:
                errors.append(error)
        return token, errors

    async def _put(self, shard: int, jobs: List[bytes], message_id: Optional[str]) -> str:
        async with self._room:
            stored: "asyncio.Future[str]" = asyncio.get_running_loop().create_future()
            self._lanes[shard].put(Waiting(jobs, message_id, stored))
            return await stored

    async def _store(self, shard: int, payload: bytes, message_id: str) -> int:
        """Publishes until the server acknowledges, always under the same id, and returns the sequence."""
        subject, stream = f"{self._prefix}.jobs.{shard}", f"{self._prefix.upper()}_JOBS_{shard}"
        now = asyncio.get_running_loop().time
        end = now() + self._give_up_after
        may_be_stored, number = False, 0
        while True:
            try:
                # What is sent without a connection waits in memory, once for each time that it is sent, and
                # goes out when there is one again: maybe after the server has forgotten the id.
                if self._is_waiting():
                    raise nats.errors.ConnectionReconnectingError
                stored = await self._jetstream.publish(
                    subject,
                    payload,
                    timeout=self._ack_timeout,
                    stream=stream,
                    headers={"Nats-Msg-Id": message_id},
                )
                return stored.seq
            except nats.js.errors.APIError as error:
                told = f"{subject}: {error.description}"
                # A full stream, and one without a leader, have a status from 500 on: they may come back.
                if (error.code or 0) < 500:
                    raise PublishError(told, message_id, may_be_stored) from error
            except nats.js.errors.NoStreamResponseError:
                told = f"{subject}: there is no stream {stream}; a node with the same prefix creates it"
            except nats.errors.TimeoutError:
                may_be_stored = True
                told = f"{subject}: not acknowledged within {self._give_up_after:.0f} s"
            except (nats.errors.ConnectionReconnectingError, nats.errors.OutboundBufferLimitError) as error:
                told = f"{subject}: {error}"
            except nats.errors.Error as error:
                raise PublishError(f"{subject}: {error}", message_id, may_be_stored) from error
            rest = pause(number)
            number += 1
            if now() + rest >= end:
                raise PublishError(told, message_id, may_be_stored)
            await asyncio.sleep(rest)


class Publisher:
    """Publishes jobs from programs without asyncio. Any thread may call it; one of its own is connected."""

    def __init__(
        self,
        publisher: AsyncPublisher,
        loop: asyncio.AbstractEventLoop,
        thread: threading.Thread,
        max_waiting: int,
    ) -> None:
        self._publisher = publisher
        self._loop = loop
        self._thread = thread
        # Held for moments only, but by who waits for room.
        self._mutex = threading.Condition(threading.Lock())
        self._free = max_waiting
        # What the thread of the publisher was woken for, and has not taken over yet. Waking it costs many times
        # what a job costs, so that it is woken for the first of them only.
        self._given: Deque[Tuple[int, Waiting]] = deque()
        self._is_closed = False

    @classmethod
    def connect(
        cls,
        servers: Union[str, List[str]] = "nats://127.0.0.1:4222",
        *,
        max_waiting: int = 10_000,
        **options: Any,
    ) -> Self:
        """Connects to NATS, with the options of `AsyncPublisher.connect`.

        `max_waiting` counts the jobs of `submit` and `publish`, and apart from them the arrays of
        `publish_many`.
        """
        check_room(max_waiting)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="ranktree-publisher", daemon=True)
        thread.start()
        try:
            connecting = AsyncPublisher.connect(servers, max_waiting=max_waiting, **options)
            publisher = asyncio.run_coroutine_threadsafe(connecting, loop).result()
        except BaseException:
            stop(loop, thread)
            raise
        return cls(publisher, loop, thread, max_waiting)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    @property
    def shards(self) -> int:
        return self._publisher.shards

    def close(self) -> None:
        """Waits for all that was called before, and closes the connection.

        Nothing can be published afterwards.
        """
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
            self._mutex.notify_all()
        asyncio.run_coroutine_threadsafe(self._publisher.aclose(), self._loop).result()
        stop(self._loop, self._thread)

    def submit(self, job: types.Job, *, message_id: Optional[str] = None) -> "Future[str]":
        """Publishes a job and does not wait, but for room: the future has its token once it is stored.

        A `message_id` is that of `AsyncPublisher.publish`: with one, the job shares its message with no other.
        A future that is cancelled takes its job back, unless it is on its way.
        """
        check_id(message_id)
        shard, text = self._publisher._encode(job)
        stored: "Future[str]" = Future()
        one = Waiting([text], message_id, stored)
        with self._mutex:
            while self._free == 0 and not self._is_closed:
                self._mutex.wait()
            if self._is_closed:
                raise RanktreeError("the publisher is closed")
            self._free -= 1
            is_first = not self._given
            self._given.append((shard, one))
            if is_first:
                self._loop.call_soon_threadsafe(self._take_over)
        stored.add_done_callback(self._leave)
        return stored

    def publish(self, job: types.Job, *, message_id: Optional[str] = None) -> str:
        """As `AsyncPublisher.publish`."""
        return self.submit(job, message_id=message_id).result()

    def publish_many(self, jobs: Sequence[types.Job], *, message_id: Optional[str] = None) -> str:
        """As `AsyncPublisher.publish_many`."""
        return self._run(lambda: self._publisher.publish_many(jobs, message_id=message_id))

    def write(
        self,
        jobs: Sequence[types.Job],
        *,
        changed_only: bool = False,
        timeout: float = 35.0,
    ) -> types.JobsWritten:
        """As `AsyncPublisher.write`."""
        return self._run(lambda: self._publisher.write(jobs, changed_only=changed_only, timeout=timeout))

    def _leave(self, _: "Future[str]") -> None:
        with self._mutex:
            self._free += 1
            self._mutex.notify()

    def _take_over(self) -> None:
        """In the thread of the publisher: puts what was given into the lanes."""
        with self._mutex:
            given, self._given = self._given, deque()
        for shard, one in given:
            self._publisher._lanes[shard].put(one)

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self._mutex:
            if self._is_closed:
                raise RanktreeError("the publisher is closed")
            # Scheduled with the mutex, so that `close` comes behind it and waits for it.
            running = asyncio.run_coroutine_threadsafe(work(), self._loop)
        return running.result()


def check_room(max_waiting: int) -> None:
    if max_waiting < 1:
        raise ValueError(f"max_waiting is at least 1; got {max_waiting}")


def stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
