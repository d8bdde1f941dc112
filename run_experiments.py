"""Runs prioritized multi-criteria federated training and makes its tables.

  python run_experiments.py --experiment=quickstart
  python run_experiments.py --flagfile=experiments/pmc_table4.flags --data_dir=DIR
  python run_experiments.py --experiment=mnist_noniid --priority=DS --rounds=30
  python run_experiments.py --experiment=quickstart --inspect

Each flag left out keeps the value of the named experiment.
"""

import os
import signal
import sys
import time

if sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11)):
    sys.exit(
        "run_experiments.py: TensorFlow Federated needs Python 3.9, 3.10 or 3.11, and "
        f"this is {sys.version.split()[0]}; run `make quickstart PYTHON=python3.11`"
    )

from absl import flags

import leaf_data
from tff_pmc.experiments import config as config_lib
from tff_pmc.experiments import flag_definitions, named, parsing
from tff_pmc.experiments.command_line import parse
from tff_pmc.experiments.flag_definitions import FLAGS, SEARCH

EXIT_BAD_INPUT = 2


def main(argv):
    """Parses the command line and runs; returns the exit code."""
    if any(argument in ("--help", "-help", "-h", "--helpfull") for argument in argv):
        print(__doc__)
        print(FLAGS.module_help(flag_definitions))
        return 0
    try:
        rest = FLAGS(argv)[1:]
        if FLAGS.data_dir is not None and not os.path.isdir(FLAGS.data_dir):
            raise config_lib.ConfigError(f"--data_dir={FLAGS.data_dir} is no folder")
        if rest:
            raise config_lib.ConfigError(f"unexpected argument: {rest[0]}")
        if any(FLAGS[name].value for name in ("compare", "export", "tables")):
            return side_by_side()
        table = read_table()
        configs = parse(tuple(table.values))
    except (flags.Error, OSError, ValueError) as error:
        return fail(error, EXIT_BAD_INPUT)
    return execute(configs, table)


def side_by_side():
    """Compares two folders, or writes tables or an export of one; no TensorFlow."""
    if (FLAGS.export or FLAGS.tables) and FLAGS.output_dir is None:
        raise config_lib.ConfigError("--export and --tables need an --output_dir")
    if FLAGS.tables is not None:
        print(made_again())
        return 0
    if FLAGS.export is not None:
        from tff_pmc.reports import reference_export

        reference_export.write(FLAGS.export, FLAGS.output_dir)
        print(f"In the published code's form: {FLAGS.output_dir}")
        return 0
    if len(FLAGS.compare) != 2:
        raise config_lib.ConfigError("--compare names two folders, as A,B")
    from tff_pmc.reports import compare

    chosen = FLAGS["experiment"].present
    targets = named.experiment(FLAGS.experiment).targets if chosen else None
    rows = compare.compare(*FLAGS.compare, targets, strictly_above=reaches_above())
    if FLAGS.output_dir is not None:
        os.makedirs(FLAGS.output_dir, exist_ok=True)
        rows.to_csv(os.path.join(FLAGS.output_dir, "comparison.csv"), index=False)
    print(compare.comparison_text(rows))
    return 0


def reaches_above():
    """Whether a target is reached above it alone, by the flags; None without them."""
    if FLAGS.reach is None and FLAGS.protocol is None:
        return None
    protocol = "above" if FLAGS.protocol == "reference_code" else "at_least"
    return (FLAGS.reach or protocol) == "above"


def made_again():
    """PMC's tables and figure of a folder of runs; returns them as text."""
    from tff_pmc.reports import (
        compare,
        own_settings,
        pmc_figures,
        pmc_paper,
        pmc_tables,
    )

    if FLAGS.experiment not in pmc_paper.PAPER:
        raise config_lib.ConfigError(
            f"--tables: --experiment must be one of {', '.join(pmc_paper.PAPER)}"
        )
    runs = compare.read_runs(FLAGS.tables)
    above = reaches_above()
    if above is None:
        above = own_settings.strictly_above(runs)
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    return "\n\n".join(
        report.write(runs, FLAGS.output_dir, FLAGS.experiment, strictly_above=above)
        for report in (pmc_tables, pmc_figures)
    )


