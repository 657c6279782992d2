"""Writes the Python client's types, and its client without asyncio from the one with it.

Numbers are `int`, or `float` on boards with such keys. The service writes those beyond 2^53 and infinities as
strings; the client turns them where NUMBERS says that an object has some.
"""

from __future__ import annotations

import keyword
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Dict, List, Set, TypedDict, Union

from model import (
    NULL,
    ROOT,
    SCALARS,
    Alias,
    Array,
    Field,
    Kind,
    Literals,
    Model,
    Named,
    OneOf,
    Record,
    Table,
    Unknown,
    Word,
    join,
)

PACKAGE = ROOT / "clients" / "python" / "src" / "ranktree"
# The types that a schema of `SCALARS` is, where it is sent and in answers.
SENT: Dict[str, List[str]] = {"IntegerInput": ["int", "float", "str"], "Time": ["str", "datetime"]}
ANSWERED: Dict[str, List[str]] = {"Integer": ["int", "float"], "Time": ["str"]}
EITHER: Dict[str, List[str]] = {"Version": ["int"], "Metadata": ["Dict[str, Any]"]}
# Parameters on which the type of the answer depends: the client's method names them itself.
OVERLOADED = {"MemberQuery": ["windows"]}
WORDS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "any": "Any",
}
WIDTH = 110

HEADER = '''"""The types of requests and answers. `make clients-generate` writes this file: do not edit it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, List, Literal, Mapping, Sequence, Union

from typing_extensions import NotRequired, TypedDict

'''


def files(model: Model) -> Dict[Path, str]:
    """What the client's files should be."""
    text = types(model)
    run(text)
    found = {PACKAGE / "types.py": text}
    for module in ("client", "requests"):
        source = PACKAGE / f"_async_{module}.py"
        found[PACKAGE / f"_{module}.py"] = blocking(source.name, source.read_text(encoding="utf-8"))
    return found


def run(text: str) -> None:
    """Runs the module of the types, as an import does: a name that is not there yet fails only then."""
    stand_in = ModuleType("typing_extensions")
    vars(stand_in).update(NotRequired=Union, TypedDict=TypedDict)
    installed = sys.modules.get(stand_in.__name__)
    sys.modules[stand_in.__name__] = stand_in
    try:
        exec(compile(text, "types.py", "exec"), {"__name__": "types_of_ranktree"})
    finally:
        del sys.modules[stand_in.__name__]
        if installed:
            sys.modules[stand_in.__name__] = installed


def name(kind: Kind, is_input: bool) -> str:
    # Different kinds may be one type of Python.
    found = list(dict.fromkeys(names(kind, is_input)))
    return found[0] if len(found) == 1 else f"Union[{', '.join(found)}]"


def names(kind: Kind, is_input: bool) -> List[str]:
    """The types that a kind is one of."""
    if isinstance(kind, OneOf):
        return [found for one in kind.kinds for found in names(one, is_input)]
    if isinstance(kind, Literals):
        return [f"Literal[{', '.join(repr(value) for value in kind.values)}]"]
    if isinstance(kind, Array):
        return [f"{'Sequence' if is_input else 'List'}[{name(kind.items, is_input)}]"]
    if isinstance(kind, Table):
        return [f"{'Mapping' if is_input else 'Dict'}[str, {name(kind.values, is_input)}]"]
    if isinstance(kind, Word):
        return [WORDS[kind.name]]
    known = SENT if is_input else ANSWERED
    return known.get(kind.name) or EITHER.get(kind.name) or [kind.name]


