"""How requests and answers are written: JSON, paths and queries. Knows nothing of connections."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, Dict, Mapping, Sequence, Tuple, Union
from urllib.parse import quote

from .types import INTEGER_FIELDS

# What callers gave as JSON of their own, and get back as it is.
FREE_FORM = ("job", "meta", "profile")
# Fields whose own fields are boards.
BY_BOARD = ("boards", "totals")


def encode(value: Any) -> bytes:
    """Compact JSON. A `datetime` is written as RFC 3339; it must have a time zone."""
    return ENCODER.encode(value).encode("utf-8")


def _time(value: Any) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"a time needs a time zone, such as datetime.now(timezone.utc); got {value!r}")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


ENCODER = json.JSONEncoder(default=_time, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode(body: bytes) -> Any:
    """JSON, in which integers beyond 2^53 are strings: they become integers again."""
    return _integers(json.loads(body))


def _integers(value: Any) -> Any:
    if isinstance(value, list):
        return [_integers(one) for one in value]
    if isinstance(value, dict):
        return {key: _field(key, one) for key, one in value.items()}
    return value


def _field(name: str, value: Any) -> Any:
    if name in FREE_FORM:
        return value
    if name in BY_BOARD and isinstance(value, dict):
        return {board: _integers(one) for board, one in value.items()}
    if name in INTEGER_FIELDS:
        if isinstance(value, str):
            return int(value)
        if isinstance(value, list):
            return [int(one) if isinstance(one, str) else one for one in value]
    return _integers(value)


def path(*parts: str) -> str:
    """A path of the API. Bytes that are not letters, digits, `-`, `_` or `~` are percent-encoded."""
    # A dot as well: many programs on the way take the members `.` and `..` for folders.
    return "/v1/" + "/".join(_segment(part) for part in parts)


def _segment(part: str) -> str:
    text = quote(part, safe="")
    return text.replace(".", "%2E") if set(part) == {"."} else text


def query(values: Mapping[str, Any]) -> Dict[str, str]:
    """The parameters of a query, percent-encoded. `None` is left out, and `from_` is `from`."""
    return {name.rstrip("_"): _word(value) for name, value in values.items() if value is not None}


def _word(value: Union[bool, int, float, str, Sequence[Any]]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        # Commas part the values of a list, and those within a value are percent-encoded.
        return ",".join(_word(one) for one in value)
    return quote(str(value), safe="")


def target(route: str, parameters: Mapping[str, str]) -> str:
    """A path with its query. `httpx` would encode the commas of lists as well."""
    pairs = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"{route}?{pairs}" if pairs else route


def waits(parameters: Mapping[str, str]) -> float:
    """How many seconds a read may wait on the service's side, for what `after` names."""
    return int(parameters.get("timeout_ms", "5000")) / 1000 if "after" in parameters else 0.0


def split_url(url: str) -> Tuple[str, str]:
    """The address without a slash at its end, and what it is called in messages."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the address of a node begins with http:// or https://; got {url!r}")
    return url.rstrip("/"), url.split("@")[-1]
