"""The plugins that ship with Mibyan; each sub-package is one, with its manifest `mibyan.json` beside its code.

They use only the public API of `mibyan`, and `mibyan` never imports them: it finds them through their manifests,
like any plugin.
"""
