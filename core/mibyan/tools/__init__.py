"""Tools: entries, the registry, availability."""
