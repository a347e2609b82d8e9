"""The kinds of value that a key of config.yaml can have, as annotations that pydantic reads when it is there.

Every kind is exact: text isn't a number, a number isn't text, and `true` isn't 1.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

#: Seconds in a year; no waiting time is longer.
YEAR = 31_536_000


class Bounds:
    """A finite number within bounds.

    Args:
        above: It must be greater.
        at_least: It must be this or greater.
        at_most: It must be this or less.
    """

    def __init__(self, *, above: float | None = None, at_least: float | None = None, at_most: float = 10**9) -> None:
        self._limits = {"gt": above, "ge": at_least, "le": at_most}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        limits = {name: limit for name, limit in self._limits.items() if limit is not None}
        schema = {**handler(source), "strict": True, **limits}
        if source is int:
            return schema
        return core_schema.no_info_after_validator_function(_whole, {**schema, "allow_inf_nan": False})


class Switch:
    """A boolean.

    Args:
        words: Whether `"on"` and `"off"` in quotes count too (bare, YAML 1.1 reads them as booleans).
    """

    def __init__(self, *, words: bool = True) -> None:
        self._words = words

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        schema = {**handler(source), "strict": True}
        return core_schema.no_info_before_validator_function(_on_off, schema) if self._words else schema

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        return {"anyOf": [schema, {"enum": ["on", "off"]}]} if self._words else schema


class WithOff:
    """An enumeration that has `off`: written bare, YAML 1.1 reads it as the boolean false."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(_off_word, handler(source))

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        return {"anyOf": [handler(source), {"const": False}]}


class Matching:
    """Text that a pattern matches.

    Args:
        pattern: A regular expression.
        what: What such text is called; the message says it.
    """

    def __init__(self, pattern: str, what: str) -> None:
        self._pattern = re.compile(pattern)
        self._what = what

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "pattern": self._pattern.pattern}

    def _check(self, value: str) -> str:
        """`value`, if it matches."""
        from pydantic_core import PydanticCustomError

        if self._pattern.search(value):
            return value
        raise PydanticCustomError("no_match", "{what}", {"what": self._what})


class Loose:
    """Text that people write as a whole number, `user: 1000`, or as YAML's boolean, `StrictHostKeyChecking: no`.

    Args:
        booleans: Whether a boolean is taken for the word yes or no.
    """

    def __init__(self, *, booleans: bool = False) -> None:
        self._booleans = booleans

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self._as_text, handler(source))

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "type": ["string", "integer", *["boolean"] * self._booleans]}

    def _as_text(self, value: Any) -> Any:
        """Text for a number or a boolean, else `value`."""
        if isinstance(value, bool):
            return {True: "yes", False: "no"}[value] if self._booleans else value
        # A fraction isn't taken: 3.10 has become 3.1 already.
        return str(value) if isinstance(value, int) else value


class OffIsNothing:
    """A section that can be left out: `off` leaves it out too."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(_off_nothing, handler(source))

    def __get_pydantic_json_schema__(self, source: Any, handler: Any) -> Any:
        return {"anyOf": [handler(source), {"const": False}]}


def _whole(value: float) -> float:
    """`value`, as an int where nothing is lost: 300 is shown as it was written."""
    return int(value) if value.is_integer() else value


def _on_off(value: Any) -> Any:
    """A boolean for the words, else `value`."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


def _off_word(value: Any) -> Any:
    """`"off"` for false, else `value`."""
    return "off" if value is False else value


def _off_nothing(value: Any) -> Any:
    """Nothing for false, else `value`."""
    return None if value is False else value


#: Text of at least one character, without NUL.
Text: TypeAlias = Annotated[str, Matching(r"^[^\x00]*[^\x00\s][^\x00]*$", "text that isn't empty")]
#: The name of an environment variable; a key pasted here by mistake isn't one.
EnvName: TypeAlias = Annotated[str, Matching(r"^[A-Za-z_][A-Za-z0-9_]*$", "the name of an environment variable")]
#: A boolean; on and off, bare or quoted, count.
Flag: TypeAlias = Annotated[bool, Switch()]
#: A YAML boolean and nothing else.
ExactFlag: TypeAlias = Annotated[bool, Switch(words=False)]
#: Seconds greater than 0.
Seconds: TypeAlias = Annotated[float, Bounds(above=0, at_most=YEAR)]
#: Seconds, 0 for none.
SecondsOrNone: TypeAlias = Annotated[float, Bounds(at_least=0, at_most=YEAR)]
#: A whole number, 1 or more.
Count: TypeAlias = Annotated[int, Bounds(at_least=1)]
#: A whole number, 0 or more.
CountOrNone: TypeAlias = Annotated[int, Bounds(at_least=0)]
#: Text; a whole number is taken for its digits.
LooseText: TypeAlias = Annotated[str, Loose()]
#: Text; a whole number is taken for its digits, a boolean for yes or no.
OptionText: TypeAlias = Annotated[str, Loose(booleans=True)]
#: A whole number from 1 to 1024.
Workers: TypeAlias = Annotated[int, Bounds(at_least=1, at_most=1024)]
#: A TCP port.
Port: TypeAlias = Annotated[int, Bounds(at_least=1, at_most=65_535)]
#: A number greater than 0.
Positive: TypeAlias = Annotated[float, Bounds(above=0)]
#: A number, 0 or greater.
NotNegative: TypeAlias = Annotated[float, Bounds(at_least=0)]
#: A number from 0 to 100.
Percent: TypeAlias = Annotated[float, Bounds(at_least=0, at_most=100)]
#: The modes of approvals.
ApprovalMode: TypeAlias = Annotated[Literal["manual", "smart", "off"], WithOff()]
#: The events that a shell hook can be for.
HookEvent: TypeAlias = Literal[
    "pre_tool_call", "post_tool_call", "transform_tool_result", "transform_terminal_output",
    "on_session_start", "on_session_end", "pre_approval_request", "post_approval_response",
]  # fmt: skip
