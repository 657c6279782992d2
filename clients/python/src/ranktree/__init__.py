"""ranktree for Python: exact leaderboards over HTTP, and jobs over NATS.

- `Ranktree` and `AsyncRanktree` write and read over HTTP.
- `ranktree.nats.Publisher` and `AsyncPublisher` publish jobs to NATS (`pip install ranktree-client[nats]`).
- `ranktree.types` has the types of requests and answers, `ranktree.errors` what can go wrong.
"""

from ._async_client import AsyncRanktree
from ._client import Ranktree
from .errors import (
    AccessError,
    ConnectionFailedError,
    InvalidError,
    NotFoundError,
    NotYetAppliedError,
    ProblemError,
    PublishError,
    PublishManyError,
    RanktreeError,
    RejectedError,
    UnavailableError,
    WrongAddressError,
)
from .tokens import latest, member_hash, shard_of

__version__ = "0.1.0"
__all__ = [
    "AccessError",
    "AsyncRanktree",
    "ConnectionFailedError",
    "InvalidError",
    "NotFoundError",
    "NotYetAppliedError",
    "ProblemError",
    "PublishError",
    "PublishManyError",
    "Ranktree",
    "RanktreeError",
    "RejectedError",
    "UnavailableError",
    "WrongAddressError",
    "latest",
    "member_hash",
    "shard_of",
]
