"""The command line: its flags, made of the declared settings, and its help."""
