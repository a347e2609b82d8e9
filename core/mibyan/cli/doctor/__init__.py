"""`mibyan doctor`: what is looked at, a module for each thing; nothing of a plugin is imported."""
