"""What Go and C# have in common: each object is a type with a name, and a field has exactly one type."""

from __future__ import annotations

import re
from typing import ClassVar, Dict, List, Optional

from model import NULL, Alias, Array, Field, Kind, Literals, Model, OneOf, Record, Table, Word, without_null

# What a board's seasons are, a word or an object, is written by hand.
SEASON = re.compile(r"(DefinitionInput|ListedBoard|Board|DefinedBoard)Season")
NAMES = {"ProblemError": "InvalidJob"}


class NominalTypes:
    """The types of fields, in the words of a language."""

    language: ClassVar[str]
    words: ClassVar[Dict[str, str]]
    scalars: ClassVar[Dict[str, str]]
    # JSON of the caller's own, where it is sent and in answers.
    free_input: ClassVar[str]
    free_answer: ClassVar[str]

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tables = {one.name: table for one in model.records if (table := as_table(one))}

    def array(self, items: str) -> str:
        raise NotImplementedError

    def table(self, values: str) -> str:
        raise NotImplementedError

    def records(self, by_hand: List[str]) -> List[Record]:
        """The objects that are types of their own, without those that are written by hand."""
        left_out = [*self.tables, *by_hand]
        return [one for one in self.model.records if one.name not in left_out and not SEASON.fullmatch(one.name)]

    def problem_codes(self) -> List[str]:
        """The codes of problems, which those of rejected jobs are among."""
        (problem,) = [one for one in self.model.records if one.name == "Problem"]
        (code,) = [field.kind for field in problem.fields if field.name == "code"]
        assert isinstance(code, Literals)
        return [str(value) for value in code.values]

    def kind(self, kind: Kind, is_input: bool) -> str:
        kind, _ = without_null(kind)
        if kind == NULL:
            return "null"
        if isinstance(kind, Literals):
            return "bool" if isinstance(kind.values[0], bool) else "string"
        if isinstance(kind, Word):
            return self.free(is_input) if kind.name == "any" else self.words[kind.name]
        if isinstance(kind, Array):
            return self.array(self.kind(kind.items, is_input))
        if isinstance(kind, Table):
            return self.table(self.kind(kind.values, is_input))
        if isinstance(kind, OneOf):
            return self.one_of(kind, is_input)
        return self.named(kind.name, is_input)

    def free(self, is_input: bool) -> str:
        return self.free_input if is_input else self.free_answer

    def one_of(self, kind: OneOf, is_input: bool) -> str:
        names = [self.kind(one, is_input) for one in kind.kinds]
        if "Season" in names:
            return "Season"
        # An integer, or the same in decimal; or objects of which the first has the fields of the others.
        is_integer = names == [self.words["integer"], self.words["string"]]
        if is_integer or all(isinstance(one, Table) for one in kind.kinds):
            return names[0]
        if len(set(names)) > 1:
            raise ValueError(f"no type of {self.language} is known for {kind}")
        return names[0]

    def named(self, name: str, is_input: bool) -> str:
        if name in self.tables:
            return self.table(self.kind(self.tables[name], False))
        if name in ("Metadata", "Profile"):
            return self.free(is_input)
        if SEASON.fullmatch(name):
            return "Season"
        known = self.model.find(name)
        if isinstance(known, Alias) and known.kind == Word("string"):
            return self.words["string"]
        return self.scalars.get(name) or NAMES.get(name, name)


def as_table(one: Record) -> Optional[Kind]:
    """The kind of all fields of an answer's object, if all are optional and of one: then it is a map."""
    kinds = {field.kind for field in one.fields}
    is_table = not one.is_input and len(one.fields) > 1 and len(kinds) == 1
    return kinds.pop() if is_table and not any(field.is_required for field in one.fields) else None


def told(field: Field) -> str:
    """What is known of a field, and the values that it may have."""
    kind, _ = without_null(field.kind)
    if isinstance(kind, Array):
        kind = kind.items
    if not isinstance(kind, Literals) or isinstance(kind.values[0], bool) or len(kind.values) == 1:
        return field.told
    values = [f"`{value}`" for value in kind.values]
    if all(value in field.told for value in values):
        return field.told
    return f"{field.told} One of {', '.join(values)}.".strip()
