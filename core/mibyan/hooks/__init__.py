"""Hooks: what plugins may say about calls, definitions and sessions."""
