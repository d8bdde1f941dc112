"""The engine `cluster`: packs of a round, or whole runs, are made by Dask's workers.

Without a cluster nothing of this folder is imported but its options, which are
flags. Two lines of the package name it: the engine in `runtime/__init__.py` and the
flags in `experiments/flags/command.py`. Without them and the folder all else works.
"""
