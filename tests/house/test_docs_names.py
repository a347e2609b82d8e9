"""What users write (hooks, keys of manifests and of the configuration, commands) is documented, and named by a test.

A test names a hook when it defines a function of that name, or has it in a text that isn't a docstring; a key when it has it
at its place, in a dict, in keyword arguments, or in a text that is YAML; a command when it has its words one after another.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from pydantic import BaseModel

from mibyan.cli.main import cli
from mibyan.config import model
from mibyan.config.section import Section
from mibyan.config.settings import Settings
from mibyan.hooks.names import HOOK_ARGUMENTS
from mibyan.hooks.specs import Specs
from mibyan.plugins.manifest_model import ManifestModel

ROOT = Path(__file__).parents[2]

#: A key's place: names from the outermost; `*` is any name, lists add nothing.
Place = tuple[str, ...]

#: Characters of a text that is read as YAML, and keys within one another that are looked at.
_LIMIT = 5_000
_DEEP = 8


# What there is -------------------------------------------------------------------------------------------------------


def manifest_keys(model: type[BaseModel] = ManifestModel, above: Place = ()) -> Iterator[Place]:
    """The keys of a manifest, from the model's annotations."""
    for name, info in model.model_fields.items():
        place = (*above, info.alias or name)
        yield place
        for step, inner in inner_models(info.annotation):
            yield from manifest_keys(inner, (*place, *step))


def config_keys(section: type[Section] = Settings, above: Place = ()) -> Iterator[Place]:
    """The keys of the configuration, from the sections' annotations."""
    hints = model._hints(section)
    for name, annotation in ((name, hints[name]) for name in section.KEYS):
        yield (*above, name)
        for step, inner in inner_models(annotation):
            yield from config_keys(inner, (*above, name, *step))


def inner_models(annotation: Any) -> Iterator[tuple[Place, Any]]:
    """The models within an annotation, each with what leads to it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel | Section):
        yield (), annotation
    origin = typing.get_origin(annotation)
    step = ("*",) if isinstance(origin, type) and issubclass(origin, Mapping) else ()
    for part in typing.get_args(annotation):
        yield from (((*step, *more), found) for more, found in inner_models(part))


def commands(command: click.Command = cli, above: Place = ()) -> Iterator[Place]:
    """The words of each command that does something."""
    if not isinstance(command, click.Group):
        yield above
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, (*above, name))


HOOKS = sorted(HOOK_ARGUMENTS)
MANIFEST = sorted(set(manifest_keys()))
CONFIG = sorted(set(config_keys()))
COMMANDS = sorted(commands())

#: A text that may be YAML with one of the keys.
_MAYBE = re.compile("|".join(rf"\b{place[0]}['\"]?:" for place in {*MANIFEST, *CONFIG} if len(place) == 1))


# What tests name -----------------------------------------------------------------------------------------------------


@dataclass(repr=False)
class Named:
    """What the tests name."""

    functions: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    places: set[Place] = field(default_factory=set)
    #: Texts one after another in a call, a list or a tuple.
    rows: list[list[str]] = field(default_factory=list)


@cache
def named() -> Named:
    """What the tests name, but for this one and its kin."""
    found = Named()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if not path.name.startswith("test_docs"):
            take(ast.parse(path.read_text(encoding="utf-8")), found)
    return found


def take(tree: ast.AST, found: Named) -> None:
    """Note what a file names."""
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
            if not isinstance(node, ast.Module):
                found.functions.add(node.name)
    for node in ast.walk(tree):
        if node in docstrings:
            continue
        match node:
            case ast.Constant(value=str(text)):
                take_text(text, found)
            case ast.JoinedStr(values=values):
                take_text("".join(part.value if isinstance(part, ast.Constant) else "x" for part in values), found)
            case ast.BinOp(op=ast.Add()):
                take_text(constant_text(node), found)
            case ast.Dict():
                found.places.update(chains(node))
            case ast.Call(args=args, keywords=keywords):
                found.rows.append(texts_of(args))
                found.places.update(
                    chains(ast.Dict([ast.Constant(one.arg) for one in keywords], [one.value for one in keywords]))
                )
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                found.rows.append(texts_of(elements))


def constant_text(node: ast.expr) -> str:
    """The text of a sum of texts; what isn't one is left out."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            return constant_text(left) + constant_text(right)
        case ast.Constant(value=str(text)):
            return text
    return ""


def texts_of(nodes: list[ast.expr]) -> list[str]:
    return [node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "" for node in nodes]


def take_text(text: str, found: Named) -> None:
    """Note a text, and if it is YAML of a mapping the places in it."""
    found.texts.append(text)
    if len(text) < _LIMIT and _MAYBE.search(text) and not re.search(r"[&*]\w", text):
        try:
            data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, ValueError, RecursionError):
            return
        if isinstance(data, dict):
            found.places.update(data_chains(data))


