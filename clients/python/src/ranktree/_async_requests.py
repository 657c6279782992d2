"""How requests are sent, and sent again. `make clients-generate` writes `_requests.py` from this file."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, AsyncIterator, Dict, Mapping, Optional, Type, TypeVar, cast

import httpx
from typing_extensions import Self

from . import types
from ._codec import authorization, decode, query, split_url, target, waits
from ._retry import PAUSE_MAX, RETRIES, is_read, repeatable, tries
from .errors import ConnectionFailedError, ProblemError, problem
from .tokens import latest

T = TypeVar("T")


class AsyncRequests:
    """The connections of a client. Knows no route."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        bearer: Optional[str] = None,
        timeout: float = 10.0,
        retries: int = RETRIES,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        self._url, self._called, has_credentials = split_url(url)
        self._timeout = timeout
        self._retries = retries
        self._headers = authorization(bearer, has_credentials)
        self._is_own = http is None
        self._http = http or httpx.AsyncClient()

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
        """Closes the connections."""
        if self._is_own:
            await self._http.aclose()

    async def _pages(self, kind: Type[T], route: str, options: Mapping[str, Any]) -> AsyncIterator[T]:
        options = dict(options)
        while True:
            page: Any = await self._send(kind, "GET", route, options)
            yield page
            if not page.get("next_cursor"):
                return
            options["cursor"] = page["next_cursor"]
            if "as_of" in page and not options.get("partial"):
                options["after"] = latest(options.get("after"), page["as_of"])

    async def _send(
        self,
        kind: Type[T],
        method: str,
        route: str,
        options: Mapping[str, Any] = {},
        content: Optional[bytes] = None,
    ) -> T:
        """Asks until there is an answer, which is of that kind."""
        parameters = query(options)
        for attempt in tries(self._retries):
            try:
                return await self._once(kind, method, route, parameters, content)
            except ProblemError as error:
                if attempt.is_last or not repeatable(method, route, error):
                    raise
                rest = error.retry_after
            except ConnectionFailedError as error:
                if attempt.is_last or error.may_be_applied:
                    raise
                rest = None
            await asyncio.sleep(attempt.pause if rest is None else min(rest, PAUSE_MAX))
        raise AssertionError("the last try returns or raises")

    async def _once(
        self,
        kind: Type[T],
        method: str,
        route: str,
        parameters: Dict[str, str],
        content: Optional[bytes],
    ) -> T:
        headers = dict(self._headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = await self._http.request(
                method,
                self._url + target(route, parameters),
                content=content,
                headers=headers,
                timeout=self._timeout + waits(parameters),
            )
        except httpx.TransportError as error:
            raise self._failed(method, route, error) from error
        value = body_of(answer, kind) if answer.is_success else None
        if value is None:
            raise refused(answer)
        return cast(T, value)

    def _failed(self, method: str, route: str, error: httpx.TransportError) -> ConnectionFailedError:
        # Nothing was sent if there was no connection to send it on.
        unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
        may_be_applied = not unsent and not is_read(method, route)
        why = str(error) or type(error).__name__
        return ConnectionFailedError(f"{self._called} did not answer {method} {route}: {why}", may_be_applied)


def body_of(answer: httpx.Response, kind: type) -> Any:
    """What an answer says; `None` if it is not JSON."""
    try:
        return decode(answer.content, kind) if answer.content else None
    except ValueError:
        return None


def refused(answer: httpx.Response) -> ProblemError:
    """The exception for an answer that is not a success, or none of the service's."""
    told = None if answer.is_success else body_of(answer, types.Problem)
    return problem(answer.status_code, told, answer.headers.get("Retry-After"))
