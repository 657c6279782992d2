"""Publishes jobs to NATS, without asking a node. Needs `pip install ranktree-client[nats]`.

A message is an array of jobs of one shard. A publisher has one message of each shard on its way at a time:
jobs that come meanwhile make the next array, and a message that is sent again cannot overtake another. Each
message has a `Nats-Msg-Id`, which it keeps when it is sent again, so that the server stores it once.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import deque
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Coroutine, Deque, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union, cast

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from typing_extensions import Self

from . import types
from ._codec import decode, encode
from ._retry import pause
from .errors import ConnectionFailedError, PublishError, PublishManyError, RanktreeError, problem
from .tokens import latest, shard_of

# Fixed, because ids of a `publish_many` follow from where it is cut into messages.
JOBS_MAX = 1000
# Every jobs stream takes messages of 128 KiB; the rest is for the headers.
BYTES_MAX = 127 * 1024
ID_MAX = 512
# The server forgets an id after two minutes, unless the operator set another time on the stream.
GIVE_UP_MAX = 110.0

T = TypeVar("T")


class Waiting:
    """Jobs that go into one message, and who waits for it."""

    def __init__(self, jobs: List[bytes], message_id: Optional[str], stored: "asyncio.Future[int]") -> None:
        self.jobs = jobs
        # Jobs without an id of the caller's may share a message with others.
        self.message_id = message_id
        self.stored = stored


class Lane:
    """The messages of one shard, one after the other."""

    def __init__(self, publisher: "AsyncPublisher", shard: int) -> None:
        self.publisher = publisher
        self.shard = shard
        self.waiting: Deque[Waiting] = deque()
        self.task: Optional["asyncio.Task[None]"] = None

    def put(self, one: Waiting) -> None:
        self.waiting.append(one)
        if self.task is None:
            self.task = asyncio.ensure_future(self.run())

    async def run(self) -> None:
        try:
            while self.waiting:
                await self.send(self.take())
        finally:
            self.task = None
            # Only after a cancellation is somebody left.
            for one in self.waiting:
                one.stored.cancel()
            self.waiting.clear()

    def take(self) -> List[Waiting]:
        """The next message: the first that waits, and those after it that fit into the same array."""
        taken: List[Waiting] = []
        jobs = size = 0
        while self.waiting:
            one = self.waiting[0]
            more = sum(len(job) + 1 for job in one.jobs)
            alone = one.message_id is not None
            if taken and (alone or jobs + len(one.jobs) > JOBS_MAX or size + more > BYTES_MAX):
                break
            self.waiting.popleft()
            if one.stored.done():
                # Who waited for it was cancelled.
                continue
            taken.append(one)
            jobs, size = jobs + len(one.jobs), size + more
            if alone:
                break
        return taken

    async def send(self, message: List[Waiting]) -> None:
        if not message:
            return
        message_id = message[0].message_id or uuid.uuid4().hex
        payload = b"[" + b",".join(job for one in message for job in one.jobs) + b"]"
        try:
            sequence = await self.publisher._store(self.shard, payload, message_id)
        except PublishError as error:
            for one in message:
                if not one.stored.done():
                    one.stored.set_exception(PublishError(str(error), error.message_id, error.may_be_stored))
        except asyncio.CancelledError:
            for one in message:
                one.stored.cancel()
            raise
        else:
            for one in message:
                if not one.stored.done():
                    one.stored.set_result(sequence)


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
        shard_of("", shards)
        self.shards = shards
        self._connection = connection
        self._jetstream: JetStreamContext = connection.jetstream()
        self._prefix = prefix
        self._ack_timeout = ack_timeout
        self._give_up_after = give_up_after
        self._room = asyncio.Semaphore(max_waiting)
        self._lanes = [Lane(self, shard) for shard in range(shards)]
        self._is_own = False

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
        **options: Any,
    ) -> Self:
        """Connects to NATS. `options` are those of `nats.connect`, such as `user`, `password` and `tls`.

        - `shards`: how many there are. Without it the publisher asks the first jobs stream, for which its
          user needs the permission to publish to `$JS.API.STREAM.INFO.*`.
        - `prefix`: the nodes' `--prefix`.
        - `ack_timeout`: seconds until a message that was not acknowledged is sent again.
        - `give_up_after`: seconds until the publisher stops sending it, at most 110.
        - `max_waiting`: how many jobs and arrays wait to be stored; further calls wait for room.
        """
        options.setdefault("max_reconnect_attempts", -1)
        connection = await nats.connect(servers, **options)
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
        """Waits for what is on its way, and closes the connection if `connect` made it."""
        tasks = [lane.task for lane in self._lanes if lane.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._is_own:
            await self._connection.close()

    async def publish(self, job: types.Job, *, message_id: Optional[str] = None) -> str:
        """Stores a job, and returns its token. Whether it is applied or rejected is not known then.

        With a `message_id` the job has a message of its own, so that you may publish it again under the same
        id, also after your process was killed: within two minutes it counts once. Without one, jobs of the
        same moment share messages.
        """
        check_id(message_id)
        return await self._put(self._shard(job), [check_size(encode(job))], message_id)

    async def publish_many(self, jobs: Sequence[types.Job], *, message_id: Optional[str] = None) -> str:
        """Stores jobs of any members, in as few messages as possible, and returns one token for all.

        Jobs of a member stay in their order. The ids of the messages follow from `message_id`; to publish
        again, give the same jobs in the same order. `PublishManyError` if messages were not acknowledged.
        """
        check_id(message_id)
        if not jobs:
            raise ValueError("there are no jobs to publish")
        base = message_id or uuid.uuid4().hex
        by_shard: Dict[int, List[bytes]] = {}
        for job in jobs:
            by_shard.setdefault(self._shard(job), []).append(check_size(encode(job)))
        parts = [self._put_all(shard, cut(jobs), base) for shard, jobs in by_shard.items()]
        outcomes = await asyncio.gather(*parts)
        token = latest(*[token for token, _ in outcomes])
        errors = [error for _, errors in outcomes for error in errors]
        if errors:
            raise PublishManyError(errors, token)
        return cast(str, token)

    async def write(
        self,
        jobs: Sequence[types.Job],
        *,
        changed_only: bool = False,
        timeout: float = 35.0,
    ) -> types.JobsWritten:
        """Has a node write jobs of members of one shard, and returns what came of them.

        Nothing is sent again. If no answer came in time, `ConnectionFailedError` is raised; give jobs a
        `version`, and send them again. `changed_only` asks for a short answer.
        """
        shards = {self._shard(job) for job in jobs}
        if len(shards) != 1:
            raise ValueError(f"the jobs of a write belong to one shard; these belong to {sorted(shards)}")
        subject = f"{self._prefix}.write.{shards.pop()}"
        headers = {"Ranktree-Results": "changed"} if changed_only else None
        try:
            body = encode(list(jobs))
            answer = await self._connection.request(subject, body, timeout=timeout, headers=headers)
        except nats.errors.NoRespondersError:
            told = {"code": "shard_unavailable", "detail": f"no node answers to {subject}; try again"}
            raise problem(503, told) from None
        except nats.errors.TimeoutError:
            raise ConnectionFailedError(f"no node answered to {subject} within {timeout} s", True) from None
        except nats.errors.Error as error:
            raise ConnectionFailedError(f"{subject}: {error}", True) from error
        status = (answer.headers or {}).get("Nats-Service-Error-Code")
        if status is not None:
            raise problem(int(status), decode(answer.data))
        return cast(types.JobsWritten, decode(answer.data))

    def _shard(self, job: types.Job) -> int:
        member = job["member"]
        if not 1 <= len(member.encode("utf-8")) <= 256:
            raise ValueError(f"a member's id is 1 to 256 bytes; got {member!r}")
        return shard_of(member, self.shards)

    async def _put_all(
        self,
        shard: int,
        messages: List[List[bytes]],
        base: str,
    ) -> Tuple[Optional[str], List[PublishError]]:
        """Stores the messages of a shard. After one that failed the others are not sent, to stay in order."""
        token: Optional[str] = None
        errors: List[PublishError] = []
        for number, jobs in enumerate(messages):
            message_id = f"{base}.{shard}.{number}"
            if errors:
                told = f"not sent, because {errors[0].message_id} was not acknowledged"
                errors.append(PublishError(told, message_id, False))
                continue
            try:
                token = await self._put(shard, jobs, message_id)
            except PublishError as error:
                errors.append(error)
        return token, errors

    async def _put(self, shard: int, jobs: List[bytes], message_id: Optional[str]) -> str:
        async with self._room:
            stored: "asyncio.Future[int]" = asyncio.get_running_loop().create_future()
            self._lanes[shard].put(Waiting(jobs, message_id, stored))
            return f"{shard}:{await stored}"

    async def _store(self, shard: int, payload: bytes, message_id: str) -> int:
        """Publishes until the server acknowledges, always under the same id, and returns the sequence."""
        subject, stream = f"{self._prefix}.jobs.{shard}", f"{self._prefix.upper()}_JOBS_{shard}"
        now = asyncio.get_running_loop().time
        end = now() + self._give_up_after
        may_be_stored, number = False, 0
        while True:
            try:
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
    ) -> None:
        self._publisher = publisher
        self._loop = loop
        self._thread = thread
        self._room = threading.BoundedSemaphore(10_000)

    @classmethod
    def connect(cls, servers: Union[str, List[str]] = "nats://127.0.0.1:4222", **options: Any) -> Self:
        """Connects to NATS, with the options of `AsyncPublisher.connect`."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="ranktree-publisher", daemon=True)
        thread.start()
        try:
            connecting = AsyncPublisher.connect(servers, **options)
            publisher = asyncio.run_coroutine_threadsafe(connecting, loop).result()
        except BaseException:
            stop(loop, thread)
            raise
        return cls(publisher, loop, thread)

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
        """Waits for what is on its way, and closes the connection."""
        if self._thread.is_alive():
            self._run(self._publisher.aclose()).result()
            stop(self._loop, self._thread)

    def submit(self, job: types.Job, *, message_id: Optional[str] = None) -> "Future[str]":
        """Publishes a job and does not wait: the future has its token once it is stored."""
        self._room.acquire()
        future = self._run(self._publisher.publish(job, message_id=message_id))
        future.add_done_callback(lambda _: self._room.release())
        return future

    def publish(self, job: types.Job, *, message_id: Optional[str] = None) -> str:
        """As `AsyncPublisher.publish`."""
        return self.submit(job, message_id=message_id).result()

    def publish_many(self, jobs: Sequence[types.Job], *, message_id: Optional[str] = None) -> str:
        """As `AsyncPublisher.publish_many`."""
        return self._run(self._publisher.publish_many(jobs, message_id=message_id)).result()

    def write(
        self,
        jobs: Sequence[types.Job],
        *,
        changed_only: bool = False,
        timeout: float = 35.0,
    ) -> types.JobsWritten:
        """As `AsyncPublisher.write`."""
        work = self._publisher.write(jobs, changed_only=changed_only, timeout=timeout)
        return self._run(work).result()

    def _run(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        if not self._thread.is_alive():
            work.close()
            raise RanktreeError("the publisher is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


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


async def find_shards(connection: Client, prefix: str) -> int:
    """How many shards there are, as the first jobs stream says."""
    stream = f"{prefix.upper()}_JOBS_0"
    try:
        info = await connection.jetstream().stream_info(stream)
    except (nats.js.errors.Error, nats.errors.Error) as error:
        told = f"the stream {stream} does not say how many shards there are: {error}"
        raise RanktreeError(f"{told}; start a node, or give shards=") from error
    found = (info.config.metadata or {}).get("ranktree-shards")
    if found is None:
        raise RanktreeError(f"the stream {stream} is not one of ranktree's")
    return int(found)
