"""A typed function as a tool."""

# ruff: noqa: B008, D417, UP045 - signatures and docstrings as people write them
from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import subprocess
import sys
import typing
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pydantic
import pytest
from hypothesis import given

from mibyan.errors import ToolSchemaError
from mibyan.schema.definition import normalise_schema
from mibyan.schema.signature import BindError, describe_function
from mibyan.schema.validate import compile_validator

from .strategies import VALUES

if typing.TYPE_CHECKING:
    from somewhere import Unseen


class Context:
    """Stands for ToolContext."""


def describe(function, **more):
    return describe_function(function, context_type=Context, **more)


def forecast(ctx: Context, city: str, days: int = 3, *, tags: list[str] | None = None, scale: float = 1.0) -> dict:
    """Weather forecast for a city.

    Args:
        city: Name of the city.
        days: Days to look ahead, 1 to 14.
    """
    return {"ctx": ctx, "city": city, "days": days, "tags": tags, "scale": scale}


def test_a_functions_schema():
    """api: names, types, defaults and texts of the parameters; the context isn't there; other keys are refused."""
    found = describe(forecast)
    assert found.name == "forecast"
    assert found.description == "Weather forecast for a city."
    assert found.context_parameter == "ctx"
    assert found.is_plain
    assert not found.is_async
    assert found.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "days": {"type": "integer", "description": "Days to look ahead, 1 to 14.", "default": 3},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            "scale": {"type": "number", "default": 1.0},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_what_is_given_wins_over_the_docstring():
    """api: name= and description= are what the model gets."""
    found = describe(forecast, name="weather", description="Look it up.")
    assert (found.name, found.description) == ("weather", "Look it up.")
    assert found.parameters["properties"]["city"]["description"] == "Name of the city."


def test_bind_gives_the_functions_own_defaults():
    """api: only what the model sent is bound; whole numbers are floats where floats are due."""
    bound = describe(forecast).bind({"city": "x", "scale": 2})
    assert repr(bound) == "{'city': 'x', 'scale': 2.0}"
    assert forecast(None, **bound)["days"] == 3


async def later(a: int) -> int:
    return a


class Callable_:
    async def __call__(self, a: int) -> int:
        return a


def wrapped(function):
    @functools.wraps(function)
    def outer(*args, **kwargs):
        return function(*args, **kwargs)

    return outer


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (later, True), (wrapped(later), True), (Callable_(), True), (functools.partial(later), True), (wrapped(forecast), False),
        (functools.partial(forecast, None), False), (Callable_().__call__, True), (lambda a: a, False),
    ],
    ids=["async", "wrapped async", "callable", "partial", "wrapped", "partial sync", "method", "lambda"],
)  # fmt: skip
def test_callables_of_all_sorts(function, is_async):
    """api: `async def`, decorated functions, callable objects, partials and methods are described by their signature."""
    found = describe(function)
    assert found.is_async is is_async
    assert found.parameters["type"] == "object"
    assert set(found.parameters["properties"]) <= {"a", "city", "days", "tags", "scale"}


@pytest.mark.parametrize(
    "annotation",
    [Context, "Context", Optional[Context], "Context | None", Annotated[Context, "x"], "typing.Annotated[Context, 'x']", "Optional[Context]"],
    ids=str,
)  # fmt: skip
def test_the_context_is_known_by_its_type(annotation):
    """api: one parameter annotated ToolContext, in whatever form, isn't in the schema; whatever it is called."""

    def function(anything, a: int): ...

    function.__annotations__["anything"] = annotation
    found = describe(function)
    assert found.context_parameter == "anything"
    assert list(found.parameters["properties"]) == ["a"]


def test_the_context_may_be_imported_for_type_checkers_only():
    """api: `if TYPE_CHECKING: from mibyan import ToolContext` is what linters ask for."""
    scope: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef function(ctx: Context, a: int): ...", scope)
    assert describe(scope["function"]).context_parameter == "ctx"


def test_no_parameter_is_filled_by_its_name():
    """api: `ctx` and `context` without the type are the model's to fill."""

    def function(ctx, context: str, session_id: int): ...

    found = describe(function)
    assert found.context_parameter is None
    assert found.parameters["required"] == ["ctx", "context", "session_id"]