def chains(node: ast.expr) -> Iterator[Place]:
    """The chains of keys in a dict that is written down, from each of its keys downward."""
    match node:
        case ast.Dict(keys, values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield (key.value,)
                    yield from ((key.value, *rest) for rest in chains(value))
        case ast.List(elements) | ast.Tuple(elements):
            for element in elements:
                yield from chains(element)


def data_chains(data: Any, depth: int = 0) -> Iterator[Place]:
    """The same of data."""
    if depth > _DEEP:
        return
    if isinstance(data, dict):
        for key, value in data.items():
            yield (str(key),)
            yield from ((str(key), *rest) for rest in data_chains(value, depth + 1))
    elif isinstance(data, list):
        for one in data:
            yield from data_chains(one, depth + 1)


def is_placed(place: Place, found: Named) -> bool:
    """Whether a key is named at its place, or by its dotted path."""
    if "*" not in place:
        dotted = re.compile(rf"(?<![\w.]){re.escape('.'.join(place))}(?![\w.])")
        return place in found.places or (len(place) > 1 and any(dotted.search(text) for text in found.texts))
    return any(
        len(one) == len(place) and all(word in {"*", its} for word, its in zip(place, one, strict=True))
        for one in found.places
    )


def is_run(words: Place, found: Named) -> bool:
    """Whether the words of a command stand one after another, in a row of texts or in one text."""
    count = len(words)
    whole = re.compile(rf"(?<![\w-])(?:mibyan )?{re.escape(' '.join(words))}(?![\w-])")
    in_rows = any(tuple(row[at : at + count]) == words for row in found.rows for at in range(len(row)))
    return in_rows or (count > 1 and any(whole.search(text) for text in found.texts))


# The rules -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> Any:
    """The Sphinx extension that generates the reference."""
    spec = importlib.util.spec_from_file_location("mibyan_reference", ROOT / "docs" / "_ext" / "mibyan_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(place: Place) -> str:
    """A place as the reference writes it."""
    return ".".join("<name>" if word == "*" else word for word in place)


def test_every_hook_is_documented(reference: Any) -> None:
    """Each has a heading in the reference and a sentence in its specification."""
    text = reference.hooks()
    assert [name for name in HOOKS if f"\n## {name}\n" not in f"\n{text}"] == []
    assert [name for name in HOOKS if not (getattr(Specs, name).__doc__ or "").strip()] == []
    assert sorted(name for name in vars(Specs) if not name.startswith("_")) == HOOKS


@pytest.mark.parametrize(("part", "places"), [("manifest", MANIFEST), ("configuration", CONFIG)])
def test_every_key_is_documented(reference: Any, part: str, places: list[Place]) -> None:
    """Each has a row in the reference."""
    rows = [row.split("|")[1].strip(" `").replace("[]", "") for row in reference.GENERATORS[part]().splitlines()[2:]]
    assert [shown(place) for place in places if shown(place) not in rows] == []
    assert len(places) > 40


def test_every_command_is_documented(reference: Any) -> None:
    """Each has a heading in the reference, and says what it does."""
    text = reference.command_line()
    assert [words for words in COMMANDS if f"\n## mibyan {' '.join(words)}\n" not in text] == []
    assert len(COMMANDS) > 15


def test_every_hook_is_named_by_a_test() -> None:
    """A hook that no test implements or awaits could stop working without a word."""
    found = named()
    words = {word for text in found.texts for word in re.findall(r"\w+", text)} | found.functions
    assert [name for name in HOOKS if name not in words] == []


@pytest.mark.parametrize("places", [MANIFEST, CONFIG], ids=["manifest", "configuration"])
def test_every_key_is_named_by_a_test(places: list[Place]) -> None:
    """In a dict, in keyword arguments, in YAML or as a dotted path, at its place."""
    assert [shown(place) for place in places if not is_placed(place, named())] == []


def test_every_command_is_run_by_a_test() -> None:
    """Its words stand in a call, a list or a text of a test."""
    assert [" ".join(words) for words in COMMANDS if not is_run(words, named())] == []


def test_these_checks_can_fail() -> None:
    """Comments, docstrings and other places don't count."""
    found = Named()
    source = '''
def test(run):
    """pre_tool_call and tools.flags.timeout; mibyan plugins trust."""
    # commands: [x]; mibyan plugins trust
    run("plugins", "list", {"tools": [{"flags": {"timeout": 3}}]}, requires={"env": []})
    run("toolsets: {a: {includes: [b]}}", "dispatch.timeout is told")
'''
    take(ast.parse(source), found)
    assert is_placed(("tools", "flags", "timeout"), found)
    assert is_placed(("requires", "env"), found)
    assert is_placed(("toolsets", "*", "includes"), found)
    assert is_placed(("dispatch", "timeout"), found)
    assert not is_placed(("toolsets", "*", "tools"), found)
    assert not is_placed(("commands",), found)
    assert not is_placed(("tools", "timeout"), found)
    assert is_run(("plugins", "list"), found)
    assert not is_run(("plugins", "trust"), found)
    assert "pre_tool_call" not in " ".join(found.texts)
