"""What `mibyan doctor` looks at in each plugin, a module for each thing; nothing of a plugin is imported (plugins.W6)."""
