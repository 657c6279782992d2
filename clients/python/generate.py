#!/usr/bin/env python3
"""Writes what follows from other files, or says with --check that it is not current.

    src/ranktree/types.py     the types of requests and answers, from docs/openapi.json
    src/ranktree/_client.py   the blocking client, from src/ranktree/_async_client.py

`make clients-generate` runs it, and tests/test_generated.py checks. It needs Python and nothing else, so that
what it writes does not change with the version of a generator. It knows the part of JSON Schema that the
document uses, and stops at anything else.

Two rules make the types pleasant to use:

- The variants of an object become one type. A field that some variants lack is not required.
- Integers are `int`. The service writes those beyond 2^53 as strings; the client turns them back, in the
  fields that INTEGER_FIELDS names.
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, List, Set

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs" / "openapi.json"
PACKAGE = HERE / "src" / "ranktree"

# Schemas that are one word in Python.
SCALARS = {
    "Integer": "int",
    "IntegerInput": "int",
    "Version": "int",
    "Metadata": "Dict[str, Any]",
}
# An answer has what callers gave as JSON of their own. Nothing in it is converted.
FREE_FORM = ["job", "meta", "profile"]
# Routes that return something else than JSON, or that `ranktree snapshot` is for.
LEFT_OUT = ["/openapi.json", "/docs", "/metrics", "/healthz", "/readyz"]
# What every read takes.
READING = ["window", "after", "timeout_ms", "partial", "profile", "accuracy"]
WIDTH = 110

HEADER = '''"""The types of requests and answers. `make clients-generate` writes this file: do not edit it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, FrozenSet, List, Literal, Sequence, Union

from typing_extensions import NotRequired, TypedDict

