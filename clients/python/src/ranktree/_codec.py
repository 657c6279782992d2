"""How requests and answers are written: JSON, paths and queries. Knows nothing of connections."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote

import httpx

from .types import NUMBERS

INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def encode(value: Any, kind: type) -> bytes:
    """Compact JSON of a request, or of several; `kind` is the type of `ranktree.types` that each is of.

    A `datetime` is written as RFC 3339; it must have a time zone. Infinities are strings where scores are.
    """
    try:
        text = ENCODER.encode(value)
    except ValueError:
        # It has an infinity, which is seldom, or what cannot be written.
        text = ENCODER.encode(_turned(value, kind.__name__, _sent))
    return text.encode("utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"a time needs a time zone, such as datetime.now(timezone.utc); got {value!r}")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


ENCODER = json.JSONEncoder(default=_plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode(body: bytes, kind: type) -> Any:
    """An answer. Integers beyond 2^53 and infinities, which are strings in JSON, become numbers again."""
    return _turned(json.loads(body), kind.__name__, _answered)


def _turned(value: Any, place: str, turn: Callable[[Any], Any]) -> Any:
    """The value with those numbers turned that NUMBERS knows here, and nothing of callers' own."""
    if isinstance(value, (list, tuple)):
        return [_turned(one, place, turn) for one in value]
    if place == "#":
        return turn(value)
    if not isinstance(value, Mapping):
        return value
    if place[0] == "*":
        return {key: _turned(one, place[1:], turn) for key, one in value.items()}
    places = NUMBERS.get(place, {})
    return {**value, **{key: _turned(value[key], at, turn) for key, at in places.items() if key in value}}


def _answered(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return INFINITIES[value] if value in INFINITIES else int(value)


def _sent(value: Any) -> Any:
    return _word(value) if isinstance(value, float) and not math.isfinite(value) else value


def given(**fields: Any) -> Dict[str, Any]:
    """Those fields of a request that the caller gave."""
    return {name: value for name, value in fields.items() if value is not None}


def path(*parts: str) -> str:
    """A path of the API. Bytes that are not letters, digits, `-`, `_` or `~` are percent-encoded."""
    if not all(parts):
        raise ValueError(f"a name or an id is empty; got {parts}")
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
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("NaN is no score, which is a number or an infinity")
    return quote(str(value), safe="")


def target(route: str, parameters: Mapping[str, str]) -> str:
    """A path with its query. `httpx` would encode the commas of lists as well."""
    pairs = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"{route}?{pairs}" if pairs else route


def waits(parameters: Mapping[str, str]) -> float:
    """How many seconds a read may wait on the service's side, for what `after` names."""
    return int(parameters.get("timeout_ms", "5000")) / 1000 if "after" in parameters else 0.0


def split_url(url: str) -> Tuple[str, str, bool]:
    """The address without a slash at its end, what it is called in messages, and whether it has credentials.

    No message shows an address that is wrong: the credentials in it may be what is wrong.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError("the address of a node begins with http:// or https://")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if not parsed.host or parsed.query or parsed.fragment:
        example = "http://node-1:8080, and signs in user names and passwords are percent-encoded"
        raise ValueError(f"the address of a node is no URL such as {example}")
    called = f"{parsed.scheme}://{parsed.netloc.decode('ascii')}{parsed.path.rstrip('/')}"
    return url.rstrip("/"), called, bool(parsed.userinfo)


def authorization(bearer: Optional[str], has_credentials: bool) -> Dict[str, str]:
    """The header for a bearer token, which may have white space around it as read from a file."""
    token = (bearer or "").strip()
    if not token:
        return {}
    if has_credentials:
        raise ValueError("the address has credentials, and there is a bearer token: give one of the two")
    if not re.fullmatch(r"[!-~]+", token):
        raise ValueError("the bearer token has white space within, or signs that are not ASCII")
    return {"Authorization": f"Bearer {token}"}
