"""plugins.W4: what SPEC means, what isn't taken for one, what a plan says and would harm, and the question."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.cli.exits import UsageError
from mibyan.cli.install.look import Look, told
from mibyan.cli.install.plan import Step, _of_lines, _of_report
from mibyan.cli.install.safety import conflicts, require_harmless
from mibyan.cli.install.spec import read_editable, read_more, read_spec
from mibyan.errors import MibyanError
from mibyan.plugins.manifest import parse_manifest


@pytest.mark.parametrize(
    ("spec", "means"),
    [
        ("weather", "mibyan-plugin-weather"),
        ("My_Weather", "mibyan-plugin-my-weather"),
        ("mibyan-plugin-weather", "mibyan-plugin-weather"),
        ("weather>=1.2,<2", "mibyan-plugin-weather<2,>=1.2"),
        ("weather[fast]==1.0", "mibyan-plugin-weather[fast]==1.0"),
        ("acme", "acme-tools"),
        ("weather @ https://host/w.whl", "weather @ https://host/w.whl"),
        ("git+https://host/me/weather@main", "git+https://host/me/weather@main"),
        ("https://host/weather-1.0.tar.gz", "https://host/weather-1.0.tar.gz"),
    ],
)
def test_plugins_W4_a_spec_is_what_people_expect(spec: str, means: str) -> None:
    """A name is the plugin's; an installed plugin keeps its distribution; what has an address is taken as it is."""
    assert read_spec(spec, installed={"acme": "acme-tools"}).spec == means


def test_plugins_W4_exact_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--exact means the distribution; a bare word is a name even if a folder is called so; with a slash it is the path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weather").mkdir()
    wheel = tmp_path / "mibyan_plugin_weather-1.0-py3-none-any.whl"
    wheel.write_bytes(b"")
    assert read_spec("weather", exact=True).spec == "weather"
    named = read_spec("weather")
    assert (named.kind, "./weather isn't meant" in named.said) == ("name", True)
    assert (read_spec("./weather").kind, read_spec("./weather").spec) == ("folder", str(tmp_path / "weather"))
    assert (read_spec(wheel.name).kind, read_spec(wheel.name).name) == ("wheel", "mibyan-plugin-weather")
    assert read_spec(wheel.as_uri()).path == wheel
    assert read_editable("weather").words == ["-e", str(tmp_path / "weather")]
    with pytest.raises(UsageError, match="-e takes"):
        read_editable(f"./{wheel.name}")


@pytest.mark.parametrize(
    "spec",
    [
        "", " ", "-r x", "--index-url=http://x", "-", "weather --index-url http://x", "weather\n--index-url x", "a b", "wea\u200bther",
        "weather\0", "\x1b[2J", "weather\ud800", " weather", "weather;import os", "we\u0430ther", "./nothere", "nothere.whl", "ftp://host/x",
        "javascript://x", "mibyan", "Mibyan==0.1", "mibyan[mcp]", "https://[x", "weather==", "@", "git@host:me/x",
    ],
)  # fmt: skip
def test_plugins_W4_what_could_mean_something_else_is_a_usage_error(spec: str) -> None:
    """Options in disguise, hidden characters, other scripts' letters, Mibyan itself: one clear sentence."""
    with pytest.raises(UsageError) as raised:
        read_spec(spec)
    assert raised.value.message.isprintable()


@given(st.text(max_size=40) | st.from_regex(r"[\w.\-@:/+\[\]=<>; ]{0,30}"))
def test_plugins_W4_any_text_is_understood_or_refused(spec: str) -> None:
    """Whatever is given: never another exception, and what the installer is told is no option and has no line end."""
    try:
        wanted = read_spec(spec)
    except UsageError:
        return
    assert not wanted.spec.startswith("-")
    assert wanted.spec.isprintable()


def test_plugins_W4_arguments_for_the_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin with an option (another SPEC is none); paths hold wherever the installer is started."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dist").mkdir()
    here = str(tmp_path / "dist")
    assert read_more(["--find-links", "dist", "--find-links=dist", "--pre"]) == [
        "--find-links",
        here,
        f"--find-links={here}",
        "--pre",
    ]
    with pytest.raises(UsageError, match="one SPEC"):
        read_more(["other"])


