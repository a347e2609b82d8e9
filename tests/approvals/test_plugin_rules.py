"""Rules about commands that plugins add: they count while the plugin is loaded."""

from __future__ import annotations

import pytest

from mibyan import Runtime, ToolCall

PLUGIN = """
def register(ctx):
    ctx.register_command_rule("deploy", r"^make deploy", "deploys", matches=["make deploy"], misses=["make test"]{more})
"""


@pytest.fixture
def make(tmp_path):
    """Makes a runtime with a user's plugin of this source."""
    made = []

    def runtime(source, plugin_id="policy"):
        folder = tmp_path / "home" / "plugins" / plugin_id
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(source)
        (folder / "plugin.yaml").write_text(f"id: {plugin_id}\nversion: 1.0.0\n")
        made.append(Runtime(home=tmp_path / "home"))
        return made[-1]

    yield runtime
    for rt in made:
        rt.close()


def run(rt, command, tmp_path):
    return rt.execute(ToolCall("terminal", {"command": command}), session=rt.session(cwd=tmp_path))


def test_a_plugins_rule_counts_until_it_is_unloaded(make, tmp_path):
    """It is judged with the others, granted by its id, and taken back with its plugin; the second start knows it too."""
    rt, asked = make(PLUGIN.format(more="")), []
    rt.approvals.notify(lambda request: asked.append([finding["id"] for finding in request.findings]) or "deny")
    assert [run(rt, command, tmp_path).status for command in ("true && make deploy", "echo make deploy")] == [
        "denied",
        "ok",
    ]
    assert asked == [["deploy"]]
    with Runtime(home=rt.plugins.records()["policy"] and tmp_path / "home") as second:
        assert run(second, "make deploy", tmp_path).status == "denied"
    rt.plugins.unload("policy")
    assert run(rt, "make deploy 2>/dev/null; true", tmp_path).status == "ok"


def test_a_plugins_hardline_rule(make, tmp_path):
    """What a plugin calls hardline is refused as what Mibyan calls so."""
    rt = make(PLUGIN.format(more=', level="hardline"'))
    rt.approvals.notify(lambda request: "always")
    assert run(rt, "make deploy", tmp_path).status == "blocked"


@pytest.mark.parametrize("source", [
    'def register(ctx):\n    ctx.register_command_rule("deploy", "(", "deploys")\n',
    'def register(ctx):\n    ctx.register_command_rule("deploy", "x", "deploys", matches=["y"])\n',
    'def register(ctx):\n    ctx.register_command_rule("root_delete", "x", "deploys")\n',
    'def register(ctx):\n    ctx.register_command_rule("", "x", "deploys")\n',
])  # fmt: skip
def test_a_rule_that_isnt_right_fails_its_plugin(make, source):
    """The plugin isn't loaded, and the report says why."""
    rt = make(source)
    rt.registry  # noqa: B018 - loads
    assert rt.plugins.records()["policy"].state == "failed"
