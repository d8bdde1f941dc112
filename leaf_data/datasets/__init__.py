"""The data sets: a module or a folder for each registered name."""
