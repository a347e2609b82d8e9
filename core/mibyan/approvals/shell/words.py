"""`Words`: a word of the tree as the words that a command gets: quotes, braces, `~`, variables, substitutions, fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mibyan.approvals.shell import braces, params
from mibyan.approvals.shell.escapes import unescaped
from mibyan.approvals.shell.values import HOME, NO_ORIGINS, UNKNOWN, Arg, Data

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.shell.braces import Cell
    from mibyan.approvals.shell.scope import Scope

#: Characters of a word up to which it is followed.
MAX_TEXT = 1_000_000

_GLOB = re.compile(r"[*?\[]")
_TILDE = re.compile(r"~([A-Za-z0-9_.-]*)(?=/|$)")
#: What a backslash takes away from in double quotes.
_QUOTABLE = re.compile(r"\\([$`\"\\\n])")


class _Field:
    """A word in the making."""

    def __init__(self) -> None:
        self.text = ""
        self.active: list[int] = []
        self.origins = NO_ORIGINS
        self.data: Data | None = None
        self.there = False

    def add(self, text: str, *, active: bool = False) -> None:
        if len(self.text) + len(text) > MAX_TEXT:
            self.text, self.active, text = UNKNOWN, [], ""
            self.there = True
        if active:
            self.active += [len(self.text) + match.start() for match in _GLOB.finditer(text)]
        self.text += text
        self.there = self.there or bool(text)


class Words:
    """Expands words in one scope.

    Args:
        scope: The variables.
        substitute: What the commands of a `CmdSubst` or `ProcSubst` node write; running them is noted.
        span: From where to where, for words of inner code: the outer word's.
        evaluate: Notes what runs in the substitutions of a text that is expanded once more.
    """

    def __init__(
        self,
        scope: Scope,
        substitute: Callable[[dict[str, Any]], Data],
        span: tuple[int, int] | None = None,
        evaluate: Callable[[str], None] | None = None,
    ) -> None:
        self._scope = scope
        self._substitute = substitute
        self._span = span
        self._evaluate = evaluate
        #: Whether the word in the making has literal text beside its expansions.
        self._glued = False

    def fields(self, word: dict[str, Any]) -> list[Arg]:
        """The words that a word of a command becomes."""
        cells = list(_cells(word.get("Parts", ()), quoted=False))
        span = self.span(word)
        plain = len(word.get("Parts", ())) == 1 and word["Parts"][0].get("Type") == "Lit"
        return [arg for piece in braces.expand(cells) for arg in self._split(piece, span, plain=plain)]

    def single(self, word: dict[str, Any] | None, *, quoted: bool = False) -> Arg:
        """A word that stays one: of an assignment, a redirection, a here-document (`quoted`)."""
        if word is None:
            return Arg("")
        if word.get("Type") not in {None, "Word"}:
            return Arg(self._arithmetic(word), span=self.span(word))
        parts = self._split(list(_cells(word.get("Parts", ()), quoted=quoted)), self.span(word), whole=True)
        return parts[0] if parts else Arg("", span=self.span(word))

    def text(self, word: dict[str, Any] | None) -> str:
        """The text of a word that stays one."""
        return self.single(word).text

    def span(self, node: dict[str, Any]) -> tuple[int, int]:
        """From where to where a node stands, in bytes."""
        if self._span is not None:
            return self._span
        return node.get("Pos", {}).get("Offset", 0), node.get("End", {}).get("Offset", 0)

    def _split(
        self, cells: list[Cell], span: tuple[int, int], *, whole: bool = False, plain: bool = False
    ) -> list[Arg]:
        done: list[_Field] = []
        field = _Field()
        self._glued = any(isinstance(what, str) and what for what, _ in cells)
        for index, (what, quoted) in enumerate(cells):
            if isinstance(what, str):
                if not quoted and index == 0 and what.startswith("~"):
                    what = _TILDE.sub(_home, what, count=1)  # noqa: PLW2901 - the same word
                field.add(what, active=not quoted)
                field.there = field.there or quoted
            else:
                field = self._add_node(what, field, done, quoted=quoted or whole, listed=quoted)
        fields = [*done, field] if field.there else done
        return [Arg(one.text, frozenset(one.active), span, one.origins, one.data, plain) for one in fields]

    def _add_node(
        self, node: dict[str, Any], field: _Field, done: list[_Field], *, quoted: bool, listed: bool
    ) -> _Field:
        value, origins, data = self._value(node)
        field.origins |= origins
        if data is not None:
            field.data = data
        field.there = field.there or (quoted and value != [])
        pieces = [value] if isinstance(value, str) else value
        if listed and isinstance(value, list) and not _is_star(node):
            pieces = value
        elif quoted:
            pieces = [" ".join(pieces)]
        else:
            pieces = _fields_of(pieces, self._scope.get("IFS"))
        for index, piece in enumerate(pieces):
            if index:
                if field.there:
                    done.append(field)
                field = _Field()
                field.origins, field.there = origins, quoted
            field.add(piece, active=not quoted)
        return field

    def _value(self, node: dict[str, Any]) -> tuple[params.Value, frozenset[str], Data | None]:
        kind = node.get("Type")
        if kind == "ParamExp":
            return self._parameter(node), self._scope.origins_of(node.get("Param", {}).get("Value", "")), None
        if kind == "CmdSubst":
            data = self._substitute(node)
            return UNKNOWN if data.text is None else data.text.rstrip("\n"), data.origins, None
        if kind == "ProcSubst":
            return "/dev/fd/63", NO_ORIGINS, self._substitute(node)
        if kind == "ArithmExp":
            return self._arithmetic(node.get("X")), NO_ORIGINS, None
        if kind == "ExtGlob":
            return UNKNOWN, NO_ORIGINS, None
        return UNKNOWN, NO_ORIGINS, None

    def _parameter(self, node: dict[str, Any]) -> params.Value:
        if self._glued and self._scope.is_bare_argument(node):
            return ""
        value = params.expand(node, self._scope, self.text)
        self.look_into([node.get("Index"), node.get("Slice"), node.get("Repl")], arithmetic=True)
        operation = node.get("Exp") or {}
        if operation.get("Op") == "@" and self.text(operation.get("Word")) == "P":
            self.expand_again(value if isinstance(value, str) else " ".join(value))
            return UNKNOWN
        return value

    def expand_again(self, text: str) -> None:
        """Note what runs in a text that the shell expands once more, as it does with the values in arithmetic."""
        if self._evaluate is not None and ("$(" in text or "`" in text):
            self._evaluate(text)

    def _arithmetic(self, node: dict[str, Any] | None) -> str:
        """A number if it stands there, else unknown; what runs inside of it is noted."""
        if node is not None and node.get("Type") == "Word":
            text = self.text(node)
            value = self._scope.get(text) if text.isidentifier() else text
            self.expand_again(value if isinstance(value, str) else "")
            return value if isinstance(value, str) and value.lstrip("-").isdigit() else UNKNOWN
        self.look_into(node, arithmetic=True)
        if node is not None and node.get("Type") == "UnaryArithm" and node.get("Op") == "-":
            inner = self._arithmetic(node.get("X"))
            return f"-{inner}" if inner.isdigit() else UNKNOWN
        return UNKNOWN

    def look_into(self, node: Any, *, arithmetic: bool = False) -> None:
        """Note what runs in substitutions anywhere inside a node.

        Args:
            node: The node.
            arithmetic: Whether it is an expression, whose names' values are expanded once more.
        """
        todo = [node]
        while todo:
            one = todo.pop()
            if isinstance(one, list):
                todo += one
            elif isinstance(one, dict):
                if one.get("Type") in {"CmdSubst", "ProcSubst"}:
                    self._substitute(one)
                elif arithmetic and one.get("Type") == "Word":
                    self._arithmetic(one)
                else:
                    todo += [value for value in one.values() if isinstance(value, dict | list)]


def _is_star(node: dict[str, Any]) -> bool:
    index = node.get("Index", {}).get("Parts", [{}])[0].get("Value")
    return "*" in {node.get("Param", {}).get("Value"), index}


def _home(match: re.Match[str]) -> str:
    return {"": HOME, "root": "/root", "+": UNKNOWN, "-": UNKNOWN}.get(match[1], f"/home/{match[1]}")


def _fields_of(values: list[str], separators: Any) -> list[str]:
    """Unquoted values as fields: an empty first or last one says that the word ends or begins there."""
    if not isinstance(separators, str) or UNKNOWN in separators:
        separators = " \t\n"
    if not separators:
        return values
    pattern = f"[{re.escape(separators)}]+"
    fields: list[str] = []
    for value in values:
        fields += re.split(pattern, value) if value else [""]
    return fields


def _cells(parts: Any, *, quoted: bool) -> Any:
    """The parts of a word as cells."""
    for part in parts:
        kind, value = part.get("Type"), part.get("Value", "")
        if kind == "Lit" and quoted:
            yield _QUOTABLE.sub(lambda match: match[1].replace("\n", ""), value), True
        elif kind == "Lit":
            yield from _literal(value)
        elif kind == "SglQuoted":
            yield unescaped(value) if part.get("Dollar") else value, True
        elif kind == "DblQuoted":
            yield "", True
            yield from _cells(part.get("Parts", ()), quoted=True)
        else:
            yield part, quoted


def _literal(value: str) -> Any:
    if "\\" not in value:
        yield value, False
        return
    for piece in re.findall(r"\\.|[^\\]+|\\", value, re.DOTALL):
        if piece == "\\\n":
            continue
        yield (piece[1:], True) if piece[0] == "\\" and len(piece) > 1 else (piece, False)
