"""The engine `cluster`: Dask's workers compute the packs of a round, or whole runs.

Without a cluster only the options of this folder are imported, because they are flags.
Two lines of the package name the folder: the engine in `runtime/__init__.py` and the
flags in `experiments/flags/command.py`. Without these lines and the folder, everything
else works.
"""
