"""Why a tool is there or isn't, told from what was decided and from sources that are read, never run (plugins.W5)."""
