"""Writes the Rust client's types: structs of answers and jobs, words, and the options of requests.

Integers of 64 bits are `i64` or `u64`; `integers.rs` reads those that the service writes as strings. Scores, tokens
and times have types that are written by hand, and words of the API become enums that keep a word they do not know.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Dict, List, Tuple

from model import (
    ANY,
    NULL,
    ROOT,
    Array,
    Kind,
    Literals,
    Model,
    Named,
    OneOf,
    Record,
    Table,
    Unknown,
    Word,
    camel,
    without_null,
)

TYPES = ROOT / "clients" / "rust" / "src" / "types.rs"
WIDTH = 110

# Schemas that are written by hand, or are a word of Rust.
SCALARS = {
    "Integer": "i64",
    "IntegerInput": "i64",
    "Version": "u64",
    "Metadata": "Value",
    "Profile": "Value",
    "Time": "Time",
    "Token": "Token",
    "AsOf": "Token",
    "Score": "Score",
    "ScoreInput": "Score",
    "BoardName": "String",
    "InstanceName": "String",
    "MemberId": "String",
}
WORDS = {"string": "String", "number": "f64", "boolean": "bool", "any": "Value"}
# An enum for each field, or parameter, that is one of a few words. Several may share one.
ENUMS = {
    "above_max": "Beyond",
    "accuracy": "Accuracy",
    "aggregate": "Aggregate",
    "below_min": "Beyond",
    "code": "Reason",
    "combine": "Combination",
    "failed": "Failure",
    "from": "End",
    "kind": "BoardKind",
    "level": "Level",
    "movement": "Window",
    "op": "Op",
    "order": "Order",
    "owner": "Ownership",
    "policy": "Policy",
    "reason": "Reason",
    "rejected": "Reason",
    "results": "Results",
    "state": "State",
    "ties": "Ties",
    "type": "KeyType",
    "wait": "Wait",
    "windows": "Window",
}
TOLD = {
    "Accuracy": "Whether ranks may come from summaries.",
    "Aggregate": "What becomes of the scores of a member on several boards.",
    "Beyond": "What an increment beyond a bound does.",
    "BoardKind": "What a board keeps.",
    "Combination": "Which members of several boards are taken together.",
    "End": "The end of a board that a list begins at.",
    "Failure": "Why a job was neither applied nor rejected.",
    "KeyType": "What the values of a key are.",
    "Level": "How full a stream is.",
    "Op": "What a job does.",
    "Order": "Which values of a key are better.",
    "Ownership": "Whether the node that answers owns a shard.",
    "Policy": "What a job without `op` does.",
    "Reason": "Why a job was rejected.",
    "Results": "What is told of each job.",
    "State": "How a shard is.",
    "Ties": "Which of equal scores comes first.",
    "Wait": "What a write waits for.",
    "Window": "A time slice that a board has a ranking of.",
}
# Better names for objects that have none in the document.
NAMES = {
    "PercentilesPercentile": "PercentileScore",
    "ProblemError": "JobProblem",
    "RanksRank": "ScoreRank",
    "StreamHeldByLag": "Held",
}
# Of these the client knows more than the document says, or nothing.
BY_HAND = ["Problem", "ProblemShard", "Accepted", "Snapshot", "SnapshotShard", "SnapshotShardFile", "DeletedSnapshot"]
# With 202 these have a token and nothing else.
MAY_BE_ACCEPTED = ["EntryWritten", "JobsWritten", "MemberRemoved"]
# Arrays and objects in the body of one request, which the client writes itself.
BODIES = ["LookupInput", "ScoresInput", "SeasonInput"]
KEYWORDS = ["type", "match", "ref", "self", "use", "where", "in", "move", "loop"]

HEADER = """//! The types of requests and answers. `make clients-generate` writes this file: do not edit it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::query::{HasReading, Pairs, Query};
use crate::request::Request;
use crate::{Score, Season, Time, Token};

"""

DERIVED = "#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]\n#[non_exhaustive]"


def files(model: Model) -> Dict[Path, str]:
    """What the client's files should be."""
    return {TYPES: Types(model).text()}


