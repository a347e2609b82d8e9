"""What the operator said."""