def read_table():
    """The table of client attributes, empty without the flag."""
    if FLAGS.client_table is None:
        return leaf_data.ClientTable()
    return leaf_data.read_client_table(FLAGS.client_table)


def execute(configs, table):
    """Loads the data and runs; imports TensorFlow and TFF only here."""
    config = configs[0]
    output_dir = FLAGS.output_dir or os.path.join(
        "runs", f"{FLAGS.experiment}-{time.strftime('%Y%m%d-%H%M%S')}"
    )
    # An interrupt or a termination leaves by one way, wherever it comes: during the
    # import of TensorFlow, too, whose C code would swallow an exception.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: _leave(n, output_dir))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from tff_pmc.experiments import inspection, rate_search, suite
    from tff_pmc.runtime import Runtime, WorkerDiedError, WorkerStartError

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        if FLAGS.resume and FLAGS.output_dir is None:
            raise config_lib.ConfigError("--resume needs the --output_dir of the run")

        loaded = {}

        def load(settings):
            key = repr((settings.dataset, settings.data_options))
            if key not in loaded:
                loaded.clear()  # One federation at a time is enough memory.
                data = suite.load_data(settings, FLAGS.data_dir, FLAGS.cache_dir)
                loaded[key] = data.with_client_table(table) if table.values else data
            return loaded[key]

        data = load(config)
        if FLAGS.inspect:
            others = [config.resolve_score() for config in configs]
            print(
                inspection.inspect(config, others, data, private=FLAGS.private_worker)
            )
            return 0
        print(data.describe(), flush=True)
        if any(config.two_stage for config in configs):
            print(
                f"--score={config.score} needs the totals first: two aggregations a "
                "round, and every client's update is kept until the second"
            )
        with Runtime(private=FLAGS.private_worker):
            if FLAGS.seeds is not None:
                seeds = parsing.parse_seeds(FLAGS.seeds)
                tables = suite.run_seeds(
                    configs, seeds, load, output_dir, resume=FLAGS.resume
                )
            else:
                searching = FLAGS.experiment == SEARCH
                run = rate_search.search if searching else suite.run_all
                given = data if searching else load
                tables = run(configs, given, output_dir, resume=FLAGS.resume)
        print(f"\n{tables}\n\nResults, records and plot: {output_dir}", flush=True)
        return 0
    except (config_lib.ConfigError, leaf_data.DataError) as error:
        return fail(error, EXIT_BAD_INPUT)
    except BrokenPipeError:
        raise
    except (WorkerStartError, OSError) as error:
        return fail(f"{error}{_recorded(output_dir)}", 1)
    except WorkerDiedError as error:
        fail(f"{error}{_recorded(output_dir)}", 1)
        # The record is closed. An ordinary end would let TFF's finalizers talk to
        # the dead worker, and bury the line above under their tracebacks.
        os._exit(1)
    except Interrupted as error:
        return fail(f"interrupted{_recorded(output_dir)}", 128 + error.number)


class Interrupted(BaseException):
    """A signal asked to stop; what was begun is put in order first."""

    def __init__(self, number):
        """Takes the signal's number."""
        super().__init__(number)
        self.number = number


def _interrupt(number, unused_frame):
    raise Interrupted(number)


def _leave(number, output_dir):
    fail(f"interrupted{_recorded(output_dir)}", 0)
    os._exit(128 + number)  # Nothing has been begun yet.


def _recorded(output_dir):
    """Where the record is and how to go on, if there is one."""
    if FLAGS.inspect or not os.path.exists(os.path.join(output_dir, "run.json")):
        return ""
    return (
        f"; what was recorded is in {output_dir}; the same command with "
        f"--output_dir={output_dir} --resume goes on"
    )


def fail(error, code):
    """Reports an error in one line on stderr; returns the exit code."""
    line = " ".join(str(error).split())
    print(f"run_experiments.py: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv))
    except KeyboardInterrupt:  # Before the flags are read.
        sys.exit(fail("interrupted", 130))
    except BrokenPipeError:  # `| head` has read enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
