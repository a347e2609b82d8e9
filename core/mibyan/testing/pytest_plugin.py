"""The fixtures for pytest, which knows them wherever Mibyan is installed; `-p no:mibyan` turns them off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mibyan.runtime import Runtime
    from mibyan.testing.approving import ApprovalRecorder
    from mibyan.testing.calling import AsyncToolCaller, ToolCaller
    from mibyan.testing.loaded import LoadedPlugin
    from mibyan.testing.makers import LoadPlugin, MakeDist, MakePlugin, MakeRuntime, WritePlugin
    from mibyan.testing.recording import HookRecorder
    from mibyan.testing.snapshots import DefinitionsSnapshot
    from mibyan.testing.workbench import Workbench

__tracebackhide__ = True  # a failing test shows its own lines

_MARKER = (
    "mibyan(config=None, plugins=(), plugin_config=None, **options): what `mibyan_runtime` is made with: keys of "
    "config.yaml, installed plugins that it sees, settings of plugins by id, further arguments of Runtime."
)


#: The tests that others subclass say what differs, as tests of their own would.
pytest.register_assert_rewrite("mibyan.testing.environments")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of `definitions_snapshot`."""
    group = parser.getgroup("mibyan", "Mibyan's test kit")
    group.addoption(
        "--mibyan-update", action="store_true", help="write the files of definitions_snapshot instead of comparing them"
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker `mibyan`."""
    config.addinivalue_line("markers", _MARKER)


# Runtimes ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def mibyan_workbench(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    """What the other fixtures work on: a temporary home, runtimes that see nothing else, plugins made for them.

    Meanwhile `MIBYAN_HOME` is that home, and no other `MIBYAN_*` variable is set.
    """
    from mibyan.testing.workbench import Workbench

    # One stack of changes with the test's own: it is undone from the top, whoever changed what.
    for name in [name for name in os.environ if name.startswith("MIBYAN_")]:
        monkeypatch.delenv(name)
    bench = Workbench(tmp_path_factory.mktemp("mibyan"), keep_environment=True)
    monkeypatch.setenv("MIBYAN_HOME", str(bench.home))
    with bench:
        yield bench


@pytest.fixture
def mibyan_home(mibyan_workbench: Workbench) -> Path:
    """The temporary `$MIBYAN_HOME` of the test's runtimes; `config.yaml`, `plugins/` and `tools/` may be written there."""
    return mibyan_workbench.home


@pytest.fixture
def mibyan_config() -> dict[str, Any]:
    """The configuration of `mibyan_runtime` as nested dicts: override it in a `conftest.py`, a module or a class."""
    return {}


@pytest.fixture
def make_runtime(mibyan_workbench: Workbench) -> MakeRuntime:
    """Makes further runtimes: `make_runtime(config={...}, plugins=["weather"])`."""
    return mibyan_workbench.runtime


@pytest.fixture
def mibyan_runtime(
    mibyan_workbench: Workbench, mibyan_config: Mapping[str, Any], request: pytest.FixtureRequest
) -> Runtime:
    """A runtime with a temporary home, without a project, and without the plugins that are installed on this machine.

    The built-in plugins are there, as they are in production. Its configuration comes from the fixture `mibyan_config`
    and from markers: `@pytest.mark.mibyan(config={"dispatch": {"timeout": 5}}, plugins=["weather"])`.
    """
    from mibyan.testing.workbench import merged

    options: dict[str, Any] = {"config": mibyan_config}
    for mark in reversed(list(request.node.iter_markers("mibyan"))):
        if mark.args:
            raise pytest.UsageError(f"{request.node.nodeid}: the marker mibyan takes keywords: {_MARKER}")
        options = merged(options, mark.kwargs)
    return mibyan_workbench.runtime(**options)


# Plugins -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def write_plugin(mibyan_workbench: Workbench) -> WritePlugin:
    """Writes a folder plugin for a runtime that is made, or first used, afterwards."""

    def write_plugin(source: str | bytes | None = None, id: str | None = None, **what: Any) -> Path:  # noqa: A002
        return mibyan_workbench.write_plugin(source, id, **what)

    return write_plugin


@pytest.fixture
def make_plugin(mibyan_workbench: Workbench, request: pytest.FixtureRequest) -> MakePlugin:
    """Makes a folder plugin from its source and loads it: `make_plugin(source='''...''', manifest={...})`."""

    def make_plugin(
        source: str | bytes | None = None, id: str | None = None, *, runtime: Runtime | None = None,  # noqa: A002
        check: bool = True, **what: Any,
    ) -> LoadedPlugin:  # fmt: skip
        into = runtime or request.getfixturevalue("mibyan_runtime")
        folder = mibyan_workbench.write_plugin(source, id, **what)
        return mibyan_workbench.load(into, folder.name, check=check)

    return make_plugin


@pytest.fixture
def load_plugin(mibyan_workbench: Workbench, request: pytest.FixtureRequest) -> LoadPlugin:
    """Loads the plugin under test as it is installed, by an editable install too: `load_plugin("weather")`."""

    def load_plugin(name: str, *, runtime: Runtime | None = None, check: bool = True) -> LoadedPlugin:
        into = runtime or request.getfixturevalue("mibyan_runtime")
        return mibyan_workbench.load(into, mibyan_workbench.show_installed(name), check=check)

    return load_plugin


@pytest.fixture
def make_dist(mibyan_workbench: Workbench) -> MakeDist:
    """Fabricates an installed distribution: `make_dist("mibyan-plugin-weather", source='''...''')`."""
    return mibyan_workbench.write_distribution


# Calls, hooks, approvals ---------------------------------------------------------------------------------------------


@pytest.fixture
def call_tool(mibyan_runtime: Runtime) -> ToolCaller:
    """Calls a tool of `mibyan_runtime`: `call_tool("forecast", city="Aden").data`; the test fails if the call does."""
    from mibyan.testing.calling import ToolCaller

    return ToolCaller(mibyan_runtime)


@pytest.fixture
def acall_tool(mibyan_runtime: Runtime) -> AsyncToolCaller:
    """Calls a tool of `mibyan_runtime` in an async test, whatever runs those.

    `(await acall_tool("forecast", city="Aden")).data`; the test fails if the call does.
    """
    from mibyan.testing.calling import AsyncToolCaller

    return AsyncToolCaller(mibyan_runtime)


@pytest.fixture
def hook_recorder(mibyan_runtime: Runtime) -> HookRecorder:
    """Records the hooks that `mibyan_runtime` calls: `hook_recorder.assert_called("post_tool_call", status="ok")`."""
    from mibyan.testing.recording import HookRecorder

    return HookRecorder(mibyan_runtime)


@pytest.fixture
def approve_all(mibyan_runtime: Runtime) -> ApprovalRecorder:
    """Says yes, once, to what needs approval in `mibyan_runtime`; `approve_all.requests` is what was asked."""
    from mibyan.testing.approving import ApprovalRecorder

    return ApprovalRecorder(mibyan_runtime, "once")


@pytest.fixture
def deny_all(mibyan_runtime: Runtime) -> ApprovalRecorder:
    """Says no to what needs approval in `mibyan_runtime`; `deny_all.requests` is what was asked."""
    from mibyan.testing.approving import ApprovalRecorder

    return ApprovalRecorder(mibyan_runtime, "deny")


@pytest.fixture
def definitions_snapshot(request: pytest.FixtureRequest) -> DefinitionsSnapshot:
    """Compares definitions with a file beside the test's own; `pytest --mibyan-update` writes it."""
    from mibyan.testing.snapshots import DefinitionsSnapshot

    return DefinitionsSnapshot(request.path.parent, update=request.config.getoption("--mibyan-update"))
