"""`mibyan.plugins.manifest`, its model and its check: what a plugin says about itself (plugins.M1, M2)."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.errors import ManifestError
from mibyan.filecache import stamp
from mibyan.plugins.manifest import FrozenTool, Manifest, manifest_json_schema, parse_manifest
from mibyan.plugins.manifest_check import InvalidManifestError
from mibyan.plugins.manifest_model import ManifestModel, ToolFlags, json_schema, keys_of
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.manifests import manifest_of, read_manifest
from mibyan.tools.entry import Requirements, ToolEntry

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {"description": "Weather.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TOOL: dict[str, Any] = {
    "name": "forecast",
    "toolset": "weather",
    "schema": SCHEMA,
    "target": "weather.tools:forecast",
    "check": "weather.tools:has_key",
    "flags": {"read_only": True, "timeout": 5, "aliases": ["wx"], "validate": False},
    "requires": {"env": ["WX_KEY"], "bins": ["curl"], "modules": ["httpx"]},
    "requires_env": ["WX_KEY"],
}
FULL: dict[str, Any] = {
    "manifest_version": 1,
    "id": "weather",
    "version": "1.2",
    "description": "Weather for everybody",
    "author": "A. Author",
    "homepage": "https://example.org",
    "license": "MIT",
    "module": "weather.py",
    "requires_mibyan": ">=0.1,<2",
    "requires_plugins": ["files", "geo >=1.2"],
    "after": ["geo"],
    "role": "policy",
    "tools": [TOOL],
    "toolsets": {"weather": {"description": "Weather", "tools": ["sun"], "includes": ["web"]}},
    "hooks": ["pre_tool_call"],
    "on_error": "allow",
    "commands": [{"name": "wx", "description": "Weather", "args_hint": "CITY"}],
    "cli": ["weather"],
    "skills": ["skills/weather"],
    "environments": {"cloud": "weather.env:Cloud"},
    "config_schema": {"type": "object", "properties": {"unit": {"enum": ["C", "F", None]}}},
    "requires": {"env": ["HOME"]},
    "overrides": ["web_search"],
    "permissions": ["network"],
}


def tool(**changes: Any) -> dict[str, Any]:
    return {"tools": [{**TOOL, **changes}]}


def problems_of(data: Any, **options: Any) -> str:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(data, "/p/weather/plugin.yaml", **options)
    return str(caught.value)


def test_every_field_of_m2_is_read() -> None:
    """plugins.M2: each field that the spec names is there and arrives with its value."""
    manifest = parse_manifest(FULL, "plugin.yaml")
    assert (manifest.id, manifest.version, manifest.role, manifest.on_error) == ("weather", "1.2", "policy", "allow")
    assert manifest.requires_plugins == ("files", "geo >=1.2")
    assert manifest.toolsets["weather"].includes == ("web",)
    assert manifest.commands[0].args_hint == "CITY"
    assert manifest.requires == Requirements(env=("HOME",))
    assert manifest.config_schema == FULL["config_schema"]
    assert manifest.tools == (
        FrozenTool(
            "forecast",
            "weather",
            SCHEMA,
            "weather.tools:forecast",
            "weather.tools:has_key",
            {"read_only": True, "timeout": 5, "aliases": ["wx"], "validate": False},
            Requirements(("WX_KEY",), ("curl",), ("httpx",)),
            ("WX_KEY",),
        ),
    )


def test_the_model_and_the_record_have_the_same_fields() -> None:
    """plugins.M1: the pydantic model is the specification, so the light record can't know more or less."""
    assert set(keys_of(ManifestModel)) == set(Manifest.__slots__) - {"frozen", "warnings"}


def test_flags_are_keyword_arguments_of_register() -> None:
    """plugins.M4: a frozen definition says what `register` would be told; each flag is an attribute of an entry."""
    assert set(keys_of(ToolFlags)) <= set(ToolEntry.__slots__)


def test_trusted_data_comes_back_as_it_went() -> None:
    """A manifest written as data and read as trusted data is the same manifest."""
    manifest = parse_manifest(FULL, "plugin.yaml")
    data = json.loads(json.dumps(manifest.to_data()))
    assert Manifest.from_trusted(data) == manifest
    assert data == FULL


