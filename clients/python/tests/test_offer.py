"""What the client offers, beside what the API does: docs/openapi.json has nothing that it forgot."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import httpx
import pytest
from support import ROOT

from ranktree import NotFoundError, Ranktree, types

DOCUMENT: Dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
# For programs that are no clients, and `ranktree snapshot`.
LEFT_OUT = {"healthz", "readyz", "metrics", "openapi", "docs", "begin_snapshot", "snapshot_file"}
LEFT_OUT |= {"delete_snapshot"}
# The method for an operation, where it has another name.
NAMES = {
    "put_board": "define",
    "delete_board": "drop",
    "clear_board": "clear",
    "trim_board": "trim",
    "put_member": "write",
    "delete_member": "remove",
    "delete_everywhere": "remove_everywhere",
    "jobs": "write_many",
    "ranks_of": "ranks",
}
# What a method wants that is not optional.
SAMPLES: Dict[str, Any] = {
    "board": "arena",
    "member": "p42",
    "season": "s2",
    "at": "2100-01-01T00:00:00Z",
    "wanted": {"readonly": True, "boards": {"arena": 1}},
    "job": {"score": 1},
    "jobs": [{"member": "p42"}],
    "position": 7,
    "members": ["p42"],
    "score": 1,
    "scores": [1],
    "p": [50],
}


def operations() -> Iterator[Tuple[str, str, str, Dict[str, Any]]]:
    """Each operation, by the name of the client's method for it."""
    for route, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            if name not in LEFT_OUT:
                yield NAMES.get(name, name), method.upper(), route, operation


FOUND = list(operations())
each_operation = pytest.mark.parametrize(
    "name, method, route, operation", FOUND, ids=[operation[0] for operation in FOUND]
)


def parameters_of(operation: Dict[str, Any]) -> Set[str]:
    known = DOCUMENT["components"]["parameters"]
    listed = operation.get("parameters", [])
    each = [known[one["$ref"].rsplit("/", 1)[1]] if "$ref" in one else one for one in listed]
    return {one["name"] for one in each if one["in"] == "query"}


def fields_of(operation: Dict[str, Any]) -> Tuple[str, Set[str]]:
    """The name of what is sent, and its fields if it is an object."""
    content = operation.get("requestBody", {}).get("content", {})
    name = content.get("application/json", {}).get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
    return name, set(DOCUMENT["components"]["schemas"].get(name, {}).get("properties", {}))


def offered(method: Callable[..., Any]) -> Tuple[Set[str], str]:
    """The names of the arguments that a method takes, and their types."""
    signature = inspect.signature(method)
    names = {name.rstrip("_") for name in signature.parameters} - {"options"}
    for options in re.findall(r"Unpack\[types\.(\w+)\]", str(signature)):
        names |= {name.rstrip("_") for name in getattr(types, options).__annotations__}
    return names, str(signature)


@each_operation
def test_every_operation_has_a_method_with_all_its_options(
    name: str, method: str, route: str, operation: Dict[str, Any]
) -> None:
    called = getattr(Ranktree, name, None)
    assert called, f"there is no method for {operation['operationId']}"
    names, signature = offered(called)
    assert parameters_of(operation) <= names, f"{name} lacks {parameters_of(operation) - names}"
    sent, fields = fields_of(operation)
    if f"types.{sent}" not in signature:
        assert fields <= names, f"{name} lacks {fields - names} of {sent}"


@each_operation
def test_every_method_asks_for_its_route(
    name: str, method: str, route: str, operation: Dict[str, Any]
) -> None:
    seen: List[Tuple[str, str, bytes]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.url.path, request.content))
        # A board that is watched would be watched without end.
        return httpx.Response(404 if name == "live" else 200, json={"code": "unknown_board"})

    with Ranktree(retries=0, http=httpx.Client(transport=httpx.MockTransport(answer))) as client:
        called = getattr(client, name)
        wanted = [
            one.name
            for one in inspect.signature(called).parameters.values()
            if one.default is inspect.Parameter.empty and one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        given = called(**{one: SAMPLES[one] for one in wanted})
        if name == "live":
            with pytest.raises(NotFoundError):
                next(given)
    shape = re.sub(r"\{\w+\}", lambda one: str(SAMPLES[one.group()[1:-1]]), route)
    assert [one[:2] for one in seen] == [(method, shape)]
    assert bool(seen[0][2]) == ("requestBody" in operation)
