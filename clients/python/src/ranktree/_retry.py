"""What may be sent again, and when. Knows nothing of connections."""

from __future__ import annotations

import random
from typing import List

from .errors import ProblemError

# A pause between tries grows from here to there, in seconds, each time by so much. The first one is for a
# connection that broke, the later ones for a node that is started again.
PAUSE_MIN, PAUSE_MAX, PAUSE_GROWTH = 0.05, 2.0, 6.0
# How often a request is sent again: with these pauses that is within two seconds or so.
RETRIES = 3


class Try:
    """One try of several."""

    def __init__(self, number: int, is_last: bool) -> None:
        self.is_last = is_last
        self.pause = pause(number)


def tries(retries: int) -> List[Try]:
    return [Try(number, number == retries) for number in range(retries + 1)]


def pause(number: int) -> float:
    """Seconds to wait after a try, counted from 0."""
    return spread(min(PAUSE_MAX, PAUSE_MIN * PAUSE_GROWTH ** min(number, 16)))


def spread(seconds: float) -> float:
    """So that clients that failed at the same moment do not come back at the same moment."""
    return seconds * random.uniform(0.5, 1.0)


def is_read(method: str, route: str) -> bool:
    return method == "GET" or route.endswith((":lookup", "/ranks:of", "/boards:combine"))


def repeatable(method: str, route: str, error: ProblemError) -> bool:
    """Whether a request that was refused may be sent again as it is.

    A write may be only if the service says that it is overloaded, and has stored no part of it.
    """
    if error.status != 503:
        return False
    if is_read(method, route):
        return error.code in ("overloaded", "shard_unavailable")
    return error.code == "overloaded" and error.token is None and not error.results