class Types:
    def __init__(self, model: Model) -> None:
        self.model = model
        # Of each enum its words, in the order in which they are found.
        self.enums: Dict[str, List[str]] = {}
        self.records = [record for record in model.records if record.name not in BY_HAND + BODIES]
        self.names = self._names()

    def _names(self) -> Dict[str, str]:
        """Objects with the same fields are one struct."""
        alike: Dict[str, List[Record]] = {}
        for record in self.records:
            shape = repr([(field.name, field.kind, field.is_required) for field in record.fields])
            is_top = record.name in self.model.schemas
            alike.setdefault(record.name if is_top else shape, []).append(record)
        names: Dict[str, str] = {}
        for same in alike.values():
            first = same[0].name
            short = common_end([record.name for record in same])
            is_free = len(same) > 1 and short and short not in self.model.schemas
            for record in same:
                names[record.name] = NAMES.get(first, short if is_free else first)
        return names

    def kind(self, kind: Kind, field: str) -> str:
        """The type of Rust of a kind that is not `null`."""
        if isinstance(kind, OneOf):
            return self._one_of(kind, field)
        if isinstance(kind, Literals):
            if kind.values == (True,):
                return "bool"
            return self._enum(kind, field)
        if isinstance(kind, Array):
            return f"Vec<{self.kind(kind.items, field)}>"
        if isinstance(kind, Table):
            return "Value" if kind.values == ANY else f"BTreeMap<String, {self.kind(kind.values, field)}>"
        if isinstance(kind, Word):
            if kind.name == "integer":
                return "u64" if kind.is_unsigned else "i64"
            # Tokens are said in words of their own where they are described.
            return "Token" if field == "token" else WORDS[kind.name]
        return SCALARS.get(kind.name) or self.names[kind.name]

    def _one_of(self, kind: OneOf, field: str) -> str:
        inner, is_nullable = without_null(kind)
        if is_nullable:
            return f"Option<{self.kind(inner, field)}>"
        if field == "season":
            return "Season"
        words = [part.name for part in kind.kinds if isinstance(part, Word)]
        if words == ["integer", "string"]:
            return self.kind(kind.kinds[0], field)
        if all(isinstance(part, Table) for part in kind.kinds):
            # Outcomes of boards, with and without the entry.
            return "BTreeMap<String, BoardResult>"
        raise Unknown(f"{field}: {kind}")

    def _enum(self, kind: Literals, field: str) -> str:
        if field not in ENUMS:
            raise Unknown(f"{field} is one of {kind.values}, and ENUMS has no name for it")
        known = self.enums.setdefault(ENUMS[field], [])
        known += [str(value) for value in kind.values if value not in known]
        return ENUMS[field]

    def text(self) -> str:
        structs: List[str] = []
        written = set()
        for record in self.records:
            name = self.names[record.name]
            if name not in written and name not in ("Season", "Changed"):
                written.add(name)
                structs.append(self._struct(record, name))
        queries = [self._query(query) for query in self.model.queries]
        enums = []
        for name, words in self.enums.items():
            lines = [f'    {camel(word)} = "{word}",' for word in words]
            head = f"words! {{\n    /// {TOLD[name]}\n    {name} {{\n"
            enums.append(head + "\n".join(f"    {line}" for line in lines) + "\n    }\n}")
        return HEADER + "\n\n".join(enums + structs + queries) + "\n"

    def _struct(self, record: Record, name: str) -> str:
        if name == "Change":
            name = "BoardResult"
        fields = [field for field in record.fields if field.kind != NULL]
        all_optional = not any(field.is_required for field in fields)
        # No time is a default.
        has_default = record.is_input and not any(one.is_required and one.kind == Named("Time") for one in fields)
        derived = DERIVED.replace("Debug, ", "Debug, Default, ") if has_default else DERIVED
        told = record.told or f"`{name}` of the API."
        lines = [*comment(told, ""), derived, f"pub struct {name} {{"]
        setters: List[str] = []
        required: List[Tuple[str, str]] = []
        for field in fields:
            kind, is_nullable = without_null(field.kind)
            is_optional = is_nullable or not field.is_required
            if record.name in MAY_BE_ACCEPTED and field.name != "token":
                is_optional = True
            if name == "BoardResult" and field.name != "changed":
                is_optional = True
            inner = self.kind(kind, field.name)
            described = comment(field.told or f"`{field.name}`.", "    ")
            attributes: List[str] = []
            is_i64 = isinstance(kind, Named) and kind.name in ("Integer", "IntegerInput")
            if inner == "bool" and is_optional and not record.is_input and kind == Literals((True,)):
                attributes.append("default")
                full = "bool"
            elif inner == "Value" and is_nullable and field.is_required:
                attributes.append("default")
                full = "Value"
            elif is_optional:
                attributes += ["default", 'skip_serializing_if = "Option::is_none"']
                if is_i64:
                    attributes.append('deserialize_with = "crate::integers::optional"')
                full = f"Option<{inner}>"
            else:
                if is_i64:
                    attributes.append('deserialize_with = "crate::integers::required"')
                full = inner
            lines += described
            if attributes:
                lines.append(f"    #[serde({', '.join(attributes)})]")
            lines.append(f"    pub {word(field.name)}: {full},")
            if record.is_input and is_optional:
                setters.append("\n".join(self._setter(field.name, f"Sets `{field.name}`.", inner, "self")))
            elif record.is_input:
                required.append((word(field.name), inner))
        lines.append("}")
        if record.is_input and (required or setters):
            lines += ["", f"impl {name} {{"]
            if required:
                arguments = ", ".join(f"{one}: {argument(inner)}" for one, inner in required)
                values = ", ".join(shorthand(one, into(one, inner)) for one, inner in required)
                rest = "" if len(required) == len(fields) else ", ..Self::default()"
                needs = " and ".join(f"`{one}`" for one, _ in required)
                lines += [
                    f"    /// With {needs} and nothing else.",
                    "    #[must_use]",
                    f"    pub fn new({arguments}) -> Self {{",
                    f"        Self {{ {values}{rest} }}",
                    "    }",
                ]
            elif all_optional:
                lines += [
                    "    /// Without anything.",
                    "    #[must_use]",
                    "    pub fn new() -> Self {",
                    "        Self::default()",
                    "    }",
                ]
            for setter in setters:
                lines += ["", setter]
            lines.append("}")
        return "\n".join(lines)

    def _setter(self, name: str, told: str, inner: str, target: str) -> List[str]:
        name = word(name)
        return [
            *comment(told, "    "),
            # A request is so by its type.
            *([] if target == "self.query" else ["    #[must_use]"]),
            f"    pub fn {name}(mut self, {name}: {argument(inner)}) -> Self {{",
            f"        {target}.{name} = Some({into(name, inner)});",
            "        self",
            "    }",
        ]

    def _query(self, query: Record) -> str:
        name = query.name
        lines = [
            *comment(query.told, ""),
            "#[derive(Clone, Debug, Default, PartialEq)]",
            "#[non_exhaustive]",
            f"pub struct {name} {{",
        ]
        if query.is_reading:
            lines.append("    pub(crate) reading: Reading,")
        pairs = []
        setters = []
        for field in query.fields:
            inner = self.kind(field.kind, field.name)
            lines.append(f"    pub(crate) {word(field.name)}: Option<{inner}>,")
            pairs.append(f'        pairs.put("{field.name}", self.{word(field.name)}.as_ref());')
            told = field.told or f"Asks with `{field.name}`."
            setters.append("\n".join(self._setter(field.name, told, inner, "self.query")))
        lines += ["}", "", f"impl Query for {name} {{", "    fn write(&self, pairs: &mut Pairs) {"]
        if query.is_reading:
            lines.append("        self.reading.write(pairs);")
        lines += [*pairs, "    }", "}"]
        if query.is_reading:
            lines += [
                "",
                f"impl HasReading for {name} {{",
                "    fn reading(&mut self) -> &mut Reading {",
                "        &mut self.reading",
                "    }",
                "}",
            ]
        if name == "Reading":
            setters = [setter.replace("self.query.", "self.query.reading().") for setter in setters]
            lines += ["", "impl<Q: HasReading, A> Request<Q, A> {", "\n\n".join(setters), "}"]
        elif setters:
            lines += ["", f"impl<A> Request<{name}, A> {{", "\n\n".join(setters), "}"]
        return "\n".join(lines)


