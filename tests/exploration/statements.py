"""The PartiQL statement that changes one row: UPDATE with SET and REMOVE, by the row's whole key. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tests.exploration.values import Item, Malformed, Value

_STATEMENT = re.compile(r'UPDATE "(?P<table>[^"]+)"(?P<changes>( SET "[^"]+"=\?| REMOVE "[^"]+")+) WHERE (?P<key>.+)')


@dataclass(frozen=True, slots=True)
class Statement:
    """sets, keys: the attributes whose values are the statement's parameters, in order."""

    table: str
    sets: tuple[str, ...]
    removes: tuple[str, ...]
    keys: tuple[str, ...]

    def key(self, parameters: Sequence[Value]) -> Item:
        if len(parameters) != len(self.sets) + len(self.keys):
            raise Malformed("Number of parameters in request and statement don't match.")
        return dict(zip(self.keys, parameters[len(self.sets) :], strict=True))

    def update(self, item: Item, parameters: Sequence[Value]) -> Item:
        new = {**item, **dict(zip(self.sets, parameters, strict=False))}
        for name in self.removes:
            new.pop(name, None)
        return new


@cache
def read(text: str) -> Statement:
    found = _STATEMENT.fullmatch(text)
    keys = [re.fullmatch(r'"([^"]+)"=\?', part) for part in found["key"].split(" AND ")] if found else [None]
    if found is None or None in keys:
        raise Malformed(f"Statement wasn't well formed, can't be processed, or the model does not know it: {text}")
    changes = found["changes"]
    sets = tuple(re.findall(r' SET "([^"]+)"=\?', changes))
    removes = tuple(re.findall(r' REMOVE "([^"]+)"', changes))
    own = tuple(key[1] for key in keys if key is not None)
    if len({*sets, *removes, *own}) < len(sets) + len(removes) + len(own):
        raise Malformed("an attribute is changed twice, or is part of the key")
    return Statement(found["table"], sets, removes, own)
