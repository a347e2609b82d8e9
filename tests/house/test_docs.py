"""The documentation is true: its links lead somewhere, its code runs, its configuration is valid."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

import mibyan
from mibyan.config.settings import Settings
from mibyan.plugins.manifest import parse_manifest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"<!-- (file|append): (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(language: str) -> list:
    """Every fenced block of `language` in the pages, as pytest parameters."""
    return [
        pytest.param(text, id=f"{label(page)}:{number}")
        for page in PAGES
        for number, (kind, text) in enumerate(_FENCE.findall(page.read_text(encoding="utf-8")))
        if kind == language
    ]


def write_files(page: Path, folder: Path) -> None:
    """Write the files that a page tells its reader to write."""
    for what, name, text in _FILE.findall(page.read_text(encoding="utf-8")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a" if what == "append" else "w", encoding="utf-8") as file:
            file.write("\n\n" * (what == "append") + text)


@pytest.fixture(scope="module")
def reference():
    """The Sphinx extension that generates the reference."""
    path = ROOT / "docs" / "_ext" / "mibyan_reference.py"
    spec = importlib.util.spec_from_file_location("mibyan_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_a_relative_link_leads_to_a_file(page: Path) -> None:
    """No page links to a file that isn't there."""
    targets = [target for target in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("code", blocks("python"))
def test_python_in_the_documentation_compiles(code: str) -> None:
    """Every block of Python is Python."""
    compile(code, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_in_the_documentation_is_valid(text: str, own_home: Path) -> None:
    """Every block of YAML is a manifest, a part of one, or a configuration that is accepted as it stands."""
    data = yaml.safe_load(text)
    if data.keys() & {"plugins", "approvals"}:
        home = own_home / ".mibyan"
        home.mkdir()
        (home / "config.yaml").write_text(text)
        with mibyan.Runtime(home=home, safe_mode=True) as runtime:
            runtime.approvals.configured_rules()  # their examples are checked
            assert runtime.config.to_data() != Settings().to_data()
    else:
        assert parse_manifest(data, "plugin.yaml").warnings == ()


def test_ci_runs_the_command_of_the_readme() -> None:
    """What CI runs is what the README tells people to run."""
    (command,) = re.findall(r"^## Run the tests\n\n```bash\n(.+)\n```", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()
    assert command in (ROOT / "CONTRIBUTING.md").read_text().splitlines()


def test_the_readme_and_the_tutorial_show_one_plugin() -> None:
    """The plugin of the README is the one of the tutorial, to the letter, and about twenty lines."""
    tutorial = (ROOT / "docs" / "tutorial" / "first-plugin.md").read_text(encoding="utf-8")
    (plugin,) = [text for what, name, text in _FILE.findall(tutorial) if (what, name) == ("file", "dice/__init__.py")]
    assert plugin in (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(plugin.splitlines()) <= 22


def test_the_tutorials_plugin_does_what_the_tutorial_says(own_home: Path) -> None:
    """First lesson: it rolls, repairs a number sent as text, tells every violation, and blocks a thousand dice."""
    home = own_home / ".mibyan"
    write_files(ROOT / "docs" / "tutorial" / "first-plugin.md", home / "plugins")
    with mibyan.Runtime(home=home) as runtime:
        results = [
            runtime.execute(mibyan.ToolCall("roll_dice", arguments))
            for arguments in ({"sides": 1, "count": 3}, {"sides": "1"}, {"sides": "many", "colour": 1}, {"count": 1000})
        ]
    assert [result.status for result in results] == ["ok", "ok", "error", "blocked"]
    assert results[0].data == {"rolls": [1, 1, 1], "total": 3}
    assert results[2].error_type == "invalid_arguments"
    assert "sides" in results[2].text
    assert "colour" in results[2].text


def test_the_reference_has_every_public_name(reference) -> None:
    """Each name of `mibyan.__all__` has its place in the Python reference, and none has two."""
    documented = [name for names in reference.GROUPS.values() for name in names] + ["__version__"]
    assert sorted(documented) == sorted({*mibyan.__all__, "__version__"})


@pytest.mark.parametrize("part", ["configuration", "manifest", "hooks", "python", "command-line"])
def test_a_generated_part_has_something_to_say(reference, part: str) -> None:
    """Every generated part of the reference is generated, and stands in a page."""
    expected = {
        "configuration": "`dispatch.timeout`",
        "manifest": "`requires_mibyan`",
        "hooks": "def pre_tool_call(tool_name, args,",
        "python": "mibyan.Runtime",
        "command-line": "mibyan plugins trust",
    }
    assert expected[part] in reference.GENERATORS[part]()
    marks = [page for page in PAGES if f"<!-- generated: {part} -->" in page.read_text(encoding="utf-8")]
    assert len(marks) == 1


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_a_page_of_the_documentation_has_one_title(page: Path) -> None:
    """Each page starts with its title, or is included from elsewhere."""
    text = page.read_text(encoding="utf-8")
    assert text.startswith(("# ", "```{include}"))