@pytest.mark.parametrize(
    ("data", "frozen"), [({}, False), ({"tools": []}, True), ({"tools": None}, False), ({"tools": [TOOL]}, True)]
)
def test_a_manifest_with_tools_is_frozen(data: dict[str, Any], frozen: bool) -> None:
    """plugins.M4: `tools`, even an empty list, says that nothing has to be imported to know what there is."""
    manifest = parse_manifest(data, "plugin.yaml")
    assert manifest.frozen is frozen
    assert Manifest.from_trusted(manifest.to_data()).frozen is frozen


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"verison": "1"}, "key 'verison': unknown key (did you mean 'version'?)"),
        ({"requires": {"envs": []}}, "key 'requires.envs': unknown key (did you mean 'env'?)"),
        ({"toolsets": {"a.b": {"tool": []}}}, "key 'toolsets.'a.b'.tool': unknown key (did you mean 'tools'?)"),
        (tool(flags={"readonly": True}), "key 'tools[0].flags.readonly': unknown key (did you mean 'read_only'?)"),
        (tool(tagret="a:b"), "key 'tools[0].tagret': unknown key (did you mean 'target'?)"),
        ({"zzz": 1}, "key 'zzz': unknown key; known are manifest_version, id,"),
        (
            {"role": "polcy"},
            "key 'role': expected 'policy', 'observer' or 'tools', got \"polcy\" (did you mean 'policy'?)",
        ),
        ({"version": 1.0}, "key 'version': expected text, got 1.0; put it in quotes"),
        ({"version": True}, "key 'version': expected text, got true; put it in quotes"),
        ({"id": ["a"]}, "key 'id': expected text, got [\"a\"]"),
        ({"manifest_version": True}, "key 'manifest_version': expected a whole number, got true"),
        ({"manifest_version": 0}, "key 'manifest_version': expected greater than or equal to 1, got 0"),
        ({"after": "geo"}, "key 'after': expected a list, got \"geo\""),
        ({"requires": []}, "key 'requires': expected a mapping, got []"),
        ({"environments": {"x": "nope"}}, "key 'environments.x': expected 'module:attribute', got \"nope\""),
        ({"requires_mibyan": "newer"}, "key 'requires_mibyan': 'newer' isn't a PEP 440 range"),
        ({"requires_plugins": ["a", "b =>1"]}, "key 'requires_plugins[1]': '=>1' isn't a PEP 440 range"),
        ({"tools": [TOOL, TOOL]}, "key 'tools[1].name': 'forecast' occurs twice"),
        ({"tools": ["forecast"]}, "key 'tools[0]': expected a mapping, got \"forecast\""),
        (tool(name="a b"), "key 'tools[0].name': expected 1 to 64 letters, digits, '_' and '-', got \"a b\""),
        (tool(target="weather"), "key 'tools[0].target': expected 'module:attribute'"),
        (tool(flags={"timeout": 0}), "key 'tools[0].flags.timeout': expected greater than 0, got 0"),
        (tool(flags={"timeout": True}), "key 'tools[0].flags.timeout': expected a number, got true"),
        (tool(flags={"read_only": 1}), "key 'tools[0].flags.read_only': expected true or false, got 1"),
        (tool(schema={"parameters": {"type": "array"}}), "key 'tools[0].schema': "),
        ({"tools": [{"name": "x"}]}, "key 'tools[0].toolset': is missing"),
        ({"version": {1, 2}}, "is a set; put it in quotes to make it text"),
        ({"version": float("nan")}, "not plain data"),
        ({"skills": ["a\nb"]}, "key 'skills[0]': expected a name on one line"),
        ([], "a manifest is a mapping of keys, this is list"),
        (None, "a manifest is a mapping of keys, this is nothing"),
        ("id: x", "a manifest is a mapping of keys, this is str"),
    ],
)
def test_what_is_wrong_is_said(data: Any, said: str) -> None:
    """plugins.M1: an unknown key or a wrong type is an error that names the key, with a suggestion where one is near."""
    assert said in problems_of(data)


