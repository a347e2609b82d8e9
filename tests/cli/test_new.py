"""`mibyan plugins new`: what it makes, what it refuses, and that nothing is left where it can't finish (plugins.W1)."""

from __future__ import annotations

import email.utils
import json
import os
import select
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mibyan._version import __version__
from mibyan.cli.scaffold import template as scaffold_template
from mibyan.cli.scaffold.names import LONGEST, email_problem, slug_problem
from mibyan.cli.scaffold.template import Template, template_folder
from mibyan.plugins.manifest import parse_manifest
from mibyan.plugins.sources.authored import find_authored
from mibyan.plugins.sources.ids import canonical

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0

#: Texts that could break out of where they stand, or can't stand everywhere.
TEXTS = [
    'He said "hi" and \\ left\\', "three \"\"\" quotes ''' and \\n", "{{ cookiecutter.slug }} {% raw %} {# x #}", "${{ secrets.X }}",
    "one\ntwo\r\n\tthree", "🌦️ 👩‍🚀 café", "תוסף למזג \u200fאוויר — مكوّن إضافي", "x" * 5000, "<!-- ``` --> [a](b) | `c`", "#", "'", "= 1",
]  # fmt: skip
#: Names and the id that each gives.
NAMES = {
    "weather": "weather", "A": "a", "my_tool.x2": "my-tool-x2", "class": "class", "json": "json", "3d": "3d", "0": "0",
    "a--b__c..d": "a-b-c-d", "None": "none", "plugin": "plugin", "tools.x": "tools-x", "con": "con", "x" * LONGEST: "x" * LONGEST,
}  # fmt: skip


def new(run: Callable, *words: str, **fields: str):
    options = [word for name, value in fields.items() for word in ("--field", f"{name}={value}")]
    return run("plugins", "new", *words, "--no-input", *options)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# What it makes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", NAMES, ids=lambda slug: slug[:20])
