"""`mibyan plugins install` and `uninstall`: by the installer of the environment itself."""

from __future__ import annotations
