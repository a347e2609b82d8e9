"""`KeptSchema`: a schema as bytes, which are read when somebody asks for it; a listing asks for none."""

from __future__ import annotations

import marshal
from typing import Any

from mibyan.schema.frozen import FrozenDict, freeze


class KeptSchema:
    """A schema that was checked before.

    Args:
        content: What `content_of` gave; from a file that is this user's own.
        description: The schema's own text for the model.
    """

    __slots__ = ("_built", "_content", "description")

    def __init__(self, content: bytes, description: str) -> None:
        self._content = content
        self._built: FrozenDict | None = None
        self.description = description

    def __call__(self) -> FrozenDict:
        """The schema, read-only."""
        if self._built is None:
            self._built = freeze(marshal.loads(self._content))  # noqa: S302 - see `content`
        return self._built

    def __eq__(self, other: object) -> bool:
        return self() == (other() if isinstance(other, KeptSchema) else other)

    __hash__ = None  # type: ignore[assignment] # it stands for a dict


def content_of(schema: dict[str, Any]) -> bytes:
    """Plain JSON data as bytes for `KeptSchema`."""
    return marshal.dumps(schema, 4)
