"""The types of docs/openapi.json, as the generators of all languages need them. Knows no language.

It needs Python and nothing else, so that what is written does not change with the version of a generator. It
knows the part of JSON Schema that the document uses, and stops at anything else.

- The variants of an object become one record. A field that some variants lack is not required.
- `Named` is a record, an alias, or one of `SCALARS`, which each language has a type of its own for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple, Union

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / "docs" / "openapi.json"

# Schemas that each language writes by hand. `Integer` and `IntegerInput` are signed and have 64 bits;
# `Version` is unsigned and has 64; `Time` is a moment; `Metadata` is an object of the caller's.
SCALARS = ["Integer", "IntegerInput", "Version", "Metadata", "Time"]
# Routes that return something else than JSON, or that `ranktree snapshot` is for.
LEFT_OUT = ["/openapi.json", "/docs", "/metrics", "/healthz", "/readyz"]
# What every read takes.
READING = ["window", "after", "timeout_ms", "partial", "profile", "accuracy"]


class Unknown(Exception):
    """The document uses something that this script does not know."""


@dataclass(frozen=True)
class Word:
    """A type of JSON: `string`, `integer`, `number`, `boolean`, `null`, or `any`."""

    name: str
    # Of an integer: whether it is never negative, and whether it is never zero besides.
    is_unsigned: bool = False
    is_positive: bool = False
    # Of an integer: whether it has 64 bits, so that it may be a string beyond 2^53.
    is_long: bool = False


@dataclass(frozen=True)
class Literals:
    """One of a few values: strings, or `true`."""

    values: Tuple[Any, ...]


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Array:
    items: "Kind"


@dataclass(frozen=True)
class Table:
    """An object whose keys are data."""

    values: "Kind"


@dataclass(frozen=True)
class OneOf:
    """At least two kinds, none of them `OneOf`. `Literals` come first, at most once, and `null` is last."""

    kinds: Tuple["Kind", ...]


Kind = Union[Word, Literals, Named, Array, Table, OneOf]
NULL, ANY = Word("null"), Word("any")


@dataclass
class Field:
    name: str
    kind: Kind
    is_required: bool
    told: str


@dataclass
class Record:
    """An object with known fields."""

    name: str
    told: str
    # Whether callers send it.
    is_input: bool
    fields: List[Field] = field(default_factory=list)
    # Of a query: whether it has the fields of `Reading` besides.
    is_reading: bool = False


@dataclass
class Alias:
    """A name for what is no object."""

    name: str
    kind: Kind
    is_input: bool


def join(kinds: List[Kind]) -> Kind:
    """One kind for several: unions within are taken apart, literals become one, and `null` comes last."""
    flat: List[Kind] = []
    values: List[Any] = []
    for one in kinds:
        for part in one.kinds if isinstance(one, OneOf) else (one,):
            if isinstance(part, Literals):
                values += [value for value in part.values if value not in values]
            elif part not in flat:
                flat.append(part)
    if Word("boolean") in flat:
        values = [value for value in values if not isinstance(value, bool)]
    if values:
        flat.insert(0, Literals(tuple(values)))
    flat.sort(key=lambda part: part == NULL)
    return flat[0] if len(flat) == 1 else OneOf(tuple(flat))


def without_null(kind: Kind) -> Tuple[Kind, bool]:
    """The kind, and whether `null` is allowed besides."""
    if isinstance(kind, OneOf) and NULL in kind.kinds:
        return join([part for part in kind.kinds if part != NULL]), True
    return kind, False


class Model:
    """Everything that is generated, in an order in which nested records come before those that have them."""

    def __init__(self, document: Dict[str, Any]) -> None:
        self.document = document
        self.schemas: Dict[str, Any] = document["components"]["schemas"]
        self.inputs = self._inputs()
        self.aliases: List[Alias] = []
        self.records: List[Record] = []
        # The optional parameters of requests; the first is `Reading`.
        self.queries: List[Record] = []
        # Of records that answer a write with 200: the record that may answer it with 202 instead.
        self.accepted: Dict[str, str] = {}
        self._read()

    def find(self, name: str) -> Optional[Union[Record, Alias]]:
        """The record or alias of a name; `None` for one of `SCALARS`."""
        known: List[Union[Record, Alias]] = [*self.records, *self.aliases]
        return next((one for one in known if one.name == name), None)

    def _read(self) -> None:
        for name, schema in self.schemas.items():
            if name in SCALARS:
                continue
            is_input = name in self.inputs
            # The name is the object's; `null` is said wherever it is referred to.
            if is_nullable(schema):
                choices = schema.get("anyOf") or schema["oneOf"]
                [schema] = [choice for choice in choices if not is_null(choice)]
            if self._variants(schema):
                self._define(name, schema, is_input)
            else:
                self.aliases.append(Alias(name, self._kind(schema, name, "", is_input), is_input))
        shared = self.document["components"]["parameters"]
        told = "What every read may be asked with."
        self._parameters(Record("Reading", told, True), [shared[one] for one in READING])
        for path, operations in self.document["paths"].items():
            if path in LEFT_OUT or "snapshot" in path:
                continue
            for operation in operations.values():
                self._query(operation)
                self._answers(operation)
        types: List[Union[Record, Alias]] = [*self.aliases, *self.records, *self.queries]
        names = [one.name for one in types]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Unknown(f"{twice} would each be two types")

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

    def _resolve(self, schema: Dict[str, Any]) -> Dict[str, Any]:
        while "$ref" in schema:
            schema = self.schemas[reference(schema)]
        return schema

    def _variants(self, schema: Dict[str, Any]) -> List[Dict[str, Any]]:
        """The objects that a schema allows; none if it allows anything else."""
        schema = self._resolve(schema)
        if "anyOf" in schema or "oneOf" in schema:
            found = [self._variants(variant) for variant in schema.get("anyOf") or schema["oneOf"]]
            return [variant for variants in found for variant in variants] if all(found) else []
        return [schema] if "properties" in schema else []

    def _kind(self, schema: Dict[str, Any], owner: str, name: str, is_input: bool) -> Kind:
        """`owner` and `name` name a record for an object that has no name."""
        if "$ref" in schema:
            name = reference(schema)
            named = Named(name)
            return join([named, NULL]) if is_nullable(self.schemas[name]) else named
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self._kind(schema["allOf"][0], owner, name, is_input)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            if self._variants(schema):
                return self._define(owner + camel(name), schema, is_input)
            return join([self._kind(variant, owner, name, is_input) for variant in choices])
        if "const" in schema:
            return Literals((schema["const"],))
        if "enum" in schema:
            values: Kind = Literals(tuple(value for value in schema["enum"] if value is not None))
            return join([values] + ([NULL] if None in schema["enum"] else []))
        kind = schema.get("type")
        if isinstance(kind, list):
            return join([self._kind({**schema, "type": one}, owner, name, is_input) for one in kind])
        if kind == "array":
            return Array(self._kind(schema["items"], owner, singular(name), is_input))
        if kind == "object":
            if "properties" in schema:
                return self._define(owner + camel(name), schema, is_input)
            more = schema.get("additionalProperties")
            return Table(self._kind(more, owner, name, is_input) if isinstance(more, dict) else ANY)
        if kind is None and not set(schema) - {"description"}:
            return ANY
        if kind not in ("string", "integer", "number", "boolean", "null"):
            raise Unknown(f"{owner}.{name}: {json.dumps(schema)}")
        if kind != "integer":
            return Word(kind)
        least = schema.get("minimum", -1)
        return Word(kind, least >= 0, least > 0, schema.get("format") == "int64")

    def _define(self, name: str, schema: Dict[str, Any], is_input: bool) -> Kind:
        """Makes a record of an object, or of its variants."""
        if any(record.name == name for record in self.records):
            raise Unknown(f"two objects would be named {name}")
        variants = self._variants(schema)
        kinds: Dict[str, List[Kind]] = {}
        told: Dict[str, str] = {}
        for number, variant in enumerate(variants):
            for one, inner in variant["properties"].items():
                # The service ignores it where it is sent.
                if is_input and inner.get("readOnly"):
                    continue
                before = len(self.records)
                known = kinds.setdefault(one, [])
                if not any(inner == other["properties"].get(one) for other in variants[:number]):
                    known.append(self._kind(inner, name, one, is_input))
                    if len(known) > 1 and len(self.records) > before:
                        raise Unknown(f"{name}.{one} is more than one object")
                told.setdefault(one, inner.get("description", ""))
        record = Record(name, self._resolve(schema).get("description", ""), is_input)
        for one, found in kinds.items():
            is_required = all(one in variant.get("required", []) for variant in variants)
            record.fields.append(Field(one, join(found), is_required, told[one]))
        self.records.append(record)
        return Named(name)

    def _query(self, operation: Dict[str, Any]) -> None:
        """Makes a record of the optional parameters of a request's query, if there are any."""
        found = {}
        for parameter in operation.get("parameters", []):
            if "$ref" in parameter:
                parameter = self.document["components"]["parameters"][reference(parameter)]
            if parameter["in"] == "query" and not parameter["required"]:
                found[parameter["name"]] = parameter
        told = f"What `{operation['operationId']}` may be asked with."
        record = Record(camel(operation["operationId"]) + "Query", told, True)
        if set(READING) <= set(found):
            record.is_reading = True
            found = {name: parameter for name, parameter in found.items() if name not in READING}
        if found or record.is_reading:
            self._parameters(record, list(found.values()))

    def _answers(self, operation: Dict[str, Any]) -> None:
        """Takes down which answer of a write may come in place of another."""
        named = {
            status: reference(body["schema"])
            for status, answer in operation["responses"].items()
            for body in answer.get("content", {}).values()
            if status in ("200", "202") and "$ref" in body["schema"]
        }
        if len(named) == 2:
            self.accepted[named["200"]] = named["202"]

    def _parameters(self, record: Record, parameters: List[Dict[str, Any]]) -> None:
        for parameter in parameters:
            kind = self._kind(parameter["schema"], record.name, parameter["name"], True)
            told = parameter.get("description", "")
            record.fields.append(Field(parameter["name"], kind, False, told))
        self.queries.append(record)


def read() -> Model:
    return Model(json.loads(DOCUMENT.read_text(encoding="utf-8")))


def reference(schema: Dict[str, Any]) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[1]


def is_null(schema: Dict[str, Any]) -> bool:
    return schema.get("type") == "null"


def is_nullable(schema: Dict[str, Any]) -> bool:
    """Whether a schema of the document allows one other schema, or `null`."""
    choices = schema.get("anyOf") or schema.get("oneOf") or []
    return len(choices) == 2 and sum(map(is_null, choices)) == 1


def singular(text: str) -> str:
    return text[:-3] + "y" if text.endswith("ies") else text.rstrip("s")


def camel(text: str) -> str:
    return "".join(word.capitalize() for word in text.split("_"))
