"""The shapes of rounds that `round.py` and `peers.py` measure, and their data."""

import collections

import numpy as np

Shape = collections.namedtuple(
    "Shape", "model clients examples batch_size epochs", defaults=[5]
)
SHAPES = {
    "mnist_full": Shape("mnist", 10, 500, 0),
    "mnist_batch": Shape("mnist", 10, 50, 10),
    "femnist": Shape("femnist", 10, 140, 10),
    "celeba": Shape("celeba", 417, 19, 0),
    "shakespeare": Shape("shakespeare", 10, 128, 10, 1),
    "mnist_100": Shape("mnist", 100, 50, 10),
    # The cost of a round besides training: one step per client.
    "mnist_fixed": Shape("mnist", 10, 10, 0, 1),
    "femnist_fixed": Shape("femnist", 10, 10, 0, 1),
}
RATE = 0.05
# A model's inputs, classes and parameters, in TensorFlow as in PyTorch.
MODELS = {
    "mnist": ((28, 28), 10, 1_663_370),
    "femnist": ((28, 28), 62, 6_603_710),
    "celeba": ((64, 64, 3), 2, 8_409_025),
    "shakespeare": ((80,), 80, 817_872),
}
CONTENDERS = ("seven sums", "one sum", "worker", "bare loop", "fed_avg", "pytorch")


def add_arguments(parser):
    """Adds the arguments that describe a shape and its training."""
    parser.add_argument("--shape", choices=SHAPES, default="mnist_full")
    parser.add_argument("--clients", type=int, help="by default the shape's")
    parser.add_argument("--epochs", type=int, help="by default the shape's")
    parser.add_argument("--num_packs", type=int, default=2)


def add_turns(parser, contenders, turns):
    """Adds the arguments that choose the contenders and the number of turns."""
    parser.add_argument("--turns", type=int, default=turns)
    parser.add_argument(
        "--only",
        action="append",
        choices=contenders,
        help="measure this contender; may be repeated",
    )


def get_shape(options):
    """Returns the shape that the arguments describe."""
    changes = {name: getattr(options, name) for name in ("clients", "epochs")}
    return SHAPES[options.shape]._replace(
        **{name: value for name, value in changes.items() if value}
    )


def format_arguments(options):
    """Returns the arguments of `add_arguments` as flags for another process."""
    names = ("shape", "clients", "epochs", "num_packs")
    arguments = {name: getattr(options, name) for name in names}
    return [f"--{name}={value}" for name, value in arguments.items() if value]


def make_data(shape):
    """Creates random images, or letters, and labels, as costly as real ones."""
    size, classes, _ = MODELS[shape.model]
    generator = np.random.default_rng(0)
    total = shape.clients * shape.examples
    levels, dtype = (classes, np.int32) if len(size) == 1 else (256, np.uint8)
    inputs = generator.integers(0, levels, (total, *size), dtype=dtype)
    return inputs, generator.integers(0, classes, total).astype(np.int32)


def check_parameters(shape, parameters):
    """Ends the process if a model has another number of parameters than expected."""
    if parameters != MODELS[shape.model][2]:
        raise SystemExit(f"{shape.model} has {parameters:,} parameters here")
