"""What can go wrong, as exceptions.

Every answer of the service that is a problem (RFC 9457) becomes a `ProblemError`, or one of its kinds by the
status. `code` is stable and for programs; `detail` is for people.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Type, Union


class RanktreeError(Exception):
    """Anything that this package raises about the service."""


class ConnectionFailedError(RanktreeError):
    """No answer came.

    `may_be_applied`: the request was a write and may have reached the service. Send it again with the
    `version` it had, before later writes of the member: then it counts once.
    """

    def __init__(self, detail: str, may_be_applied: bool) -> None:
        super().__init__(detail)
        self.may_be_applied = may_be_applied


class ProblemError(RanktreeError):
    """The service refused a request, or could not do it."""

    def __init__(self, status: int, code: str, detail: str, problem: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        # The whole answer, with fields that only some problems have, such as `shards`.
        self.problem: Dict[str, Any] = problem or {}
        # In seconds, if the service said when to try again.
        self.retry_after: Optional[float] = None

    @property
    def token(self) -> Optional[str]:
        """Names the jobs of a request that were stored although others failed."""
        return self.problem.get("token")

    @property
    def results(self) -> List[Dict[str, Any]]:
        """The outcome of each job of a request that failed in part."""
        return list(self.problem.get("results", []))


class InvalidError(ProblemError):
    """400, 413, 422: the request can never succeed as it is. Nothing was applied."""

    @property
    def errors(self) -> List[Dict[str, Any]]:
        """Which jobs of a request are invalid: `index`, `code`, `detail`."""
        return list(self.problem.get("errors", []))


class AccessError(ProblemError):
    """401, 403: the bearer token is missing or unknown, or does not allow this."""


class NotFoundError(ProblemError):
    """404: no such board, member or position."""


class WrongAddressError(ProblemError):
    """What answers at this address is not ranktree, or has nothing at the path: the client's URL is wrong."""


class RejectedError(ProblemError):
    """409: the state refuses it: `stale_version`, `out_of_range`, `overflow`, `board_differs` and others."""


class UnavailableError(ProblemError):
    """503: overloaded, or a shard that no node answers for. Try again after `retry_after` seconds.

    With the code `commit_unknown` a write may or may not be applied.
    """

    @property
    def shards(self) -> List[int]:
        """The shards that no node answers for."""
        return [shard for shard in self.problem.get("shards", []) if isinstance(shard, int)]


class NotYetAppliedError(ProblemError):
    """504: the writes that `after` names were not applied in time."""


class PublishError(RanktreeError):
    """A message was not acknowledged by NATS.

    `may_be_stored` is false only if the message was refused each time, or not sent, and so is not stored.
    `message_id` is the `Nats-Msg-Id` that follows from the one you gave: publish the same jobs under the same
    id to go on. It is `None` if you gave none. Then the jobs may have shared a message with others, and whether
    they may be published again is for their `version` to say.
    """

    def __init__(self, detail: str, message_id: Optional[str], may_be_stored: bool) -> None:
        super().__init__(detail)
        self.message_id = message_id
        self.may_be_stored = may_be_stored


class PublishManyError(PublishError):
    """Some messages of a `publish_many` were not acknowledged.

    `message_id` is the one that you gave, or `None`. `token` names the messages that were acknowledged, or is
    `None`. `errors` is of the others, each with its own id.
    """

    def __init__(
        self, errors: Sequence[PublishError], message_id: Optional[str], token: Optional[str]
    ) -> None:
        may_be_stored = any(error.may_be_stored for error in errors)
        super().__init__(f"{len(errors)} messages: {errors[0]}", message_id, may_be_stored)
        self.errors = list(errors)
        self.token = token


KINDS: Dict[int, Type[ProblemError]] = {
    400: InvalidError,
    401: AccessError,
    403: AccessError,
    404: NotFoundError,
    409: RejectedError,
    413: InvalidError,
    422: InvalidError,
    503: UnavailableError,
    504: NotYetAppliedError,
}


def problem(status: int, body: Any, retry_after: Union[str, None] = None) -> ProblemError:
    """The exception for an answer that is not a success."""
    body = body if isinstance(body, dict) else {}
    code, detail = str(body.get("code", "unknown")), str(body.get("detail", "the answer says no more"))
    kind = KINDS.get(status, ProblemError)
    if code == "unknown_route" or (code == "unknown" and (status < 300 or status == 404)):
        kind = WrongAddressError
        detail += "; the client's address is that of a node, without a path of the API"
    error = kind(status, code, detail, body)
    if retry_after is not None and retry_after.isdecimal():
        error.retry_after = float(retry_after)
    return error
