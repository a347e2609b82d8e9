"""What the test kit's documentation says is so: its examples run, a newcomer's tests pass, and every name is told."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import mibyan.testing
from mibyan.testing import ToolCaller, Workbench

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "test-a-plugin.md"
HOMES = sorted({importlib.import_module(getattr(mibyan.testing, name).__module__) for name in mibyan.testing.__all__},
               key=lambda module: module.__name__)  # fmt: skip

WORDS = """
    import mibyan

    @mibyan.tool(toolset="words")
    def shout(text: str) -> str:
        "Shout."
        return text.upper()
"""


@pytest.mark.parametrize("module", HOMES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_testing_W2_the_examples_run(module, bench: Workbench) -> None:
    """Every example of a docstring gives what it says, with the plugin `words` at hand."""
    bench.write_plugin(WORDS, "words")
    for example in doctest.DocTestFinder().find(module):
        example.globs["words"] = bench.load(bench.runtime(), "words")
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        said: list[str] = []
        runner.run(example, out=said.append)
        assert runner.failures == 0, "".join(said)


def test_testing_W2_every_object_has_an_example_or_is_made_by_one_that_has() -> None:
    """The classes that one makes by hand, and the functions, show how."""
    made = {"FabricatedDistribution", "LoadedPlugin", "HookCall", "CallFailed", "AsyncToolCaller"}
    makers = {name for name in mibyan.testing.__all__ if name.startswith(("Make", "Write", "Load"))}
    shown = {name for name in mibyan.testing.__all__ if ">>>" in (inspect.getdoc(getattr(mibyan.testing, name)) or "")}
    assert {*mibyan.testing.__all__} - made - makers == shown


def test_the_page_about_tools_is_true(bench: Workbench) -> None:
    """The plugin of *Write a tool*, put together from its pieces, does what the page says; its settings have their defaults."""
    page = (ROOT / "docs" / "how-to" / "write-a-tool.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^<!-- (?:file|test): (\S+) -->\n```\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    bench.write_plugin(parts["__init__.py"], "harbour", manifest=parts["plugin.yaml"])
    runtime = bench.runtime()
    assert bench.load(runtime, "harbour").tools == ("high_water",)
    found: dict[str, Any] = {}
    exec(parts["test_harbour.py"], found)  # what a reader would copy
    found["test_harbour"](ToolCaller(runtime))
    shown = runtime.registry.get_schema("high_water")["parameters"]
    assert sorted(shown["properties"]) == ["days", "order", "place"]


@pytest.fixture(scope="module")
def reference():
    """The Sphinx extension that generates the reference."""
    path = ROOT / "docs" / "_ext" / "mibyan_reference.py"
    spec = importlib.util.spec_from_file_location("mibyan_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_testing_W2_the_reference_has_every_fixture_and_object(reference) -> None:
    """Each fixture has a section with what it says of itself, each public object its own."""
    from mibyan.testing import pytest_plugin

    found = set(re.findall(r"^### (\w+)$", reference.GENERATORS["fixtures"](), re.MULTILINE))
    fixtures = {
        name for name, value in vars(pytest_plugin).items()
        if type(value).__name__ == "FixtureFunctionDefinition" or hasattr(value, "_pytestfixturefunction")
    }  # fmt: skip
    assert found == fixtures
    assert {"mibyan_runtime", "make_plugin", "make_dist", "call_tool", "hook_recorder", "approve_all"} <= found
    objects = reference.GENERATORS["testing"]()
    assert [name for name in mibyan.testing.__all__ if f":: mibyan.testing.{name}\n" not in objects] == []
    page = (ROOT / "docs" / "reference" / "testing.md").read_text()
    assert page.count("<!-- generated: fixtures -->") == page.count("<!-- generated: testing -->") == 1
    assert [name for name in sorted(fixtures) if name not in page + PAGE.read_text() + reference.fixtures()] == []
