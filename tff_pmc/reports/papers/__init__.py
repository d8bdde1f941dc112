"""The published tables and figures, a module for each."""