'''


class Unknown(Exception):
    """The document uses something that this script does not know."""


def reference(schema: Dict[str, Any]) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[1]


def union(names: List[str]) -> str:
    """One type for several: unions within are taken apart, literals become one, and `None` comes last."""
    flat: List[str] = []
    literals: List[str] = []
    for name in names:
        for part in parts(name[len("Union[") : -1]) if name.startswith("Union[") else [name]:
            if part.startswith("Literal["):
                literals += [one for one in parts(part[len("Literal[") : -1]) if one not in literals]
            elif part not in flat:
                flat.append(part)
    if "bool" in flat:
        literals = [one for one in literals if one not in ("True", "False")]
    if literals:
        flat.insert(0, f"Literal[{', '.join(literals)}]")
    flat.sort(key=lambda name: name == "None")
    return flat[0] if len(flat) == 1 else f"Union[{', '.join(flat)}]"


def parts(text: str) -> List[str]:
    """What commas separate, outside of brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


class Types:
    def __init__(self, document: Dict[str, Any]) -> None:
        self.document = document
        self.schemas: Dict[str, Any] = document["components"]["schemas"]
        self.inputs = self._inputs()
        self.classes: List[str] = []
        self.integer_fields: Set[str] = set()
        self.text_fields: Set[str] = set()

    def _inputs(self) -> Set[str]:
        """The schemas of what callers send."""
        found: Set[str] = set()

        def walk(schema: Any) -> None:
            if isinstance(schema, dict):
                if "$ref" in schema and reference(schema) not in found:
                    found.add(reference(schema))
                    walk(self.schemas[reference(schema)])
                for inner in schema.values():
                    walk(inner)
            elif isinstance(schema, list):
                for inner in schema:
                    walk(inner)

        for path in self.document["paths"].values():
            for operation in path.values():
                body = operation.get("requestBody", {}).get("content", {})
                walk(body.get("application/json", {}).get("schema"))
        return found

    def resolve(self, schema: Dict[str, Any]) -> Dict[str, Any]:
        while "$ref" in schema:
            schema = self.schemas[reference(schema)]
        return schema

    def variants(self, schema: Dict[str, Any]) -> List[Dict[str, Any]]:
        """The objects that a schema allows; none if it allows anything else."""
        schema = self.resolve(schema)
        if "anyOf" in schema or "oneOf" in schema:
            found = [self.variants(variant) for variant in schema.get("anyOf") or schema["oneOf"]]
            return [variant for variants in found for variant in variants] if all(found) else []
        return [schema] if "properties" in schema else []

    def name(self, schema: Dict[str, Any], owner: str, field: str, is_input: bool) -> str:
        """The Python type of a schema. `owner` and `field` name a class for an object that has no name."""
        if "$ref" in schema:
            name = reference(schema)
            if name == "Time":
                return "Union[str, datetime]" if is_input else "str"
            return SCALARS.get(name, name)
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self.name(schema["allOf"][0], owner, field, is_input)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            if self.variants(schema):
                return self.define(owner + camel(field), schema, is_input)
            return union([self.name(variant, owner, field, is_input) for variant in choices])
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            values = ", ".join(repr(value) for value in schema["enum"] if value is not None)
            return union([f"Literal[{values}]"] + (["None"] if None in schema["enum"] else []))
        kind = schema.get("type")
        if isinstance(kind, list):
            return union([self.name({**schema, "type": one}, owner, field, is_input) for one in kind])
        if kind == "array":
            inner = self.name(schema["items"], owner, singular(field), is_input)
            return f"Sequence[{inner}]" if is_input else f"List[{inner}]"
        if kind == "object":
            if "properties" in schema:
                return self.define(owner + camel(field), schema, is_input)
            more = schema.get("additionalProperties")
            inner = self.name(more, owner, field, is_input) if isinstance(more, dict) else "Any"
            return f"Dict[str, {inner}]"
        if kind is None and not set(schema) - {"description"}:
            return "Any"
        words = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
        if kind not in words:
            raise Unknown(f"{owner}.{field}: {json.dumps(schema)}")
        return words[kind]

    def define(self, name: str, schema: Dict[str, Any], is_input: bool) -> str:
        """Writes a class for an object, or for its variants, and returns its name."""
        if any(text.startswith(f"class {name}(") for text in self.classes):
            raise Unknown(f"two objects would be named {name}")
        variants = self.variants(schema)
        fields: Dict[str, List[str]] = {}
        told: Dict[str, str] = {}
        for variant in variants:
            for field, inner in variant["properties"].items():
                # The service ignores it where it is sent.
                if is_input and inner.get("readOnly"):
                    continue
                before = len(self.classes)
                known = fields.setdefault(field, [])
                earlier = variants[: variants.index(variant)]
                is_known = any(inner == other["properties"].get(field) for other in earlier)
                if not is_known:
                    known.append(self.name(inner, name, field, is_input))
                    if len(known) > 1 and len(self.classes) > before:
                        raise Unknown(f"{name}.{field} is more than one object")
                told.setdefault(field, inner.get("description", ""))
                if not is_input and field not in FREE_FORM:
                    self._note(field, inner)
        kinds = {}
        for field, names in fields.items():
            is_required = all(field in variant.get("required", []) for variant in variants)
            kinds[field] = union(names) if is_required else f"NotRequired[{union(names)}]"
        if any(keyword.iskeyword(field) for field in fields):
            # A word of Python cannot be a field of a class statement.
            entries = [f"        {field!r}: {kind}," for field, kind in kinds.items()]
            lines = [f"{name} = TypedDict(", f"    {name!r},", "    {", *entries, "    },", ")"]
        else:
            lines = [f"class {name}(TypedDict):"]
            lines += docstring(self.resolve(schema).get("description", ""))
            for field, kind in kinds.items():
                lines += annotation(field, kind) + docstring(told[field])
        self.classes.append("\n".join(lines))
        return name

    def _note(self, field: str, schema: Dict[str, Any]) -> None:
        """Takes down whether a field of an answer is an integer that may be written as a string."""
        refs = {reference(one) for one in walk_refs(schema)}
        if refs & {"Integer", "Score"}:
            self.integer_fields.add(field)
        if schema.get("type") == "string" or refs & {"BoardName", "MemberId", "Time", "Token", "AsOf"}:
            self.text_fields.add(field)

    def query(self, operation: Dict[str, Any]) -> None:
        """Writes a class for the optional parameters of a request's query, if there are any."""
        name = camel(operation["operationId"]) + "Query"
        found = {}
        for parameter in operation.get("parameters", []):
            if "$ref" in parameter:
                parameter = self.document["components"]["parameters"][reference(parameter)]
            if parameter["in"] == "query" and not parameter["required"]:
                found[parameter["name"]] = parameter
        base = "TypedDict"
        if set(READING) <= set(found):
            base = "Reading"
            found = {field: parameter for field, parameter in found.items() if field not in READING}
        if found or base == "Reading":
            told = f"What `{operation['operationId']}` may be asked with."
            self.parameters(name, base, told, list(found.values()))

    def parameters(self, name: str, base: str, told: str, parameters: List[Dict[str, Any]]) -> None:
        lines = [f"class {name}({base}, total=False):", *docstring(told)]
        for parameter in parameters:
            # A parameter that is a word of Python has an underscore behind it, which the client takes off.
            field = parameter["name"] + ("_" if keyword.iskeyword(parameter["name"]) else "")
            # `None` is left out of the query.
            lines += annotation(field, union([self.name(parameter["schema"], name, field, True), "None"]))
            lines += docstring(parameter.get("description", ""))
        self.classes.append("\n".join(lines))

    def text(self) -> str:
        aliases: List[str] = []
        for name, schema in self.schemas.items():
            if name in SCALARS or name == "Time":
                continue
            is_input = name in self.inputs
            if self.variants(schema):
                self.define(name, schema, is_input)
            else:
                aliases.append(f"{name} = {self.name(schema, name, '', is_input)}")
        shared = self.document["components"]["parameters"]
        told = "What every read may be asked with."
        self.parameters("Reading", "TypedDict", told, [shared[one] for one in READING])
        for path, operations in self.document["paths"].items():
            if path in LEFT_OUT or "snapshot" in path:
                continue
            for operation in operations.values():
                self.query(operation)
        both = self.integer_fields & self.text_fields
        if both:
            raise Unknown(f"{sorted(both)} are integers here and text there")
        # Aliases of unions are values, so that what they name comes first.
        early = [alias for alias in aliases if not re.search(r"\b(Job|JobResult)\b", alias)]
        late = [alias for alias in aliases if alias not in early]
        fields = ", ".join(repr(field) for field in sorted(self.integer_fields))
        told = "# Fields of answers whose integers are strings beyond 2^53 - 1."
        top = [*early, "", told, f"INTEGER_FIELDS: FrozenSet[str] = frozenset([{fields}])", "", ""]
        return HEADER + "\n".join(top) + "\n\n\n".join(self.classes) + "\n\n\n" + "\n".join(late) + "\n"


def walk_refs(schema: Any) -> List[Dict[str, Any]]:
    if isinstance(schema, dict):
        own = [schema] if "$ref" in schema else []
        # Objects within are classes of their own.
        inner = [value for key, value in schema.items() if key in ("anyOf", "oneOf", "allOf", "items")]
        return own + [found for value in inner for found in walk_refs(value)]
    if isinstance(schema, list):
        return [found for value in schema for found in walk_refs(value)]
    return []


def singular(text: str) -> str:
    return text[:-3] + "y" if text.endswith("ies") else text.rstrip("s")


def camel(text: str) -> str:
    return "".join(word.capitalize() for word in text.split("_"))


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


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not current")
    check = parser.parse_args().check
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    wanted = {
        PACKAGE / "types.py": Types(document).text(),
        PACKAGE / "_client.py": blocking((PACKAGE / "_async_client.py").read_text(encoding="utf-8")),
    }
    stale = [
        path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if check:
            print(f"{path.relative_to(HERE)} is not current: run make clients-generate", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
            print(f"wrote {path.relative_to(HERE)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
