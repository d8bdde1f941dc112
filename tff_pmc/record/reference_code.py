"""To be written."""
def holds_runs(path): return False
def read(path): raise NotImplementedError
