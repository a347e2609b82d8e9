"""`mibyan plugins new`: a plugin's project made from the template, by questions or by what the options say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.output import is_terminal, say
from mibyan.cli.scaffold.names import RULES
from mibyan.cli.scaffold.template import Template
from mibyan.errors import MibyanError
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.invocation import Invocation


def run(invocation: Invocation, words: Sequence[str], *, fields: Sequence[str], no_input: bool) -> int:
    """Make a project; the exit code.

    Raises:
        UsageError: The words or fields can't be used; nothing was written.
        MibyanError: The project can't be made; nothing was written.
    """
    if len(words) > 1:
        raise exits.UsageError("one DIR at most is possible: the folder in which the project is made")
    parent = _parent(words[0] if words else ".")
    template = Template()
    given = _given(template, fields)
    if not no_input:
        _require_terminal()
        given = _asked(template, given)
    if "slug" not in given:
        raise exits.UsageError("the plugin has no name: say --field slug=NAME")
    values = template.values(given)
    return _told(invocation, values, template.make(values, parent))


def _parent(word: str) -> Path:
    parent = Path(word).absolute()
    if parent.exists() and not parent.is_dir():
        raise exits.UsageError(f"{one_line(word)} isn't a folder")
    return parent


def _given(template: Template, fields: Sequence[str]) -> dict[str, str]:
    """What `--field` says, each checked; blank ones count as not given."""
    given: dict[str, str] = {}
    for field in fields:
        name, has_value, value = field.partition("=")
        if not has_value:
            raise exits.UsageError(f"--field {one_line(field, 60)!r}: KEY=VALUE is needed")
        if name not in template.fields:
            meant = suggest(name, template.fields)
            known = f"did you mean {meant!r}?" if meant else f"there are {', '.join(template.fields)}"
            raise exits.UsageError(f"--field: there is no field {one_line(name, 60)!r} ({known})")
        if name in given:
            raise exits.UsageError(f"--field: {name!r} is given twice")
        problem = RULES[name](value)
        if problem:
            raise exits.UsageError(f"--field {name}: {problem}")
        given[name] = value
    return {name: value for name, value in given.items() if value.strip()}


def _require_terminal() -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise exits.UsageError(
            "there is no terminal to ask on: say --no-input --field slug=NAME --field description=TEXT"
        )


def _asked(template: Template, given: dict[str, str]) -> dict[str, str]:
    """What was given, and a person's answers to the other questions; an empty answer is the default."""
    answers = dict(given)
    for name in template.fields:
        if name in answers:
            continue
        default = "" if name == "slug" else template.values(answers)[name]
        answer = _answer(name, template.questions[name], default)
        if answer:
            answers[name] = answer
    return answers


def _answer(name: str, question: str, default: str) -> str:
    """A person's answer that can be used; empty: the default."""
    while True:
        say(f"{question} [{default}]:" if default else f"{question}:", end=" ")
        line = sys.stdin.readline()
        if not line:
            raise MibyanError("the answers ended; nothing was written")
        answer = line.strip()
        problem = RULES[name](answer) if answer or name == "slug" else None
        if problem is None:
            return answer
        say(f"{problem[0].upper()}{problem[1:]}.")


def _told(invocation: Invocation, values: dict[str, Any], made: Path) -> int:
    if invocation.options.as_json:
        files = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
        invocation.out.document({
            "path": str(made), "id": values["__id"], "distribution": values["__distribution"],
            "module": values["__module"], "tool": values["__tool"], "files": files,
        })  # fmt: skip
        return exits.OK
    invocation.out.line(str(made))
    say(f"That is the plugin {values['__id']!r} with the tool {values['__tool']}. Install and test it there:")
    say("pip install -e '.[test]' && pytest")
    return exits.OK
