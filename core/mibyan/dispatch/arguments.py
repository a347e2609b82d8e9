"""Arguments on their way to a handler: read, coerced, validated, bound (dispatch.A1 to A4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.dispatch import answers
from mibyan.records import field, record
from mibyan.schema.jsontext import JSONProblem, parse_strict
from mibyan.text import plain_text

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.plan import Plan
    from mibyan.tools.results import ToolResult

#: Containers inside one another in arguments.
MAX_DEPTH = 200
#: Violations that are told one by one: a model mends no more at once, and an answer has to stay readable.
MAX_VIOLATIONS = 100

_PLAIN = frozenset({str, int, float, bool, type(None)})
_CONVERSIONS = ((str, plain_text), (int, int.__int__), (float, float.__float__))


class ArgumentProblem(Exception):  # noqa: N818 - becomes an answer, not somebody's traceback
    """The arguments can't be used; carries the answer to the model."""

    def __init__(
        self, message: str, *, truncated: bool = False, violations: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.truncated = truncated
        self.violations = violations

    def answer(self, call: Call) -> ToolResult:
        """The result the model gets."""
        if self.truncated:
            return answers.failure(call, self.message, "arguments_truncated")
        return answers.invalid_arguments(call, self.message, self.violations)


@record(frozen=False)
class Prepared:
    """Arguments that a handler may get."""

    #: As JSON types: what hooks see.
    args: dict[str, Any]
    #: For typed functions: the keyword arguments made of them.
    bound: dict[str, Any] | None = None
    repairs: list[dict[str, Any]] = field(default_factory=list)


def read_arguments(raw: Any) -> dict[str, Any]:
    """dispatch.A1: the arguments as a dict of plain JSON types, a copy.

    Raises:
        ArgumentProblem: They aren't an object, or the text isn't JSON.
    """
    for _ in range(3):
        if raw is None:
            return {}
        if isinstance(raw, bytes | bytearray):
            raw = bytes(raw).decode("utf-8", "replace")
        if not isinstance(raw, str):
            break
        text = plain_text(raw).strip()
        if text in {"", "null"}:
            return {}
        raw = _parse(text)
    if isinstance(raw, dict):
        return _object(raw)
    kind = {list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}.get(type(raw))
    msg = f"The arguments must be a JSON object, not {kind or type(raw).__name__}."
    raise ArgumentProblem(msg)


def _parse(text: str) -> Any:
    try:
        return parse_strict(text)
    except JSONProblem as problem:
        if problem.truncated:
            msg = "The arguments end too early: they were cut off, and nothing was run. Send less in one call."
            raise ArgumentProblem(msg, truncated=True) from None
        msg = f"The arguments aren't valid JSON: {problem}. Send one JSON object."
        raise ArgumentProblem(msg) from None


def _object(raw: dict[Any, Any]) -> dict[str, Any]:
    try:
        return _copy(raw, 0)  # type: ignore[no-any-return]
    except RecursionError:
        msg = f"The arguments are nested more than {MAX_DEPTH} deep."
        raise ArgumentProblem(msg) from None


def _copy(value: Any, depth: int) -> Any:
    """A deep copy in plain JSON types; what isn't one stays as it is and is judged by the schema.

    A value of a subclass becomes a plain one, and none of its own methods is called: whoever made it has no code to run
    where the copy goes.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if issubclass(kind, dict | list | tuple):
        if depth >= MAX_DEPTH:
            raise RecursionError
        if issubclass(kind, dict):
            return {_key(key): _copy(item, depth + 1) for key, item in dict.items(value)}
        items = list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)
        return [_copy(item, depth + 1) for item in items]
    for base, plain in _CONVERSIONS:
        if issubclass(kind, base):
            return plain(value)
    return value


def _key(key: Any) -> str:
    if type(key) is str:
        return key
    if issubclass(type(key), str):
        return plain_text(key)
    msg = f"The arguments' keys must be text, not {type(key).__name__}."
    raise ArgumentProblem(msg)


def copy_arguments(args: dict[str, Any]) -> dict[str, Any]:
    """A deep copy for somebody who may change it."""
    return _copy(args, 0)  # type: ignore[no-any-return]


def prepare(plan: Plan, args: dict[str, Any]) -> Prepared:
    """Coerce, validate and bind a copy of the arguments.

    Raises:
        ArgumentProblem: They don't fit the tool's schema; every violation is told.
    """
    repairs: list[dict[str, Any]] = []
    if plan.validates:
        args, done, violations = plan.arguments.check(args)
        repairs = [{"path": repair.path, "how": repair.how} for repair in done]
        if violations:
            raise _refused(plan, [{"path": v.path, "message": v.message} for v in violations])
    return Prepared(args, bind(plan, args), repairs)


def bind(plan: Plan, args: dict[str, Any]) -> dict[str, Any] | None:
    """The keyword arguments of a typed function; `None`: it is none.

    Raises:
        ArgumentProblem: Its own types refuse them; every violation is told.
    """
    make = plan.entry.bind
    if make is None:
        return None
    from mibyan.schema.signature import BindError

    try:
        return make(args)
    except BindError as error:
        raise _refused(plan, [{"path": v.path, "message": v.message} for v in error.violations]) from None


def _refused(plan: Plan, violations: list[dict[str, Any]]) -> ArgumentProblem:
    if len(violations) > MAX_VIOLATIONS:
        rest = {"path": "", "message": f"and {len(violations) - MAX_VIOLATIONS} more violations"}
        violations = [*violations[:MAX_VIOLATIONS], rest]
    told = "; ".join(f"{violation['path']}: {violation['message']}" if violation["path"] else violation["message"]
                     for violation in violations)  # fmt: skip
    return ArgumentProblem(f"Invalid arguments for {plan.entry.name}: {told}", violations=violations)
