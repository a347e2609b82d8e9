"""The JSON Schema of config.yaml, for editors and for `mibyan config schema`."""

from __future__ import annotations

from typing import Any


def json_schema() -> dict[str, Any]:
    """The schema (2020-12) of the home's config.yaml: every key with its kind, its default and its sentence."""
    from pydantic.json_schema import GenerateJsonSchema

    from mibyan.config.model import settings_adapter

    class WithoutTitles(GenerateJsonSchema):
        """The keys' names say what pydantic's titles would."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            del schema
            return False

    schema = settings_adapter().json_schema(schema_generator=WithoutTitles)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "config.yaml of Mibyan"}
