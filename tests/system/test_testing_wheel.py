"""The fixtures of `mibyan.testing` as they come with Mibyan's wheel, on a plugin that is installed beside it (plugins.W2)."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from .conftest import Author, Installation, run

pytestmark = pytest.mark.system

#: pytest 8.2 and later, by what it is called in a site-packages folder.
PYTEST = ("_pytest", "pytest", "pytest-*.dist-info", "py.py", "iniconfig", "iniconfig-*.dist-info")

SOURCE = '''
    import mibyan

    @mibyan.tool(toolset="weather")
    def forecast(city: str, days: int = 3) -> dict:
        """Weather forecast for a city."""
        return {"city": city, "days": days}

    @mibyan.hookimpl
    def pre_tool_call(tool_name, args):
        return mibyan.Block("there is no such city") if args.get("city") == "Atlantis" else None
'''

TESTS = """
import sys
import mibyan_weather                  # before Mibyan could listen, as a test module does
import pytest
from mibyan.testing import assert_portable


@pytest.fixture(params=["weather", "mibyan-plugin-weather", "mibyan_weather"])
def weather(request, load_plugin):
    return load_plugin(request.param)


def test_it_is_the_installed_one(weather, call_tool, hook_recorder):
    assert (weather.record.source, weather.version, weather.tools) == ("pip", "1.5", ("forecast",))
    assert weather.module is mibyan_weather
    assert call_tool("forecast", city="Aden").data == {"city": "Aden", "days": 3}
    assert call_tool.failing("forecast", city="Atlantis").status == "blocked"
    hook_recorder.assert_called("post_tool_call", status="blocked")
    assert_portable(weather)


def test_others_are_not_seen(mibyan_runtime):
    mibyan_runtime.definitions()
    assert [one.id for one in mibyan_runtime.plugins.all_records() if one.source != "builtin"] == []
    assert not hasattr(sys, "_other_was_imported")
"""


def test_a_plugins_tests_run_beside_the_installed_wheels(
    installation: Installation, author: Author, tmp_path: Path
) -> None:
    """The fixtures are found by the wheel's entry point; the author's own plugin is loaded, nobody else's is."""
    for name, module, source in (
        ("mibyan-plugin-weather", "mibyan_weather", SOURCE),
        ("mibyan-plugin-other", "mibyan_other", "import sys\nsys._other_was_imported = True\n"),
    ):
        installation.pip("install", "--no-deps", author.wheel(name, module, source, "1.5"))
    lent = tmp_path / "lent"
    for name in PYTEST:
        for path in Path(sysconfig.get_path("purelib")).glob(name):
            if not (lent / path.name).exists():
                (lent / path.name).symlink_to(path)
    (installation.work / "test_weather.py").write_text(TESTS)
    (installation.home / "plugins").mkdir(parents=True)

    clean = {"PATH": "/usr/bin:/bin", "HOME": str(installation.home), "MIBYAN_PLUGINS": "other"}
    program = (installation.python, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error")
    done = run(*program, "test_weather.py", cwd=installation.work, env=clean)

    assert "4 passed" in done.stdout
    assert "mibyan-" in done.stdout.partition("plugins:")[2].partition("\n")[0]
    without = run(*program, "-p", "no:mibyan", "test_weather.py", cwd=installation.work, env=clean, check=False)
    assert "fixture 'load_plugin' not found" in without.stdout
