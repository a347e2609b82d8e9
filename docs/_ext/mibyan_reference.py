"""The generated parts of the reference: `<!-- generated: NAME -->` in a page becomes what the code says.

The schema of config.yaml, that of a manifest, the hook specifications, the public names and the commands are each written
down once, in the code; here they become Markdown.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import click
    from sphinx.application import Sphinx

_MARK = re.compile(r"<!-- generated: ([\w-]+) -->")
_CODE = re.compile(r"(?<![`:\w])`([^`]+)`(?![`_])")

#: The public names of `mibyan` by what one looks for; names of `__all__` that stand nowhere here come last.
GROUPS = {
    "Running tools": (
        "Runtime", "Session", "get_runtime", "get_tool_definitions", "handle_function_call", "discover_builtin_tools",
        "discover_plugins",
    ),
    "Calls and results": ("ToolCall", "ToolResult"),
    "Writing tools": ("tool", "tool_result", "tool_error", "ToolContext", "registry", "ToolRegistry", "ToolEntry"),
    "Writing hooks": ("hookimpl", "hookspec", "Block", "Ask", "Modify"),
    "Errors": ("MibyanError", "ToolError", "ToolSchemaError", "ToolOverrideError"),
}  # fmt: skip

#: What autodoc can't tell, since these are objects.
OBJECTS = {
    "registry": (
        "The registry of the current runtime: while a plugin loads or runs its own, bound to its owner, else that of the "
        "default runtime. It has the methods of {py:class}`ToolRegistry <mibyan.ToolRegistry>`."
    ),
    "hookimpl": "Marks a function as an implementation of the hook it is named after: pluggy's `HookimplMarker`.",
    "hookspec": "Marks a function as a hook's specification: pluggy's `HookspecMarker`.",
    "__version__": "The version, as text.",
}


def configuration() -> str:
    """Every key of config.yaml."""
    from mibyan.config.schema import json_schema

    return _schema_table(json_schema())


def manifest() -> str:
    """Every key of a manifest."""
    from mibyan.plugins.manifest import manifest_json_schema

    return _schema_table(manifest_json_schema())


def hooks() -> str:
    """A section for each hook: its signature and what its specification says."""
    from mibyan.hooks.names import HOOK_ARGUMENTS
    from mibyan.hooks.specs import Specs

    return "\n".join(
        f"## {name}\n\n```python\ndef {name}({', '.join(arguments)})\n```\n\n{inspect.getdoc(getattr(Specs, name))}\n"
        for name, arguments in HOOK_ARGUMENTS.items()
    )


def python() -> str:
    """A section for each group of public names, told by their docstrings."""
    import mibyan

    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "More": tuple(name for name in mibyan.__all__ if name not in grouped)}
    return "\n".join(
        f"## {title}\n\n" + "\n".join(_public_name(name, getattr(mibyan, name)) for name in names)
        for title, names in groups.items()
        if names
    )


def command_rules() -> str:
    """Every rule that a shell command is judged by."""
    from mibyan.approvals.rules.book import RULES

    lines = ["| rule | level | what | category | falls under it | doesn't |", "| --- | --- | --- | --- | --- | --- |"]
    for rule in sorted(RULES.values(), key=lambda rule: (rule.level != "hardline", rule.category, rule.id)):
        examples = ["<br>".join(f"`{_visible(one)}`" for one in some[:3]) for some in (rule.matches, rule.misses)]
        waived = "; waived in a container of its own" if rule.filesystem else ""
        lines.append(
            f"| `{rule.id}` | {rule.level} | {rule.description}{waived} | {rule.category} | {examples[0]} | {examples[1]} |"
        )
    return "\n".join(lines)


def approvals() -> str:
    """The public names of `mibyan.approvals` that the Python reference hasn't."""
    import mibyan.approvals as module

    page = Path(__file__).parents[1].joinpath("reference", "python.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\.\. auto\w+:: mibyan\.approvals\.(\w+)", page, re.MULTILINE))
    texts = {
        "ANSWERS": "The answers to a question.",
        "DANGEROUS_PATTERNS": "`(regular expression, description)` of each rule, the worst first: a view for people, by which nothing is decided.",
    }
    return "\n".join(
        f"`{name}`\n: {texts[name]}\n"
        if name in texts
        else _public_name(name, getattr(module, name), "mibyan.approvals")
        for name in module.__all__
        if name not in told
    )


def _visible(command: str) -> str:
    """A command in a table's cell."""
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in command)
    return text.replace("|", "\\|").replace("`", "'")


def fixtures() -> str:
    """A section for each fixture: what it says of itself, and the type of what it gives."""
    from importlib.util import find_spec

    spec = find_spec("mibyan.testing.pytest_plugin")  # it is read as text: building this needs no pytest
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and _is_fixture(node)]
    return "\n".join(_fixture(node) for node in found)


def testing() -> str:
    """The objects behind the fixtures, told by their docstrings."""
    import mibyan.testing

    return "\n".join(
        _public_name(name, getattr(mibyan.testing, name), "mibyan.testing") for name in mibyan.testing.__all__
    )


def command_line() -> str:
    """A section for each command: its usage, its help, its options."""
    import click

    from mibyan.cli.main import cli

    root = click.Context(cli, info_name="mibyan")
    return "\n".join(_command(context) for context in _commands(root))


GENERATORS: dict[str, Callable[[], str]] = {
    "configuration": configuration,
    "manifest": manifest,
    "hooks": hooks,
    "python": python,
    "command-rules": command_rules,
    "approvals": approvals,
    "fixtures": fixtures,
    "testing": testing,
    "command-line": command_line,
}


