"""Tables and pages of runs: each module registers its report."""
