"""The command line: `mibyan COMMAND …`."""
