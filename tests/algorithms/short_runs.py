"""Short runs of the algorithms of an experiment."""

from tff_pmc.experiments.experiment import EXPERIMENTS, settings


def runs_of(experiment, *algorithms, **changes):
    """Returns the settings of an experiment's rows, or of the named algorithms'."""
    entry = EXPERIMENTS[experiment]
    rows = [r for r in (*entry.rows, *entry.on_demand) if r.algorithm in algorithms]
    short = {"rounds": 2, "local_epochs": 1, **changes}
    return [settings(experiment, {**row.values, **short}) for row in rows or entry.rows]


def run_all(runs, data, folder):
    """Runs all of some settings on the same data."""
    from tff_pmc.experiments.running import sweep

    return sweep.run_all(runs, lambda settings: data, str(folder))


def built(config, data):
    """Builds the rounds of a run's algorithm."""
    from tff_pmc.algorithms.run_context import RunContext

    return config.algorithm.build_trainer(RunContext.from_settings(config, data))