def test_W1_odd_names_that_are_legal(run: Callable, home: Path, slug: str) -> None:
    """plugins.W1: the folder is called as it was asked, everything else by the canonical name; the project is a plugin."""
    done = new(run, "--json", slug=slug)
    made = Path(f"mibyan-plugin-{slug}").absolute()
    plugin_id = NAMES[slug]
    module = "mibyan_plugin_" + plugin_id.replace("-", "_")
    assert (done.code, done.data["path"], done.data["id"], done.data["module"]) == (0, str(made), plugin_id, module)
    project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
    assert project["name"] == done.data["distribution"] == f"mibyan-plugin-{plugin_id}"
    assert project["entry-points"]["mibyan.plugins"] == {plugin_id: module}
    found = find_authored(made).candidate
    assert (found.id, found.problem, found.target.value) == (plugin_id, None, module)
    (tool,) = parse_manifest(json.loads((made / "mibyan.json").read_text()), "mibyan.json").tools
    assert (tool.name, tool.toolset) == (done.data["tool"], plugin_id)
    assert set(done.data["files"]) == {name for name, content in snapshot(made).items() if content is not None}
    for path in made.rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_W1_any_text_stands_where_it_is_put(run: Callable, home: Path, text: str) -> None:
    """plugins.W1: a description and an author's name are what was said, on one line, in TOML, JSON and Markdown."""
    assert new(run, slug="weather", description=text, author_name=text, author_email="a.b+c@example.com").code == 0
    made = Path("mibyan-plugin-weather")
    line = " ".join(text.split())
    project = tomllib.loads((made / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["authors"] == [{"name": line, "email": "a.b+c@example.com"}]
    assert project["description"] == (line if len(line) <= 512 else line[:511] + "…")
    manifest = json.loads((made / "mibyan.json").read_text(encoding="utf-8"))
    assert (manifest["description"], manifest["author"]) == (project["description"], line)
    assert f"\n{line}\n" in (made / "README.md").read_text(encoding="utf-8")
    assert line in (made / "LICENSE").read_text(encoding="utf-8").splitlines()[2]
    metadata = core_metadata(made)
    assert metadata["Summary"] == project["description"]
    assert email.utils.parseaddr(metadata["Author-email"])[1] == "a.b+c@example.com"


def core_metadata(project: Path) -> dict[str, str]:
    """What the build backend makes of a project, one line a field."""
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.metadata.spec import get_core_metadata_constructors
    from hatchling.plugin.manager import PluginManager

    construct = get_core_metadata_constructors()["2.4"]
    fields = construct(ProjectMetadata(str(project), PluginManager())).split("\n\n")[0]
    return dict(line.split(": ", 1) for line in fields.splitlines() if line.startswith(("Summary", "Author-email")))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
    slug=st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,48}[A-Za-z0-9])?", fullmatch=True).filter(lambda s: not slug_problem(s)),
)  # fmt: skip
def test_W1_random_names_and_texts(tmp_path_factory: pytest.TempPathFactory, text: str, slug: str) -> None:
    """plugins.W1: whatever is legal gives a manifest and a pyproject.toml that say it."""
    template = Template()
    values = template.values({"slug": slug, "description": text, "author_name": text})
    made = template.make(values, tmp_path_factory.mktemp("new"))
    line = " ".join(text.split())
    assert json.loads((made / "mibyan.json").read_text(encoding="utf-8"))["id"] == canonical(slug)
    project = tomllib.loads((made / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["name"], project["authors"]) == (f"mibyan-plugin-{canonical(slug)}", [{"name": line}])


def test_W1_without_an_author(run: Callable, home: Path) -> None:
    """plugins.W1: what isn't said has a default, or is left out."""
    assert new(run, slug="weather", author_name="", description=" ").code == 0
    project = tomllib.loads(Path("mibyan-plugin-weather/pyproject.toml").read_text())["project"]
    assert project["description"] == "Tools of the plugin weather."
    assert "authors" not in project
    assert "The authors of mibyan-plugin-weather" in Path("mibyan-plugin-weather/LICENSE").read_text()


def test_W1_where_it_is_made(run: Callable, home: Path, tmp_path: Path) -> None:
    """plugins.W1: in the folder that is named, which needn't be there yet; the path is the data, the rest is told."""
    done = new(run, str(tmp_path / "a" / "b"), slug="weather")
    assert (done.code, done.out) == (0, f"{tmp_path}/a/b/mibyan-plugin-weather\n")
    assert "pip install -e '.[test]' && pytest" in done.err
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["mibyan-plugin-weather"]


def test_W1_workflows_and_the_rest(run: Callable, home: Path) -> None:
    """plugins.W1: trusted publishing without a token, and the expressions of the workflows as they stand in the template."""
    import yaml

    assert new(run, slug="weather").code == 0
    folder = Path("mibyan-plugin-weather/.github/workflows")
    release = yaml.safe_load((folder / "release.yml").read_text())["jobs"]
    assert release["publish"]["permissions"] == {"id-token": "write"}
    assert release["publish"]["environment"] == "release"
    assert "${{ matrix.python }}" in (folder / "ci.yml").read_text()
    text = "".join(content.decode() for content in snapshot(Path("mibyan-plugin-weather")).values() if content)
    assert "cookiecutter" not in text


# What it refuses --------------------------------------------------------------------------------------------------

ILLEGAL = {
    "": "needs a name", "../x": "can't be a plugin's name", "Tide Tables": "(did you mean 'tide-tables'?)", " weather": "blank", "weather ": "blank", "-a": "letter or a digit at both ends",
    "a-": "at both ends", "_a": "at both ends", "a/b": "can't", "a b": "can't", "wétter": "a to z", "x\n": "blank", "a\x00b": "can't", ".": "can't",
    "files": "comes with Mibyan", "Terminal": "comes with Mibyan", "web": "toolsets", "web_tools": "toolsets", "all": "toolsets", "CORE": "toolsets",
    "mcp": "Mibyan's own", "mibyan": "Mibyan's own", "mibyan-x": "Mibyan's own", "mibyan-plugin-weather": "leave it out",
    "Mibyan.Plugin_weather": "leave it out", "project-tools": "reserved", "x" * (LONGEST + 1): f"at most {LONGEST}",
}  # fmt: skip


@pytest.mark.parametrize("slug", ILLEGAL, ids=[repr(slug)[:20] for slug in ILLEGAL])
def test_W1_illegal_names(run: Callable, home: Path, slug: str) -> None:
    """plugins.W1: an error that says why, before anything is written."""
    if "\x00" in slug:  # no argument of a program can have it
        assert ILLEGAL[slug] in slug_problem(slug)
        return
    done = new(run, slug=slug)
    assert (done.code, done.out) == (2, "")
    assert ILLEGAL[slug] in done.err or (not slug and "no name" in done.err)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("description=a\x1bb", "control character"), ("author_name=\udcff", "control character"), ("author_email=nobody", "e-mail address"),
        ("author_email=a@b\nBcc: c@d", "e-mail address"), ("author_email=a @b", "e-mail address"), ('author_email=a"@b', "e-mail address"),
        ("sulg=x", "did you mean 'slug'?"), ("__id=x", "there is no field"), ("_extensions=x", "there is no field"), ("slug", "KEY=VALUE"),
        ("slug=again", "given twice"),
    ],
)  # fmt: skip
def test_W1_fields_that_cant_be_used(run: Callable, home: Path, field: str, told: str) -> None:
    """plugins.W1: unknown fields with a suggestion; texts that no file can hold; all before anything is written."""
    done = run("plugins", "new", "--no-input", "--field", "slug=weather", "--field", field)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("address", ["", "a@b", "first.last+tag@sub.example.com", "o'neil@example.com"])
