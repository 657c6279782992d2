"""Connects to NATS, and asks there how many shards there are."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Awaitable, Callable, Dict, List, Optional, Union
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from .errors import ConnectionFailedError, RanktreeError

LOG = logging.getLogger("ranktree")
SCHEMES = ("nats", "tls", "ws", "wss")


async def connected(servers: Union[str, List[str]], within: float, options: Dict[str, Any]) -> Client:
    """A connection, made within so many seconds."""
    check_servers(servers)
    connection, errors = Client(), Errors(options.get("error_cb"))
    options = {"max_reconnect_attempts": -1, **options, "error_cb": errors.take}
    try:
        await asyncio.wait_for(connection.connect(servers, **options), within)
    except BaseException as error:
        # Others have nothing to close, and do not take it well.
        if connection.is_connecting or connection.is_connected:
            await connection.close()
        if not isinstance(error, (nats.errors.Error, OSError, asyncio.TimeoutError)):
            raise
        # The last one says why no server could be had.
        why = errors.last or error
        told = str(why) or type(why).__name__
        if isinstance(error, asyncio.TimeoutError):
            told = f"not within {within:g} s: {told}"
        raise ConnectionFailedError(f"cannot connect to NATS: {told}", False) from None
    errors.is_connecting = False
    return connection


def check_servers(servers: Union[str, List[str]]) -> None:
    """Refuses what is no address of a server, without showing it: it may have a password."""
    each = [servers] if isinstance(servers, str) else servers
    if not each:
        raise ValueError("there is no server of NATS to connect to")
    for one in each:
        try:
            parsed = urlsplit(one if "://" in one else f"nats://{one}")
            is_address = parsed.scheme in SCHEMES and bool(parsed.hostname) and parsed.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            example = "nats://nats-1:4222, and signs in user names and passwords are percent-encoded"
            raise ValueError(f"the address of a server is none such as {example}")


class Errors:
    """Takes the errors of a connection, which `nats` would print with their traces."""

    def __init__(self, passed_on: Optional[Callable[[Exception], Awaitable[None]]]) -> None:
        self.last: Optional[Exception] = None
        self.is_connecting = True
        self._passed_on = passed_on

    async def take(self, error: Exception) -> None:
        self.last = error
        if self._passed_on is not None:
            await self._passed_on(error)
        elif not self.is_connecting:
            LOG.warning("the connection to NATS: %s", str(error) or type(error).__name__)


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