def test_every_problem_is_listed_with_its_line() -> None:
    """plugins.M1: file, line and key of each problem; a part without a line of its own has that of what holds it."""
    lines = {("verison",): 2, ("tools",): 3, ("tools", 0): 4}
    said = problems_of({"verison": "1", **tool(flags={"emoji": 1})}, lines=lines)
    assert said.splitlines()[0] == "/p/weather/plugin.yaml can't be used:"
    assert "  plugin.yaml:2: key 'verison': unknown key" in said
    assert "  plugin.yaml:4: key 'tools[0].flags.emoji': expected text, got 1" in said


def test_very_many_problems_are_counted() -> None:
    """The message of a manifest with a thousand mistakes can still be read."""
    said = problems_of({f"key{number}": 1 for number in range(1000)})
    assert len(said.splitlines()) < 30
    assert "and 980 more" in said


def test_a_newer_version_is_a_warning() -> None:
    """plugins.M1: a newer `manifest_version` is read as well as may be, and what isn't known is said."""
    manifest = parse_manifest(
        {"manifest_version": 9, "id": "weather", "shiny": 1, "requires": {"gpus": 2, "bins": ["curl"]}}, "plugin.yaml"
    )
    assert (manifest.id, manifest.requires.bins) == ("weather", ("curl",))
    assert any("manifest_version 9 is newer than 1" in warning for warning in manifest.warnings)
    assert any("'shiny'" in warning for warning in manifest.warnings)
    assert any("'requires.gpus'" in warning for warning in manifest.warnings)


def test_a_newer_version_doesnt_excuse_wrong_types() -> None:
    """plugins.M1: only unknown keys are forgiven to a newer version."""
    assert "key 'after': expected a list" in problems_of({"manifest_version": 9, "shiny": 1, "after": "geo"})


def test_names_may_stand_for_objects_that_have_only_a_name() -> None:
    """Toolsets and commands may be lists of names."""
    manifest = parse_manifest({"toolsets": ["weather"], "commands": ["wx"]}, "plugin.yaml")
    assert list(manifest.toolsets) == ["weather"]
    assert manifest.commands[0].name == "wx"


def test_the_published_json_schema_is_the_models() -> None:
    """plugins.M1: the file that is published and checked against says what the model says."""

    def bare(schema: Any) -> Any:  # titles and descriptions differ between pydantic's versions
        if isinstance(schema, dict):
            texts = {"title", "description"} - set(schema.get("required", ())) if "type" in schema else set()
            return {key: bare(part) for key, part in schema.items() if key not in texts or isinstance(part, dict)}
        return [bare(part) for part in schema] if isinstance(schema, list) else schema

    assert bare(manifest_json_schema()) == bare(json_schema())


