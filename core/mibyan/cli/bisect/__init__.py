"""`mibyan plugins bisect`: which plugins make something go wrong."""

from __future__ import annotations
