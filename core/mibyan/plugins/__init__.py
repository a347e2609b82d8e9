"""Plugins: where tools come from: found, loaded as transactions, imported when used, unloaded without a trace."""