def test_the_json_schema_takes_what_the_check_takes() -> None:
    """plugins.M1: the published JSON Schema is valid, takes a full manifest and refuses an unknown key."""
    validator = jsonschema_rs.Draft202012Validator(manifest_json_schema())
    assert validator.is_valid(FULL)
    assert not validator.is_valid({**FULL, "verison": "1"})
    assert not validator.is_valid(tool(name="a b"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = st.sampled_from([*FULL, "verison", ""])


@given(st.dictionaries(KEYS, JSON, max_size=4) | JSON)
def test_any_data_is_a_manifest_or_a_manifest_error(data: Any) -> None:
    """plugins.F5: whatever is in the file, the answer is a manifest that survives its own data, or one error."""
    with contextlib.suppress(InvalidManifestError):
        manifest = parse_manifest(data, "plugin.yaml")
        assert Manifest.from_trusted(manifest.to_data()).to_data() == manifest.to_data()


@pytest.mark.parametrize("name", ["plugin.yaml", "mibyan.json"])
@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        "name: Müller".encode("latin-1"),
        b"[1, 2]",
        b'"text"',
        b"{",
        b"id: [",
        b"\x00\x01",
        b"[" * 100_000,
        b'{"a":' * 5_000,
        b"a: &a [*a]",
        b"!!python/object/apply:os.system ['true']",
        b'{"id": "x", "id": "y"}',
        b"id: x\nid: y\n",
        b"id: \tx: y",
        b"version: !!binary aGVsbG8=\n",
        b"version: !!float 1.5\n",
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    """plugins.F5: a file that isn't YAML or JSON, isn't text or isn't a mapping is a problem on one line."""
    path = tmp_path / name
    path.write_bytes(content)
    manifest, problem = read_manifest(path, ContentCache())
    assert manifest is None
    assert problem
    assert "\n" not in problem
    assert problem.startswith(name)


@pytest.mark.parametrize(
    ("name", "content"),
    [("plugin.yaml", b"\xef\xbb\xbfid: weather\n"), ("mibyan.json", b'\xef\xbb\xbf{"id": "weather"}')],
)
def test_a_byte_order_mark_is_no_problem(name: str, content: bytes) -> None:
    """plugins.F5: editors that write a UTF-8 byte order mark make manifests that can be read."""
    manifest, problem = manifest_of(content, f"/p/{name}")
    assert problem is None
    assert manifest is not None
    assert manifest.id == "weather"


def test_the_line_of_a_yaml_problem_is_said(tmp_path: Path) -> None:
    """plugins.M1: a problem in plugin.yaml comes with its line."""
    path = tmp_path / "plugin.yaml"
    path.write_text("id: weather\nverison: '1'\n")
    assert read_manifest(path, ContentCache())[1] == (
        "plugin.yaml:2: key 'verison': unknown key (did you mean 'version'?)"
    )


def test_a_directory_called_manifest_is_one_sentence(tmp_path: Path) -> None:
    """plugins.F5: something else than a file under the manifest's name is a problem, never waited for."""
    (tmp_path / "plugin.yaml").mkdir()
    assert read_manifest(tmp_path / "plugin.yaml", ContentCache()) == (
        None,
        "plugin.yaml can't be read: not a regular file",
    )


def test_a_checked_manifest_is_read_without_pydantic_and_yaml(tmp_path: Path) -> None:
    """architecture, "What is heavy is lazy": an unchanged manifest costs neither yaml nor pydantic."""
    (tmp_path / "plugin.yaml").write_text("id: weather\ntools: []\n")
    code = """
import sys
from pathlib import Path
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.manifests import read_manifest
home = Path(sys.argv[1])
cache = ContentCache(home / "cache" / "discovery.bin")
manifest, problem = read_manifest(home / "plugin.yaml", cache)
cache.save()
assert manifest is not None and manifest.id == "weather" and manifest.frozen, problem
print([name for name in ("pydantic", "yaml", "packaging") if name in sys.modules])
"""
    runs = [
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs == ["['yaml']\n", "[]\n"]


def test_a_right_manifest_is_checked_without_pydantic(tmp_path: Path) -> None:
    """plugins.F4: pydantic brings importlib.metadata, so a wheel's manifest is first held against the JSON Schema."""
    (tmp_path / "mibyan.json").write_text(json.dumps(FULL))
    code = (
        "import sys; from mibyan.plugins.sources.cache import ContentCache;"
        "from mibyan.plugins.sources.manifests import read_manifest;"
        "manifest, problem = read_manifest(sys.argv[1], ContentCache()); assert manifest, problem;"
        "print([name for name in ('pydantic', 'importlib.metadata') if name in sys.modules], len(manifest.tools))"
    )
    path = str(tmp_path / "mibyan.json")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout == "[] 1\n"


VALIDATOR = jsonschema_rs.Draft202012Validator(manifest_json_schema())
VALUES: Any = st.sampled_from(
    [None, "", "x", 0, 1, True, 2.5, [], ["a"], {}, {"a": "b"}, [TOOL], {"a": {}}, "a:b", {"": None}, {"": {}}]
)
FLAG_NAMES = st.sampled_from([*keys_of(ToolFlags), "readonly"])


@given(
    st.dictionaries(st.sampled_from(list(FULL)), VALUES, max_size=3), st.dictionaries(FLAG_NAMES, VALUES, max_size=2)
)
def test_the_json_schema_takes_nothing_that_the_model_refuses(changes: dict[str, Any], flags: dict[str, Any]) -> None:
    """plugins.M1: the quick check and the model agree; what only the model takes is left to it."""
    data = {**FULL, **tool(flags=flags), **changes}
    if VALIDATOR.is_valid(data):
        model = ManifestModel.model_validate_json(json.dumps(data), strict=True)
        dumped = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert {k: v for k, v in dumped.items() if v is not None} == {k: v for k, v in data.items() if v is not None}


def test_a_changed_manifest_is_checked_again(tmp_path: Path) -> None:
    """architecture: only content is cached, by time of change and size."""
    path, cache = tmp_path / "plugin.yaml", ContentCache()
    path.write_text("id: one\n")
    assert read_manifest(path, cache)[0] == Manifest(id="one")
    path.write_text("id: three\n")
    assert read_manifest(path, cache)[0] == Manifest(id="three")


def test_a_manifest_of_a_stranger_is_known_by_its_bytes(tmp_path: Path) -> None:
    """plugins.S1: for project files a forged time of change doesn't bring back an earlier content."""
    import os

    path, cache = tmp_path / "plugin.yaml", ContentCache()
    path.write_text("id: one\n")
    status = path.stat()
    assert read_manifest(path, cache, by_bytes=True)[0] == Manifest(id="one")
    path.write_text("id: two\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read_manifest(path, cache, by_bytes=True)[0] == Manifest(id="two")


def kept_manifest(home: Path) -> tuple[Path, ContentCache]:
    """A manifest that the cache in `home` has."""
    path, cache = home / "plugin.yaml", ContentCache.of_home(home)
    path.write_text("id: weather\n")
    while stamp(path) is None:  # it has only just been written
        time.sleep(0.001)
    assert read_manifest(path, cache)[0] == Manifest(id="weather")
    cache.save()
    return path, cache


def test_a_broken_cache_is_an_empty_cache(tmp_path: Path) -> None:
    """A cache is never an error: what can't be read is computed again, and written again."""
    path, _ = kept_manifest(tmp_path)
    kept = tmp_path / "cache" / "discovery.bin"
    whole = kept.read_bytes()
    for content in (b"", b"{}", whole[:-1], whole[:20], whole[:-3] + b"\0\0\0", b"mibyan 0.0.0 x\n" + whole):
        kept.write_bytes(content)
        cache = ContentCache.of_home(tmp_path)
        assert read_manifest(path, cache)[0] == Manifest(id="weather")
        cache.save()
        assert f"manifest:{path}" in ContentCache.of_home(tmp_path)._kept._loaded()


@pytest.mark.parametrize("value", [3, [], {}, {"data": 3, "warnings": []}, {"data": {"tools": 3}, "warnings": []}])
def test_a_wrong_cache_entry_is_computed_again(tmp_path: Path, value: Any) -> None:
    """A cache that somebody edited doesn't break the reading of a manifest."""
    path, cache = kept_manifest(tmp_path)
    key = f"manifest:{path}"
    cache._kept._loaded()[key] = (cache._kept._loaded()[key][0], value)
    assert read_manifest(path, cache)[0] == Manifest(id="weather")


def test_a_cache_without_a_home_is_not_written(tmp_path: Path) -> None:
    """Looking for plugins doesn't create a home that isn't there."""
    (tmp_path / "plugin.yaml").write_text("id: weather\n")
    cache = ContentCache(tmp_path / "home" / "cache" / "discovery.bin")
    read_manifest(tmp_path / "plugin.yaml", cache)
    cache.save()
    assert not (tmp_path / "home").exists()


def test_a_cache_that_cant_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    """A read-only home is no error for those who only look."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    (tmp_path / "plugin.yaml").write_text("id: weather\n")
    cache = ContentCache(tmp_path / "cache" / "discovery.bin")
    assert read_manifest(tmp_path / "plugin.yaml", cache)[0] == Manifest(id="weather")
    cache.save()