def test_W1_addresses(address: str) -> None:
    """plugins.W1: what a package's metadata takes."""
    assert email_problem(address) is None


@pytest.mark.parametrize("words", [(), ("--no-input",), ("a", "b", "--no-input")])
def test_W1_usage(run: Callable, home: Path, words: tuple[str, ...]) -> None:
    """plugins.W1: without a terminal nobody is asked, without a name nothing is made."""
    done = run("plugins", "new", *words)
    assert (done.code, done.out) == (2, "")
    assert "--field slug=NAME" in done.err or "one DIR" in done.err


@pytest.mark.parametrize("what", ["folder", "empty", "file", "link"])
def test_W1_what_is_there_isnt_touched(run: Callable, home: Path, tmp_path: Path, what: str) -> None:
    """plugins.W1: whatever has the name already stays as it is."""
    path = tmp_path / "work/mibyan-plugin-weather"
    if what == "link":
        path.symlink_to("nowhere")
    elif what == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        if what == "folder":
            (path / "README.md").write_text("mine")
    before = snapshot(tmp_path)
    done = new(run, slug="weather")
    assert (done.code, "is there already" in done.err) == (2, True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("parent", ["a-file", "a-file/below"])
def test_W1_where_nothing_can_be_made(run: Callable, home: Path, parent: str) -> None:
    """plugins.W1: a parent that is no folder."""
    Path("a-file").write_text("x")
    done = new(run, parent, slug="weather")
    assert (done.code, done.out) == (2, "")
    assert "a-file" in done.err


def test_W1_a_folder_that_cant_be_written(run: Callable, home: Path, tmp_path: Path, bound_by_modes: None) -> None:
    """plugins.W1: a sentence, and nothing is left."""
    (tmp_path / "closed").mkdir(mode=0o500)
    done = new(run, str(tmp_path / "closed"), slug="weather")
    assert (done.code, "permission denied" in done.err) == (2, True)
    assert snapshot(tmp_path / "closed") == {}


# Nothing half-made ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device"), RuntimeError])
def test_W1_a_failure_midway_leaves_nothing(
    run: Callable, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """plugins.W1: at the last of the files, whatever it is; folders that were made for it go too."""
    from cookiecutter import generate

    written = []

    def generate_file(project: str, name: str, *rest: object, **more: object) -> None:
        written.append(name)
        if name == "pyproject.toml":
            raise error
        original(project, name, *rest, **more)

    original = generate.generate_file
    monkeypatch.setattr(generate, "generate_file", generate_file)
    done = new(run, str(tmp_path / "deep" / "er"), slug="weather")
    assert done.code == {KeyboardInterrupt: 130, RuntimeError: 1}.get(error, 2)
    assert len(written) > 3
    assert not (tmp_path / "deep").exists()


def test_W1_somebody_makes_the_folder_meanwhile(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.W1: what came first stays, and nothing else is left."""
    from cookiecutter import generate

    from mibyan.errors import MibyanError

    made = generate.generate_files

    def generate_files(*words: object, **more: object) -> str:
        Path("mibyan-plugin-weather").mkdir()
        return made(*words, **more)

    monkeypatch.setattr(generate, "generate_files", generate_files)
    template = Template()
    with pytest.raises(MibyanError, match="is there already"):
        template.make(template.values({"slug": "weather"}), Path.cwd())
    assert snapshot(Path.cwd()) == {"mibyan-plugin-weather": None}


def test_W1_ctrl_c_leaves_nothing(home: Path, tmp_path: Path) -> None:
    """plugins.W1: a real signal in a real process, while files are being written."""
    script = (
        "import os, signal, sys\nfrom cookiecutter import generate\noriginal = generate.generate_file\n"
        "def slow(project, name, *rest, **more):\n    original(project, name, *rest, **more)\n"
        "    print(name, flush=True)\n    signal.pause() if name == 'README.md' else None\n"
        "generate.generate_file = slow\nos.dup2(2, 1)\nfrom mibyan.cli.main import main\n"
        "sys.exit(main(['plugins', 'new', '--no-input', '--field', 'slug=weather']))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    shown = b""
    while b"README.md" not in shown:
        assert select.select([process.stderr], [], [], PATIENCE)[0]
        piece = os.read(process.stderr.fileno(), 4096)
        assert piece, shown
        shown += piece
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE)
    assert (process.returncode, b"interrupted" in rest) == (130, True)
    assert list(Path().iterdir()) == []


# Nothing else has a say -------------------------------------------------------------------------------------------


def test_W1_the_users_cookiecutter_has_no_say(
    run: Callable, home: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.W1: neither its configuration, nor its replays, nor an environment variable; and nothing is written there."""
    configuration = (
        "default_context: {description: not mine, slug: not-mine, __id: x}\nreplay_dir: replay\n"
        "abbreviations: {}\ncookiecutters_dir: cookiecutters\n"
    )
    (own_home / ".cookiecutterrc").write_text(configuration)
    (own_home / ".cookiecutter_replay").mkdir()
    replay = '{"cookiecutter": {"slug": "not-mine"}}'
    (own_home / ".cookiecutter_replay/plugin-template.json").write_text(replay)
    monkeypatch.setenv("COOKIECUTTER_CONFIG", str(own_home / ".cookiecutterrc"))
    before = snapshot(own_home)
    assert new(run, slug="weather").code == 0
    assert {name: text for name, text in snapshot(own_home).items() if "plugin-weather" not in name} == before
    assert "not mine" not in Path("mibyan-plugin-weather/pyproject.toml").read_text()


def test_W1_nothing_of_it_is_imported_before(home: Path) -> None:
    """architecture, lazy: the other commands don't pay for the template's engine, nor does declaring this one."""
    script = "import sys\nfrom mibyan.cli.main import main\nmain(['plugins', 'list'])\nprint(sorted({'cookiecutter', 'jinja2'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_W1_what_an_installer_makes_of_the_template(
    run: Callable, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.W1: the byte code that it leaves there isn't rendered, and a project isn't read-only where the template is."""
    import shutil

    copy = shutil.copytree(template_folder(), tmp_path / "template")
    (inner,) = copy.glob("{{*")
    (inner / "tests" / "__pycache__").mkdir()
    (inner / "tests" / "__pycache__" / "test_tools.cpython-311.pyc").write_bytes(b"\x00{{ nothing }}")
    for path in (*copy.rglob("*"), copy):
        path.chmod(0o555 if path.is_dir() else 0o444)
    monkeypatch.setattr(scaffold_template, "template_folder", lambda: copy)
    assert new(run, slug="weather").code == 0
    made = [Path("mibyan-plugin-weather"), *Path("mibyan-plugin-weather").rglob("*")]
    assert [path for path in made if path.name == "__pycache__" or not path.stat().st_mode & 0o200] == []
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755)


# The template -----------------------------------------------------------------------------------------------------


def test_W1_a_checkout_has_the_template_in_examples() -> None:
    """architecture: in an editable checkout it is `examples/plugin-template` itself."""
    assert template_folder() == ROOT / "examples" / "plugin-template"


def test_W1_an_installation_without_a_template_says_so(
    run: Callable, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.W1: damaged files are told as that."""
    monkeypatch.setattr(scaffold_template, "__file__", str(tmp_path / "a/b/c/mibyan/cli/scaffold/template.py"))
    done = new(run, slug="weather")
    assert (done.code, "install it again" in done.err) == (2, True)


def test_W1_what_it_makes_needs_this_version_or_a_later_one() -> None:
    """plugins.M3: the range in the template admits the version that it comes with."""
    from packaging.specifiers import SpecifierSet

    assert __version__ in SpecifierSet(Template().values({"slug": "x"})["__requires_mibyan"])


def test_W1_the_template_by_cookiecutter_alone(tmp_path: Path) -> None:
    """plugins.W1: it is a template like any other, hook included; the hook refuses what can't be a name."""
    from cookiecutter.exceptions import FailedHookException
    from cookiecutter.main import cookiecutter

    settings = tmp_path / "settings.yaml"
    settings.write_text(f"replay_dir: {tmp_path / 'replay'}\ncookiecutters_dir: {tmp_path / 'kept'}\n")

    def make(slug: str) -> str:
        return cookiecutter(str(template_folder()), no_input=True, extra_context={"slug": slug, "description": 'a "b" \\'},
                            output_dir=str(tmp_path), config_file=str(settings))  # fmt: skip

    made = Path(make("My_Tool"))
    template = Template()
    ours = template.make(template.values({"slug": "My_Tool", "description": 'a "b" \\'}), tmp_path / "ours")
    assert snapshot(made) == snapshot(ours)
    with pytest.raises(FailedHookException):
        make("-a")
    assert not (tmp_path / "mibyan-plugin--a").exists()


# A person answers -------------------------------------------------------------------------------------------------


def test_W1_a_person_is_asked(terminal: Callable, home: Path, tmp_path: Path) -> None:
    """plugins.W1: each field that wasn't given; a bad answer is told and asked again; an empty one is the default."""
    screen = terminal("plugins", "new", "--field", "author_name=Ada")
    screen.expect("Name of the plugin")
    screen.type("files\n")
    screen.expect("comes with Mibyan")
    screen.type("\n")
    screen.expect("needs a name")
    screen.type("weather\n")
    screen.expect("[Tools of the plugin weather.]:")
    screen.type("\n")
    screen.expect("e-mail address")
    screen.type("ada@example.com\n")
    done = screen.end()
    assert (done.code, done.out) == (0, f"{tmp_path}/work/mibyan-plugin-weather\n")
    assert "Author's name" not in done.err
    project = tomllib.loads((tmp_path / "work/mibyan-plugin-weather/pyproject.toml").read_text())["project"]
    assert project["authors"] == [{"name": "Ada", "email": "ada@example.com"}]


@pytest.mark.parametrize(("typed", "code", "told"), [("\x04", 2, "the answers ended"), ("\x03", 130, "interrupted")])
def test_W1_a_person_who_leaves(
    terminal: Callable, home: Path, tmp_path: Path, typed: str, code: int, told: str
) -> None:
    """plugins.W1: the end of input and Ctrl-C at a question leave nothing."""
    screen = terminal("plugins", "new")
    screen.expect("Name of the plugin")
    screen.type(typed)
    done = screen.end()
    assert (done.code, told in done.err, done.out) == (code, True, "")
    assert snapshot(tmp_path / "work") == {}
