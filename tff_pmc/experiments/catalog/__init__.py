"""The named experiments, a module for each paper; each registers its own."""