def _schema_table(schema: dict[str, Any]) -> str:
    rows = [f"| `{key}` | {kind} | {default} | {text} |" for key, kind, default, text in _keys(schema, schema, "")]
    return "\n".join(["| key | value | default | what |", "| --- | --- | --- | --- |", *rows, ""])


def _keys(schema: dict[str, Any], root: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """The keys of an object schema, those of nested ones after their own, as `(key, value, default, text)`."""
    for name, raw in schema.get("properties", {}).items():
        part = _resolved(raw, root)
        text = raw.get("description") or part.get("description", "")
        default = f"`{_cell(json.dumps(raw['default']))}`" if "default" in raw and not _nested(part, root) else ""
        yield f"{prefix}{name}", _cell(_kind(part, root)), default, _cell(_first_sentence(text))
        for suffix, inner in _nested(part, root):
            yield from _keys(inner, root, f"{prefix}{name}{suffix}")


def _nested(part: dict[str, Any], root: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The object schemas inside `part`, each with what leads to it from its key."""
    inside = [
        ("", part.get("anyOf", [])),
        ("[]", [part["items"]] if "items" in part else []),
        (".<name>", [_values(part)] if _values(part) else []),
    ]
    found = [(".", part)] if part.get("properties") else []
    return found + [
        (step + suffix, inner)
        for step, branches in inside
        for branch in branches
        for suffix, inner in _nested(_resolved(branch, root), root)
    ]


def _values(part: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a mapping's values."""
    values = next(iter(part.get("patternProperties", {}).values()), part.get("additionalProperties"))
    return values if isinstance(values, dict) else None


def _resolved(part: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """`part`, or what its local reference points to."""
    if "allOf" in part and len(part["allOf"]) == 1:
        part = {**part["allOf"][0], **{key: value for key, value in part.items() if key != "allOf"}}
    if "$ref" not in part:
        return part
    target: dict[str, Any] = root
    for step in part["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return target


def _kind(part: dict[str, Any], root: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if {"on", "off"} in [set(branch.get("enum", [])) for branch in part.get("anyOf", [])]:
        rest = [
            branch
            for branch in part["anyOf"]
            if branch.get("type") != "boolean" and "off" not in branch.get("enum", [])
        ]
        return " or ".join([*(_kind(branch, root) for branch in rest), "on or off"])
    if "enum" in part or "const" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part.get("enum", [part.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in part:
            return " or ".join(dict.fromkeys(_kind(_resolved(branch, root), root) for branch in part[several]))
    kind = part.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(_resolved(part.get('items', {}), root), root)}"
    if _values(part):
        return "mapping"
    names = {"string": "text", "object": "section", "boolean": "true or false", "null": "null"}
    return " or ".join(names.get(one, one) for one in (kind if isinstance(kind, list) else [kind]))


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _cell(text: str) -> str:
    """`text` in a cell of a Markdown table; code spans keep their angle brackets."""
    spans = text.replace("|", "\\|").split("`")
    return "`".join(span if inside % 2 else span.replace("<", "&lt;") for inside, span in enumerate(spans))


def _public_name(name: str, value: object, module: str = "mibyan") -> str:
    if name in OBJECTS:
        return f"```{{py:data}} {module}.{name}\n{OBJECTS[name]}\n```\n"
    directive = "autoclass" if inspect.isclass(value) else "autofunction"
    ends = "AssertionError" if issubclass(value if inspect.isclass(value) else object, AssertionError) else "Exception"
    members = f"   :members:\n   :inherited-members: {ends}\n" if inspect.isclass(value) else ""
    if module != "mibyan" and "__call__" in vars(value):
        members += "   :special-members: __call__\n"
    return f"```{{eval-rst}}\n.. {directive}:: {module}.{name}\n{members}```\n"


def _is_fixture(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).startswith("pytest.fixture") for one in node.decorator_list)


def _fixture(node: ast.FunctionDef) -> str:
    """A fixture's section: its docstring, and what it gives, with a link where that is documented here."""
    import mibyan.testing

    given = ast.unparse(node.returns) if node.returns is not None else "Any"
    given = given.removeprefix("Iterator[").removesuffix("]") if given.startswith("Iterator[") else given
    homes = {**dict.fromkeys(mibyan.testing.__all__, "mibyan.testing"), "Runtime": "mibyan"}
    home = homes.get(given)
    link = f"{{py:class}}`{given} <{home}.{given}>`" if home else f"`{given}`"
    return f"### {node.name}\n\n{ast.get_docstring(node)}\n\nGives: {link}\n"


def _commands(context: click.Context) -> Iterator[click.Context]:
    """The context of every visible command, a group's own after the group."""
    import click

    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _commands(click.Context(command, parent=context, info_name=name))


def _command(context: click.Context) -> str:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    title = f"## {context.command_path}" if context.parent else "## Options of every command"
    switches = (parameter for parameter in command.get_params(context) if parameter.param_type_name == "option")
    records = filter(None, (switch.get_help_record(context) for switch in switches))
    options = [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in records if name != "--help"]
    table = ["", "| option | what |", "| --- | --- |", *options] if options else []
    return "\n".join([title, "", f"```text\n{usage}\n```", "", inspect.cleandoc(command.help or ""), *table, ""])


def _fill(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Replace the marks in a page that is about to be parsed."""
    source[0] = _MARK.sub(lambda mark: GENERATORS[mark[1]](), source[0])


def _prepare(_app: Sphinx, what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Make a docstring fit for napoleon and reStructuredText.

    Docstrings are written with single backticks, as in Markdown; reStructuredText wants two for code. The text before a
    colon in an attribute's first line isn't its type, which napoleon would take it for; an empty comment keeps it off.
    """
    lines[:] = _CODE.sub(r"``\1``", "\n".join(lines)).split("\n")
    if what in {"attribute", "property"}:
        lines[:0] = ["..", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _prepare, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
