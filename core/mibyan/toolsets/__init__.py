"""Toolsets: which tools a name stands for, what a session gets of them, and the definitions a model is shown."""
