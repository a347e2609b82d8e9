"""Reading shell commands: the tree that a real parser gives, its words as far as they are known, what runs in the end."""

from __future__ import annotations
