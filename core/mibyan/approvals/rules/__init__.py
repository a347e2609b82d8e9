"""The rules by which commands are judged: `book` has them as data, the other modules find what falls under them."""

from __future__ import annotations
