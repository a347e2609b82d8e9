"""Who may say yes."""
