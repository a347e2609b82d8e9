"""The fixtures as pytest's users meet them: found where Mibyan is installed, used by a newcomer, absent where unwanted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mibyan_builtin  # noqa: F401 - where it lies
from mibyan.testing.distributions import write_distribution

from .session import Session

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "test-a-plugin.md"

WEATHER = '''
    import mibyan

    def register(ctx):
        unit = ctx.config.get("unit", "C")

        @mibyan.tool(toolset="weather")
        def forecast(city: str, days: int = 3) -> dict:
            """Weather forecast for a city."""
            return {"city": city, "days": days, "unit": unit}

        ctx.registry.add(forecast)
'''


@pytest.fixture
def session(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session of pytest; all of them share their bytecode."""
    return Session(tmp_path, tmp_path_factory.getbasetemp() / "bytecode")


def test_fixtures_W2_the_page_for_authors_is_true(session: Session) -> None:
    """A newcomer's tests, copied from the how-to: on two workers, in random order, with every warning an error."""
    parts = re.findall(
        r"^<!-- (?:test|append): (\S+) -->\n```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    files: dict[str, str] = {}
    for name, text in parts:
        files[name] = files.get(name, "") + text
    for name, text in files.items():
        session.write(name, text)
    write_distribution(session.site, "mibyan-plugin-weather", source=WEATHER)

    printed = session.run("-n", "2", "--mibyan-update")

    assert re.search(rf"\b{sum(text.count('def test_') for text in files.values())} passed", printed), printed
    assert '"name": "forecast"' in (session.folder / "tests" / "definitions.json").read_text()


@pytest.mark.thorough
def test_fixtures_W2_a_run_that_does_not_use_them_is_as_before(session: Session) -> None:
    """Nothing but the plugin itself is imported, nothing of the process is changed; `-p no:mibyan` does away with it."""
    session.write("test_unconcerned.py", """
        import os, sys

        HEAVY = {"pydantic", "pydantic_core", "yaml", "jsonschema_rs", "click", "rich", "asyncio", "docstring_parser", "filelock"}

        def test_nothing_is_imported_or_changed(request):
            expected = {"mibyan", "mibyan.testing", "mibyan.testing.pytest_plugin"} if os.environ["WITH"] == "yes" else set()
            assert {name for name in sys.modules if name.partition(".")[0] == "mibyan"} == expected
            assert HEAVY & set(sys.modules) == set()
            assert os.environ["MIBYAN_PLUGINS"] == "mine"
            assert not any("mibyan" in repr(finder) for finder in sys.meta_path)
            assert request.config.pluginmanager.hasplugin("mibyan") is bool(expected)
    """)  # fmt: skip

    quiet = ("-p", "no:randomly", "-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:timeout")
    for words, used in (((), "yes"), (("-p", "no:mibyan"), "no")):
        assert "1 passed" in session.run(*quiet, *words, WITH=used, MIBYAN_PLUGINS="mine")


def test_fixtures_W2_tests_do_not_see_each_other_and_leave_nothing(session: Session) -> None:
    """Configuration, plugins, modules, variables and the default runtime are a test's own; markers add to `mibyan_config`."""
    session.write("conftest.py", """
        import os, sys, threading
        import pytest

        def state():
            modules = {name for name in sys.modules if "mibyan_plugin" in name or name.startswith("mibyan_private")}
            home = [name for name in os.environ if name.startswith("MIBYAN_")]
            return list(sys.path), modules, {name: os.environ[name] for name in home}, [repr(f) for f in sys.meta_path]

        @pytest.fixture(autouse=True)
        def nothing_is_left(request):
            before = state()
            yield
            # Other fixtures end first only if they were made later: this one is the first.
            request.addfinalizer(lambda: None)
            assert state() == before
            assert [thread.name for thread in threading.enumerate() if not thread.daemon] == ["MainThread"]

        @pytest.fixture
        def mibyan_config():
            return {"dispatch": {"timeout": 7, "max_workers": 3}}
    """)  # fmt: skip
    session.write("test_isolation.py", '''
        import importlib.metadata, os, sys
        import mibyan, pytest

        TOOL = """
            import mibyan

            @mibyan.tool(toolset="same")
            def same() -> str:
                return {!r}
        """

        @pytest.mark.parametrize("number", ["one", "two"])
        def test_one_name_twice(number, make_dist, load_plugin, call_tool):
            make_dist("mibyan-plugin-same", number, source=TOOL.format(number))
            assert load_plugin("same").record.version == number
            assert call_tool("same").text == number
            assert sys.modules["mibyan_plugin_same"].same() == number

        @pytest.mark.parametrize("number", ["one", "two"])
        def test_one_folder_twice(number, make_plugin, call_tool):
            make_plugin(TOOL.format(number), "same")
            assert call_tool("same").text == number

        def test_nothing_is_there(mibyan_runtime):
            mibyan_runtime.definitions()
            assert [one.id for one in mibyan_runtime.plugins.all_records() if one.source != "builtin"] == []
            assert "same" not in [one["function"]["name"] for one in mibyan_runtime.definitions()]
            with pytest.raises(importlib.metadata.PackageNotFoundError):
                importlib.metadata.version("mibyan-plugin-same")

        def test_a_variable_of_the_test_is_its_own(monkeypatch, mibyan_runtime, mibyan_home):
            assert {name: value for name, value in os.environ.items() if name.startswith("MIBYAN_")} == {"MIBYAN_HOME": str(mibyan_home)}
            monkeypatch.setenv("MIBYAN_SAFE_MODE", "1")
            assert mibyan.get_runtime()._parts is mibyan_runtime._parts

        @pytest.mark.mibyan(config={"dispatch": {"timeout": 9}})
        class TestMarked:
            def test_the_class(self, mibyan_runtime):
                assert (mibyan_runtime.config.dispatch.timeout, mibyan_runtime.config.dispatch.max_workers) == (9, 3)

            @pytest.mark.mibyan(config={"dispatch": {"timeout": 11}}, safe_mode=True)
            def test_the_nearest(self, mibyan_runtime, make_plugin):
                assert (mibyan_runtime.config.dispatch.timeout, mibyan_runtime.config.dispatch.max_workers) == (11, 3)
                with pytest.raises(mibyan.MibyanError, match="safe_mode|no plugin"):
                    make_plugin(TOOL.format("x"), "same")

        def test_a_runtime_for_later(write_plugin, make_runtime):
            write_plugin(TOOL.format("later"), "same")
            with make_runtime({"plugins": {"disabled": ["same"]}}) as off, make_runtime() as on:
                assert off.plugins.get("same").state == "disabled"
                assert on.call("same") == "later"

        def test_the_facade_of_a_test_is_its_own(mibyan_workbench):
            mibyan.registry.register("mine", "mine", {"description": "Mine."}, lambda args: "mine")
            assert mibyan.handle_function_call("mine", {}) == "mine"

        def test_and_forgotten(mibyan_workbench):
            assert mibyan.registry.get_entry("mine") is None
    ''')  # fmt: skip

    assert "11 passed" in session.run(MIBYAN_PLUGINS="", MIBYAN_HOME=str(session.folder / "elsewhere"))


@pytest.mark.thorough
def test_fixtures_W2_a_failing_test_says_why(session: Session) -> None:
    """What a test's author reads where a plugin, a call, a hook or a marker isn't what it should be."""
    session.write("test_failing.py", """
        import pytest

        def test_broken(make_plugin):
            make_plugin("raise RuntimeError('no way')", "broken")

        def test_unknown(make_plugin, call_tool):
            make_plugin("raise RuntimeError('no way')", "broken", check=False)
            call_tool("shout", text="aden")

        def test_not_installed(load_plugin):
            load_plugin("wether")

        def test_hook(mibyan_runtime, hook_recorder):
            mibyan_runtime.call("todo_list", {})
            hook_recorder.assert_called("pre_tool_call", tool_name="other")

        def test_snapshot(mibyan_runtime, definitions_snapshot):
            definitions_snapshot(mibyan_runtime.definitions())

        @pytest.mark.mibyan({"dispatch": {}})
        def test_marker(mibyan_runtime):
            pass

        def test_twice(make_plugin):
            make_plugin("def register(ctx): ctx.on_unload(print)", "same", check=False)
            make_plugin("", "same")

        def test_outside(write_plugin):
            write_plugin("", files={"../outside.py": ""})

        def test_imported_already(make_dist):
            make_dist("json", source="")
    """)  # fmt: skip
    write_distribution(session.site, "mibyan-plugin-weather", source=WEATHER)

    printed = session.run("-p", "no:randomly", code=1)

    for line in (
        r"plugin 'broken' has failed: it raised RuntimeError: no way",
        r"CallFailed: shout\({'text': 'aden'}\) ended with the status 'error' \(unknown_tool\)",
        r"plugin:broken: it raised RuntimeError: no way",
        r"there is no plugin 'wether' \(did you mean 'weather'\?\)",
        r"Installed plugins: weather",
        r"pre_tool_call\(tool_name='other'\) was called 0 times, and was expected at least once; these were called:",
        r"\d\. post_tool_call\(tool_name='todo_list'",
        r"definitions.json isn't there; `pytest --mibyan-update` writes it",
        r"the marker mibyan takes keywords",
        r"there is a plugin 'same' already: `plugin.reload\(source\)` changes one",
        r"the file '../outside.py' isn't below the plugin's folder",
        r"the module 'json' is imported already",
    ):
        assert re.search(line, printed), f"{line!r} isn't in:\n{printed}"
    assert "def require" not in printed  # the kit's own frames aren't shown
