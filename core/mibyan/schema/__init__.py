"""Schemas: JSON text, tool schemas, coercion, validation, signatures, and the providers' formats."""
