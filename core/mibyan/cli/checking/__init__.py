"""`mibyan plugins check`: whether a plugin is fit to be published, found out without harm to whoever asks (plugins.W3)."""
