"""Where plugins are found: a module for each source, and what they share."""
