"""`mibyan plugins new`: a project for a plugin, from the template."""

from __future__ import annotations