def test_plugins_W4_plans_of_pip_and_uv_say_the_same() -> None:
    """What is new, replaced, put in again and removed, from pip's report and from uv's lines."""
    there = {"a": "1.0", "gone": "3.0"}
    item = {
        "metadata": {"name": "A", "version": "2.0", "requires_dist": ["b>1"]},
        "download_info": {"url": "file:///w/a.whl"},
    }
    (step,) = _of_report({"install": [item]}, there)
    assert (step.name, step.was, step.version, step.requires, str(step)) == (
        "a",
        "1.0",
        "2.0",
        ("b>1",),
        "~ a 1.0 → 2.0",
    )
    lines = "Resolved 4 packages\n - a==1.0\n + a==2.0\n - gone==3.0\n + new_one==1.0 (from file:///x)\n ~ b==1.0\n + c @ file:///w/c\n"
    steps = list(_of_lines(lines, {**there, "b": "1.0"}))
    assert [str(one) for one in steps] == [
        "~ a 1.0 → 2.0",
        "- gone 3.0",
        "+ new-one 1.0",
        "~ b 1.0, again",
        "+ c file:///w/c",
    ]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step("mibyan", "", "1.0", removed=True), "removed"),
        (Step("mibyan", "0.1", "1.0"), "back to 0.1"),
        (Step("mibyan", "1.0"), "beside"),
    ],
)
def test_plugins_W4_a_plan_that_harms_mibyan_is_refused(step: Step, said: str) -> None:
    """Removed, set back, or a second one: refused with what it is."""
    with pytest.raises(MibyanError, match=said):
        require_harmless([step], {"mibyan": "1.0"})
    require_harmless([Step("mibyan", "1.1", "1.0"), Step("other", "1.0")], {"mibyan": "1.0"})


def test_plugins_W4_what_others_need_is_told() -> None:
    """Pytest needs pluggy: a plan that takes it away is a conflict, one with a version that fits isn't."""
    assert any("pytest" in line for line in conflicts([Step("pluggy", "", "1.5", removed=True)], {"pytest": "8"}))
    assert conflicts([Step("pluggy", "1.6.1", "1.6.0")], {"pytest": "8"}) == []


def _wheel(folder: Path) -> Path:
    """A wheel without a dependency, made as build backends make it."""
    info = "mibyan_plugin_asked-1.0.dist-info"
    files = {
        "asked_plugin.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: mibyan-plugin-asked\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[mibyan.plugins]\nasked = asked_plugin\n",
        f"{info}/extra_metadata/mibyan.json": json.dumps(
            {"manifest_version": 1, "id": "asked", "permissions": ["network"]}
        ),
    }
    path = folder / "mibyan_plugin_asked-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": "".join(f"{name},,\n" for name in files)}.items():
            archive.writestr(name, text)
    return path


def test_plugins_W4_a_file_that_is_no_wheel_is_told(home: Path, tmp_path: Path, run) -> None:
    """Only its name is a wheel's: nothing is started for it; a hidden control in a manifest can't reach the screen."""
    broken = tmp_path / "mibyan_plugin_junk-1.0-py3-none-any.whl"
    broken.write_bytes(b"hello")
    done = run("plugins", "install", str(broken), "--yes")
    assert (done.code, "isn't a zip archive" in done.err, "Installer:" in done.err) == (2, True, False)
    lines = list(told(Look("x", manifest=parse_manifest({"description": "a\x1b[2J\u202eb"}, "plugin.yaml"))))
    assert all(line.isprintable() for line in lines), lines


@pytest.mark.system
def test_plugins_W4_everything_that_a_manifest_offers_and_needs_is_told() -> None:
    """Not only tools: what else comes with it, and that no call gets through without it."""
    data = {
        "description": "A.", "commands": ["say"], "cli": ["talk"], "skills": ["skills/read"], "environments": {"box": "box:make"},
        "role": "policy", "tools": [{"name": "go", "toolset": "x", "schema": {}, "requires": {"env": ["KEY"]}}],
    }  # fmt: skip
    lines = list(told(Look("x", manifest=parse_manifest(data, "plugin.yaml"))))
    for line in ("commands: say", "commands below mibyan: talk", "skills: skills/read", "terminal backends: box",
                 "lets no call through without it: role: policy", "needs the variables: KEY"):  # fmt: skip
        assert f"  {line}" in lines


def test_plugins_W4_a_person_is_asked_and_a_no_changes_nothing(home: Path, tmp_path: Path, terminal, program) -> None:
    """What changes and what the manifest says is on the screen before the question; a no ends with 3."""
    asked = terminal("plugins", "install", str(_wheel(tmp_path)), "--installer", "pip", "--", "--no-index")
    asked.expect("Install it? [y/N]")
    asked.type("n\n")
    done = asked.end()
    assert (done.code, done.out) == (3, "")
    assert "+ mibyan-plugin-asked 1.0" in done.err
    assert "network" in done.err
    assert "nothing was installed" in done.err
    listed = program("plugins", "list", "--json").data["plugins"]
    assert "asked" not in {one["id"] for one in listed}
