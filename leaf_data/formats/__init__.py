"""Readers of file formats, and the places where files are looked for."""