def local_types():
    class Model(pydantic.BaseModel):
        """A model."""

        a: int
        when: dt.date = dt.date(2024, 1, 2)

    @dataclasses.dataclass
    class Data:
        x: int
        model: Model | None = None

    class Typed(TypedDict, total=False):
        model: typing.Required[Model]
        inner: list[Data]

    class Colour(enum.Enum):
        RED = "red"

    def function(
        model: Model,
        data: Data = Data(1),
        typed: Typed | None = None,
        colour: Colour = Colour.RED,
        at: dt.datetime | None = None,
        unique: set[int] = frozenset(),
        low: Annotated[int, pydantic.Field(ge=1, title="Low", description="Low.")] = 1,
        high: int = pydantic.Field(7, le=9),
        pair: tuple[int, str] = (1, "a"),
        word: Literal["a", "b"] = "a",
    ):
        """Do.

        Args:
            low: Not this.
            high: High.
        """

    return function, dict(locals())


def test_types_of_the_enclosing_function():
    """api: pydantic models, dataclasses, TypedDicts, enums and constraints, also where annotations are text."""
    function, names = local_types()
    found = describe(function, localns=names)
    parameters = found.parameters
    assert not found.is_plain
    assert compile_validator(parameters).problem is None
    assert normalise_schema("x", {"parameters": parameters})["parameters"] == parameters
    assert "title" not in str(parameters)
    assert set(parameters["$defs"]) == {"Model", "Data", "Typed", "Colour"}
    assert parameters["$defs"]["Typed"]["required"] == ["model"]
    properties = parameters["properties"]
    assert properties["model"] == {"$ref": "#/$defs/Model"}
    assert properties["low"] == {"type": "integer", "minimum": 1, "description": "Low.", "default": 1}
    assert properties["high"] == {"type": "integer", "maximum": 9, "default": 7, "description": "High."}
    assert "default" not in properties["data"]
    assert "default" not in properties["unique"]
    assert parameters["required"] == ["model"]


def test_bind_makes_python_values():
    """api: JSON values become the types' values; pydantic's `Field` default is filled in."""
    function, names = local_types()
    bound = describe(function, localns=names).bind({
        "model": {"a": 1, "when": "2024-02-03"}, "data": {"x": 2, "model": {"a": 3}}, "typed": {"model": {"a": 4}, "inner": [{"x": 5}]},
        "colour": "red", "at": "2024-01-01T00:00:00Z", "unique": [1, 1], "pair": [1, "b"], "word": "b",
    })  # fmt: skip
    assert bound["model"].when == dt.date(2024, 2, 3)
    assert bound["data"].model.a == 3
    assert bound["typed"]["inner"][0].x == 5
    assert bound["colour"] is names["Colour"].RED
    assert bound["at"].tzinfo is not None
    assert (bound["unique"], bound["pair"], bound["word"], bound["high"]) == ({1}, (1, "b"), "b", 7)
    assert "low" not in bound


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, ["model: is required"]),
        ({"model": {"a": 1}, "other": 1}, ["other: unknown key"]),
        ({"model": {}, "pair": [1]}, ["model.a: Field required", "pair[1]: Field required"]),
        ({"model": {"a": 1}, "colour": "blue"}, ["colour: Input should be 'red'"]),
    ],
)
def test_bind_tells_what_is_wrong(args, told):
    """dispatch.A3: what the types refuse is a BindError with paths, never another exception."""
    function, names = local_types()
    with pytest.raises(BindError) as caught:
        describe(function, localns=names).bind(args)
    assert [str(violation) for violation in caught.value.violations] == told


@pytest.mark.parametrize("error", [ValueError, RuntimeError, SystemExit, RecursionError])
def test_bind_survives_a_types_own_validator(error):
    """dispatch.A4: whatever a validator raises is told as a violation of its parameter."""

    def refuse(_value):
        raise error("no")

    Odd = Annotated[int, pydantic.BeforeValidator(refuse)]

    def function(odd: Odd): ...

    with pytest.raises(BindError) as caught:
        describe(function, localns={"Odd": Odd}).bind({"odd": 1})
    (violation,) = caught.value.violations
    assert violation.path == "odd"
    assert "no" in violation.message


@given(VALUES)
def test_bind_is_total(value):
    """dispatch.A4: unvalidated arguments are bound or are a BindError."""
    function, names = local_types()
    described = describe(function, localns=names)
    for args in ({"model": value}, {"model": {"a": 1}, "typed": value, "unique": value, "at": value}):
        try:
            described.bind(args)
        except BindError as error:
            assert error.violations  # noqa: PT017 - either outcome is right


