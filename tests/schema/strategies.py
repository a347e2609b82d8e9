"""Schemas, values and objects to throw at the schema room."""

from __future__ import annotations

from hypothesis import strategies as st

#: Text that stands for something else, or nearly does.
TEXTS = st.sampled_from([
    "5", "-3", "1.0", "1e3", "2.5", "٣", "１２", "−7", "NaN", "inf", "1_000", "1,000", "0x10", "²", " 5 ", "+1", "007", "true",
    "FALSE", " True ", "yes", "null", "Null", "[]", "[1, 2]", '["a"]', '{"a": "1"}', "{'a': 1}", "[1,", "", " ", "a", "b",
])  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e300]), TEXTS, st.text(max_size=4),
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c", "$ref", "type"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def _grown(inner: st.SearchStrategy) -> st.SearchStrategy:
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": inner | st.booleans(),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "[bc]"]), inner, max_size=1),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.sampled_from(["array", ["array", "integer"], ["array", "null"]]), "items": inner},
        optional={"prefixItems": st.lists(inner, min_size=1, max_size=2), "minItems": st.integers(0, 2)},
    )
    unions = st.builds(lambda key, branches: {key: branches}, st.sampled_from(["anyOf", "oneOf", "allOf"]),
                       st.lists(inner, min_size=1, max_size=3))  # fmt: skip
    return objects | arrays | unions


_LEAVES = st.one_of(
    st.builds(lambda kind: {"type": kind}, TYPES),
    st.builds(lambda kinds: {"type": kinds}, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
    st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1, max_size=3)),
    st.builds(lambda kind, values: {"type": kind, "enum": values}, TYPES, st.lists(SCALARS, min_size=1, max_size=3)),
    st.builds(lambda low: {"type": "integer", "minimum": low}, st.integers(-3, 3)),
    st.builds(lambda size: {"type": "string", "minLength": size}, st.integers(0, 3)),
    st.just({"$ref": "#/$defs/self"}),
    st.just({"$ref": "#/$defs/leaf"}),
    st.just({}),
)
_TREES = st.recursive(_LEAVES, _grown, max_leaves=6)
#: Valid JSON Schemas, also recursive ones.
SCHEMAS = st.builds(
    lambda tree, own: {**tree, "$defs": {"self": own, "leaf": {"type": ["integer", "null"]}}},
    _TREES,
    _TREES,
)


class Raising:
    """An object whose every way of being looked at raises."""

    def _raise(self, *_args: object) -> None:
        raise RuntimeError("no")

    __repr__ = __str__ = __eq__ = __iter__ = __len__ = __getattr__ = _raise
    __hash__ = object.__hash__


class Exiting:
    """An object whose text ends the process, if it may."""

    def __str__(self) -> str:
        raise SystemExit("no")

    __repr__ = __str__


class RaisingDict(dict):
    """A dict whose items can't be asked for."""

    def items(self):
        raise RuntimeError("no")


def cycle() -> list[object]:
    """A list that contains itself."""
    made: list = []
    made.append({"again": made})
    return made


def deep(levels: int, end: object = None) -> object:
    """Lists and objects in one another."""
    value = end
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


#: What no JSON text gives, and a host or a handler may.
HOSTILE = st.one_of(
    st.sampled_from([float("nan"), float("inf"), "\ud800", "\udfffx", b"\xff", "9" * 5000, 1j, ..., int]),
    st.builds(Raising), st.builds(object), st.builds(lambda sign: sign * 10**5000, st.sampled_from([1, -1])), st.builds(cycle), st.builds(RaisingDict, st.just({"a": "1"})),
    st.builds(deep, st.sampled_from([50, 99, 101, 300, 5000])), st.builds(lambda: (i for i in range(3))),
    st.builds(lambda: {1, "a"}), st.builds(lambda: {1: "a", None: 2}), st.builds(lambda: (1, "2")),
)  # fmt: skip
HOSTILE_VALUES = st.recursive(
    HOSTILE | SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.integers(), inner, max_size=3),
    max_leaves=6,
)
KEYWORDS = st.sampled_from([
    "type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "required", "$ref", "$defs", "not", "if",
    "prefixItems", "additionalProperties", "patternProperties", "nullable", "minimum", "pattern", "format", "default",
    "dependencies", "additionalItems", "divisibleBy", "exclusiveMinimum", "id", "$recursiveRef",
])  # fmt: skip
#: Anything where a schema should be: broken, recursive, deep.
HOSTILE_SCHEMAS = st.recursive(
    HOSTILE | SCALARS | st.sampled_from(["#", "#/$defs/a", "#/properties", "http://127.0.0.1:9/x", "integer", "("]),
    lambda inner: st.dictionaries(KEYWORDS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=10,
)