class Places:
    """Where the numbers of objects are that JSON may have as strings."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._reading: Set[str] = set()
        # By the names of objects, and of their fields that are numbers or have some within.
        self.found: Dict[str, Dict[str, str]] = {}
        for one in model.records:
            self._record(one)

    def _record(self, one: Record) -> Dict[str, str]:
        if one.name in self._reading:
            raise Unknown(f"{one.name} is within itself")
        if one.name not in self.found:
            self._reading.add(one.name)
            places = {field.name: self._kind(field.kind) for field in one.fields}
            self.found[one.name] = {field: place for field, place in places.items() if place}
            self._reading.remove(one.name)
        return self.found[one.name]

    def _kind(self, kind: Kind) -> str:
        """`#`: a number; a name: an object with some; `*` before it: each field. Lists are as items."""
        if isinstance(kind, OneOf):
            several: Set[str] = {place for one in kind.kinds if (place := self._kind(one))}
            if len(several) > 1:
                raise Unknown(f"{sorted(several)} may all be in one place")
            return several.pop() if several else ""
        if isinstance(kind, Array):
            return self._kind(kind.items)
        if isinstance(kind, Table):
            within = self._kind(kind.values)
            return f"*{within}" if within else ""
        if not isinstance(kind, Named):
            return "#" if isinstance(kind, Word) and kind.is_long else ""
        if kind.name in SCALARS:
            return "#" if kind.name in ("Integer", "IntegerInput", "Version") else ""
        known = self._model.find(kind.name)
        if isinstance(known, Record):
            return kind.name if self._record(known) else ""
        return self._kind(known.kind) if known else ""

    def lines(self) -> List[str]:
        lines = ["NUMBERS: Dict[str, Dict[str, str]] = {"]
        for one, fields in self.found.items():
            if fields:
                inner = ", ".join(f"{field!r}: {place!r}" for field, place in fields.items())
                lines.append(f"    {one!r}: {{{inner}}},")
        return [*lines, "}"]


def record(one: Record, model: Model) -> str:
    """A class for an object."""
    kinds = {}
    told = one.told
    always = {field.name for field in one.fields if field.is_required}
    early = model.find(model.accepted.get(one.name, ""))
    if isinstance(early, Record):
        # One type for both answers of a write.
        always &= {field.name for field in early.fields if field.is_required}
        shown = ", ".join(f"`{field}`" for field in sorted(always))
        told += f" With NATS and without `wait=applied` it has {shown} and nothing else."
    for field in one.fields:
        kind = name(field.kind, one.is_input)
        kinds[field.name] = kind if field.name in always else f"NotRequired[{kind}]"
    base, before = "TypedDict", []
    words = {field: kind for field, kind in kinds.items() if keyword.iskeyword(field)}
    if words:
        # A word of Python cannot be a field of a class statement.
        base = f"_{one.name}Words"
        entries = [f"        {field!r}: {kind}," for field, kind in words.items()]
        before = [f"{base} = TypedDict(", f"    {base!r},", "    {", *entries, "    },", ")", "", ""]
    lines = [*before, f"class {one.name}({base}):", *docstring(told)]
    for field in one.fields:
        if field.name not in words:
            lines += annotation(field.name, kinds[field.name]) + docstring(field.told)
    return "\n".join(lines)


def query(one: Record) -> str:
    """A class for the optional parameters of a request."""
    base = "Reading" if one.is_reading else "TypedDict"
    lines = [f"class {one.name}({base}, total=False):", *docstring(one.told)]
    for field in one.fields:
        if field.name not in OVERLOADED.get(one.name, []):
            lines += parameter(field) + docstring(field.told)
    return "\n".join(lines)


def parameter(field: Field) -> List[str]:
    # A parameter that is a word of Python has an underscore behind it, which the client takes off.
    word = field.name + ("_" if keyword.iskeyword(field.name) else "")
    # `None` is left out of the query.
    return annotation(word, name(join([field.kind, NULL]), True))


def alias(one: Alias) -> str:
    return f"{one.name} = {name(one.kind, one.is_input)}"


def types(model: Model) -> str:
    aliases = [alias(one) for one in model.aliases]
    # Aliases of unions are values, so that what they name comes first.
    early = [text for text in aliases if not re.search(r"\b(Job|JobResult)\b", text)]
    late = [text for text in aliases if text not in early]
    told = [
        "# Where objects have numbers that may be strings in JSON: beyond 2^53, and infinities. By the names",
        "# of objects and of fields. `#` is a number, a name is an object with some, and with `*` before it",
        "# each field is one, because its keys are data. Lists are as their items.",
    ]
    top = [*early, "", *told, *Places(model).lines(), "", ""]
    classes = [record(one, model) for one in model.records] + [query(one) for one in model.queries]
    return HEADER + "\n".join(top) + "\n\n\n".join(classes) + "\n\n\n" + "\n".join(late) + "\n"


def annotation(field: str, kind: str) -> List[str]:
    line = f"    {field}: {kind}"
    if len(line) <= WIDTH:
        return [line]
    # A long list of literals, one a line or so.
    indent = " " * 8
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def docstring(text: str) -> List[str]:
    if not text:
        return []
    text = text.replace("\\", "\\\\")
    one = f'    """{text}"""'
    if len(one) <= WIDTH:
        return [one]
    wrapped = textwrap.wrap(text, WIDTH - 7, break_on_hyphens=False)
    return [f'    """{wrapped[0]}', *(f"    {line}" for line in wrapped[1:]), '    """']


# Longer words first: a word is replaced once.
BLOCKING = [
    ("AsyncRanktree", "Ranktree"),
    ("AsyncRequests", "Requests"),
    ("_async_requests", "_requests"),
    ("httpx.AsyncClient", "httpx.Client"),
    ("AsyncIterator", "Iterator"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("asyncio.sleep", "time.sleep"),
    (".aiter_bytes(", ".iter_bytes("),
    (".aread(", ".read("),
    ("import asyncio", "import time"),
    (".aclose(", ".close("),
    ("async def aclose", "def close"),
    ("async with ", "with "),
    ("async for ", "for "),
    ("async def ", "def "),
    ("await ", ""),
]


def blocking(source: str, text: str) -> str:
    """A module without `async`: the same words, fewer of them."""
    lines = text.splitlines(keepends=True)
    told = f"Without asyncio. `make clients-generate` writes it from `{source}`: do not edit."
    lines[0] = f'"""{told}"""\n'
    body = "".join(lines)
    pattern = re.compile("|".join(re.escape(word) for word, _ in BLOCKING))
    return pattern.sub(lambda found: dict(BLOCKING)[found.group()], body)
