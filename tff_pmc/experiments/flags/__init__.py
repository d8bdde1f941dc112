"""The command line: its flags, built from the declared settings, and its help."""
