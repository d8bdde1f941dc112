"""The named experiments: a module for each paper, which registers them."""