class OldStyle(TypedDict):
    a: int
    b: NotRequired[list[OldStyle2]]


class OldStyle2(TypedDict):
    c: OldStyle3 | None


class OldStyle3(typing.NamedTuple):
    d: int


def test_typed_dicts_of_the_standard_library():
    """api: `typing.TypedDict` works on every Python, nested and in generic types too."""

    def function(one: OldStyle, many: dict[str, OldStyle | None], annotated: Annotated[OldStyle2, "x"]): ...

    parameters = describe(function).parameters
    assert parameters["$defs"]["OldStyle"]["required"] == ["a"]
    assert parameters["$defs"]["OldStyle"]["properties"]["b"]["items"] == {"$ref": "#/$defs/OldStyle2"}
    assert (
        describe(function).bind({"one": {"a": 1}, "many": {"x": None}, "annotated": {"c": [1]}})["annotated"]["c"].d
        == 1
    )


class Tree(TypedDict):
    kids: list[Tree]


def test_a_typed_dict_that_contains_itself():
    """api: a recursive TypedDict is a recursive schema."""

    def function(tree: Tree): ...

    described = describe(function)
    assert described.parameters["$defs"]["Tree"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/Tree"}
    assert described.bind({"tree": {"kids": [{"kids": []}]}}) == {"tree": {"kids": [{"kids": []}]}}
    with pytest.raises(BindError, match=r"tree\.kids\[0\]\.kids"):
        described.bind({"tree": {"kids": [{}]}})


def refused():
    def star(*args): ...
    def keywords(**more): ...
    def positional(a, /): ...
    def unknown(a: Nowhere): ...  # noqa: F821
    def unseen(a: Unseen): ...
    def broken(a: "1 +"): ...  # noqa: F722
    def raising(a: 1 / 0): ...
    def two(a: Context, b: Context): ...

    return [
        (star, "takes *args arguments"), (keywords, "takes **kwargs arguments"), (positional, "positional-only"),
        (unknown, "Nowhere"), (unseen, "Unseen"), (broken, "can't be resolved"), (raising, "division by zero"), (two, "second context"),
        (len, "positional-only"), (dict, "no signature"), (5, "no signature"),
    ]  # fmt: skip


@pytest.mark.parametrize(("function", "says"), refused(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_what_cannot_be_a_tool_is_refused_at_once(function, says):
    """registry.R1: a sentence names the tool, the parameter and what to do."""
    with pytest.raises(ToolSchemaError, match="tool 't'") as caught:
        describe(function, name="t")
    assert says in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("annotation", [list[Context], typing.Callable, compile], ids=str)
def test_types_without_a_schema_are_refused(annotation):
    """registry.R1: when the schema is asked for, a sentence names the tool and the parameter."""

    def function(odd): ...

    function.__annotations__["odd"] = annotation
    described = describe(function, name="t")
    assert not described.is_plain
    with pytest.raises(ToolSchemaError, match="tool 't': parameter 'odd'"):
        _ = described.parameters


def test_plain_functions_need_no_library():
    """architecture: neither pydantic nor a docstring parser is loaded for a function of plain types."""
    program = (
        "import sys\n"
        "from mibyan.schema.signature import describe_function\n"
        "def f(a: str, b: 'list[int] | None' = None): 'Do.'\n"
        "d = describe_function(f); d.parameters, d.description, d.bind({'a': 'x'})\n"
        "print([m for m in ('pydantic', 'docstring_parser', 'jsonschema_rs', 'typing_extensions') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "[]\n"


def test_shadowed_names_mean_what_they_mean_there():
    """api: a module or function that calls something else `list` is taken at its word."""
    scope: dict[str, Any] = {"list": int}
    exec("from __future__ import annotations\ndef function(a: list): ...", scope)
    assert describe(scope["function"]).parameters["properties"] == {"a": {"type": "integer"}}

    def function(a: dict): ...

    assert describe(function, localns={"dict": str}).parameters["properties"] == {"a": {"type": "string"}}


def test_closures_are_looked_into():
    """api: a type that the function itself refers to is found without the enclosing frame."""

    class Inner(pydantic.BaseModel):
        a: int

    def function(it: Inner):
        return Inner

    assert describe(function).bind({"it": {"a": 1}})["it"].a == 1
