"""Writes the Python client's types, and its client without asyncio from the one with it.

Integers are `int`. The service writes those beyond 2^53 as strings; the client turns them back, in the fields
that INTEGER_FIELDS names.
"""

from __future__ import annotations

import keyword
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Dict, List, TypedDict, Union

from model import NULL, ROOT, Alias, Array, Field, Kind, Literals, Model, OneOf, Record, Table, Word, join

PACKAGE = ROOT / "clients" / "python" / "src" / "ranktree"
SCALARS = {
    "Integer": "int",
    "IntegerInput": "int",
    "Version": "int",
    "Metadata": "Dict[str, Any]",
}
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
from typing import Any, Dict, FrozenSet, List, Literal, Sequence, Union

from typing_extensions import NotRequired, TypedDict

'''


def files(model: Model) -> Dict[Path, str]:
    """What the client's files should be."""
    client = (PACKAGE / "_async_client.py").read_text(encoding="utf-8")
    text = types(model)
    run(text)
    return {PACKAGE / "types.py": text, PACKAGE / "_client.py": blocking(client)}


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
    if isinstance(kind, OneOf):
        # Different kinds may be one type of Python.
        names = list(dict.fromkeys(name(one, is_input) for one in kind.kinds))
        return names[0] if len(names) == 1 else f"Union[{', '.join(names)}]"
    if isinstance(kind, Literals):
        return f"Literal[{', '.join(repr(value) for value in kind.values)}]"
    if isinstance(kind, Array):
        return f"{'Sequence' if is_input else 'List'}[{name(kind.items, is_input)}]"
    if isinstance(kind, Table):
        return f"Dict[str, {name(kind.values, is_input)}]"
    if isinstance(kind, Word):
        return WORDS[kind.name]
    if kind.name == "Time":
        return "Union[str, datetime]" if is_input else "str"
    return SCALARS.get(kind.name, kind.name)


def union(kind: Kind, is_input: bool) -> str:
    """As `name`, with the two types of a time beside `None`."""
    return re.sub(r"^Union\[Union\[([^]]*)\](.*)\]$", r"Union[\1\2]", name(kind, is_input))


def record(one: Record) -> str:
    """A class for an object."""
    kinds = {}
    for field in one.fields:
        kind = union(field.kind, one.is_input)
        kinds[field.name] = kind if field.is_required else f"NotRequired[{kind}]"
    base, before = "TypedDict", []
    words = {field: kind for field, kind in kinds.items() if keyword.iskeyword(field)}
    if words:
        # A word of Python cannot be a field of a class statement.
        base = f"_{one.name}Words"
        entries = [f"        {field!r}: {kind}," for field, kind in words.items()]
        before = [f"{base} = TypedDict(", f"    {base!r},", "    {", *entries, "    },", ")", "", ""]
    lines = [*before, f"class {one.name}({base}):", *docstring(one.told)]
    for field in one.fields:
        if field.name not in words:
            lines += annotation(field.name, kinds[field.name]) + docstring(field.told)
    return "\n".join(lines)


def query(one: Record) -> str:
    """A class for the optional parameters of a request."""
    base = "Reading" if one.is_reading else "TypedDict"
    lines = [f"class {one.name}({base}, total=False):", *docstring(one.told)]
    for field in one.fields:
        lines += parameter(field) + docstring(field.told)
    return "\n".join(lines)


def parameter(field: Field) -> List[str]:
    # A parameter that is a word of Python has an underscore behind it, which the client takes off.
    word = field.name + ("_" if keyword.iskeyword(field.name) else "")
    # `None` is left out of the query.
    return annotation(word, union(join([field.kind, NULL]), True))


def alias(one: Alias) -> str:
    return f"{one.name} = {union(one.kind, one.is_input)}"


def types(model: Model) -> str:
    aliases = [alias(one) for one in model.aliases]
    # Aliases of unions are values, so that what they name comes first.
    early = [text for text in aliases if not re.search(r"\b(Job|JobResult)\b", text)]
    late = [text for text in aliases if text not in early]
    fields = ", ".join(repr(field) for field in sorted(model.integer_fields))
    told = "# Fields of answers whose integers are strings beyond 2^53 - 1."
    top = [*early, "", told, f"INTEGER_FIELDS: FrozenSet[str] = frozenset([{fields}])", "", ""]
    classes = [record(one) for one in model.records] + [query(one) for one in model.queries]
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


def blocking(text: str) -> str:
    """The client without `async`: the same words, fewer of them."""
    lines = text.splitlines(keepends=True)
    told = "The blocking client. `make clients-generate` writes it from `_async_client.py`: do not edit."
    lines[0] = f'"""{told}"""\n'
    body = "".join(lines)
    pattern = re.compile("|".join(re.escape(word) for word, _ in BLOCKING))
    return pattern.sub(lambda found: dict(BLOCKING)[found.group()], body)