def argument(inner: str) -> str:
    """What a function takes for a type."""
    if inner == "Vec<String>":
        return "impl IntoIterator<Item = impl Into<String>>"
    if inner.startswith("Vec<"):
        return f"impl Into<{inner}>"
    if inner.startswith("BTreeMap<String, "):
        values = inner[len("BTreeMap<String, ") : -1]
        return f"impl IntoIterator<Item = (impl Into<String>, impl Into<{values}>)>"
    return f"impl Into<{inner}>" if inner in ("String", "Token", "Time", "Score", "Season") else inner


def into(name: str, inner: str) -> str:
    if inner == "Vec<String>":
        return f"{name}.into_iter().map(Into::into).collect()"
    if inner.startswith("BTreeMap<"):
        return f"{name}.into_iter().map(|(key, value)| (key.into(), value.into())).collect()"
    return f"{name}.into()" if argument(inner).startswith("impl Into") else name


def shorthand(name: str, value: str) -> str:
    return name if name == value else f"{name}: {value}"


def word(name: str) -> str:
    return f"r#{name}" if name in KEYWORDS else name


def common_end(names: List[str]) -> str:
    """The words that all names end in."""
    split = [words_of(name) for name in names]
    found: List[str] = []
    while all(len(one) > len(found) for one in split):
        last = {one[-1 - len(found)] for one in split}
        if len(last) > 1:
            break
        found.insert(0, last.pop())
    return "".join(found)


def words_of(name: str) -> List[str]:
    found: List[str] = []
    for letter in name:
        if letter.isupper() or not found:
            found.append("")
        found[-1] += letter
    return found


def comment(text: str, indent: str) -> List[str]:
    if not text:
        return []
    return [f"{indent}/// {line}" for line in textwrap.wrap(text, WIDTH - 5 - len(indent), break_on_hyphens=False)]
