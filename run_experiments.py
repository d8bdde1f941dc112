"""Runs prioritized multi-criteria federated training and makes its tables.

  python run_experiments.py --experiment=quickstart
  python run_experiments.py --flagfile=experiments/pmc_table4.flags --data_dir=DIR
  python run_experiments.py --experiment=mnist_noniid --priority=DS --rounds=30
  python run_experiments.py --experiment=quickstart --inspect

Each flag left out keeps the value of the named experiment.
"""

import os
import sys
import time
import warnings

if sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11)):
    sys.exit(
        "run_experiments.py: TensorFlow Federated needs Python 3.9, 3.10 or 3.11, and "
        f"this is {sys.version.split()[0]}; run `make quickstart PYTHON=python3.11`"
    )

from absl import flags

from tff_pmc.experiments import config as config_lib

FLAGS = flags.FLAGS
EXIT_BAD_INPUT = 2

flags.DEFINE_string(
    "experiment", "quickstart", "One of: " + ", ".join(config_lib.EXPERIMENTS) + "."
)
flags.DEFINE_multi_string(
    "priority",
    None,
    "An ordering of criteria, most important first, as DS or LD,DS,MD; or all: each "
    "criterion alone and every ordering. May be repeated: each is one run. DS is "
    "federated averaging.",
)
flags.DEFINE_string("criteria", None, "The criteria the clients measure, as DS,LD,MD.")
flags.DEFINE_integer("rounds", None, "Communication rounds.")
flags.DEFINE_float(
    "clients_per_round", None, "Clients in a round; below 1, a fraction of all."
)
flags.DEFINE_integer("local_epochs", None, "Local epochs, E.")
flags.DEFINE_integer("batch_size", None, "Local batch size, B; 0 is full batch.")
flags.DEFINE_float("learning_rate", None, "The clients' learning rate.")
flags.DEFINE_float(
    "server_learning_rate", None, "The server's rate; 1 takes the weighted mean."
)
flags.DEFINE_string(
    "conv_activation", None, "Activation of the convolutions: relu or none."
)
flags.DEFINE_string(
    "initializer", None, "Initial kernels: glorot_uniform or glorot_normal."
)
flags.DEFINE_integer("seed", None, "Sets the four seeds below at once.")
for _name in ("partition", "model", "cohort", "batch"):
    flags.DEFINE_integer(f"{_name}_seed", None, f"Seed of the {_name}.")
flags.DEFINE_integer("num_shards", None, "Placements the cohort is packed into.")
flags.DEFINE_string(
    "data_dir", None, "Where the data is (mnist: idx .gz files or mnist.npz)."
)
flags.DEFINE_string(
    "output_dir", None, "A new folder for the results; default runs/EXPERIMENT-TIME."
)
flags.DEFINE_bool(
    "inspect",
    False,
    "Describe the federation and each ordering's weights on the first cohorts; train "
    "nothing beyond what the criteria need.",
)
flags.DEFINE_bool(
    "private_worker",
    True,
    "Run TFF's worker in a network namespace of its own, so that nothing listens.",
)


def main(argv):
    """Parses the command line and runs; returns the exit code."""
    if any(argument in ("--help", "-help", "-h", "--helpfull") for argument in argv):
        print(__doc__)
        print(FLAGS.module_help(sys.modules[__name__]))
        return 0
    try:
        rest = FLAGS(argv)[1:]
        if rest:
            raise config_lib.ConfigError(f"unexpected argument: {rest[0]}")
        config, orders = parse()
    except (flags.Error, config_lib.ConfigError) as error:
        return fail(error, EXIT_BAD_INPUT)
    return execute(config, orders)


def parse():
    """The settings and the orderings that the flags ask for."""
    names = (
        *("rounds", "clients_per_round", "local_epochs", "batch_size"),
        *("learning_rate", "server_learning_rate", "conv_activation", "initializer"),
        "num_shards",
    )
    overrides = {name: FLAGS[name].value for name in names}
    for name in ("partition_seed", "model_seed", "cohort_seed", "batch_seed"):
        own = FLAGS[name].value
        overrides[name] = FLAGS.seed if own is None else own
    if FLAGS.criteria is not None:
        overrides["criteria"] = config_lib.parse_codes("criteria", FLAGS.criteria)
        overrides["priority"] = overrides["criteria"][:1]
    config = config_lib.settings(FLAGS.experiment, overrides)
    if FLAGS.priority is None:
        return config, [config.priority]
    orders = config_lib.parse_priorities(FLAGS.priority, config.criteria)
    for order in orders:  # Each is checked before the first one runs.
        config = config_lib.settings(FLAGS.experiment, {**overrides, "priority": order})
    return config, orders


def execute(config, orders):
    """Loads the data and runs; imports TensorFlow and TFF only here."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Noise of a library that TFF imports; nothing a user could act on.
    warnings.filterwarnings("ignore", message=".*pkg_resources.*")
    import leaf_data
    from tff_pmc.experiments import inspection, suite
    from tff_pmc.runtime import Runtime, WorkerDiedError, WorkerStartError

    output_dir = FLAGS.output_dir or os.path.join(
        "runs", f"{config.experiment}-{time.strftime('%Y%m%d-%H%M%S')}"
    )
    try:
        data = suite.load_data(config, FLAGS.data_dir)
        if FLAGS.inspect:
            print(inspection.inspect(config, data, private=FLAGS.private_worker))
            return 0
        print(data.describe(), flush=True)
        with Runtime(private=FLAGS.private_worker):
            tables = suite.run_all(config, orders, data, output_dir)
        print(f"\n{tables}\n\nResults, records and plot: {output_dir}", flush=True)
        return 0
    except (config_lib.ConfigError, leaf_data.DataError) as error:
        return fail(error, EXIT_BAD_INPUT)
    except (WorkerDiedError, WorkerStartError) as error:
        return fail(error, 1)
    except KeyboardInterrupt:
        return fail(f"interrupted; what was recorded is in {output_dir}", 130)


def fail(error, code):
    """Reports an error in one line on stderr; returns the exit code."""
    line = " ".join(str(error).split())
    print(f"run_experiments.py: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv))
    except BrokenPipeError:  # `| head` has read enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
