"""The shapes of rounds that `round.py` measures."""

import collections

Shape = collections.namedtuple(
    "Shape", "model clients examples batch_size epochs", defaults=[5]
)
SHAPES = {
    "mnist_full": Shape("mnist", 10, 500, 0),
    "mnist_batch": Shape("mnist", 10, 50, 10),
    "femnist": Shape("femnist", 10, 140, 10),
    "celeba": Shape("celeba", 417, 19, 0),
    # What a round costs beside the training: one step a client.
    "mnist_fixed": Shape("mnist", 10, 10, 0, 1),
    "femnist_fixed": Shape("femnist", 10, 10, 0, 1),
}
RATE = 0.05
CONTENDERS = ("seven sums", "one sum", "worker", "bare loop", "fed_avg", "pytorch")


def add_arguments(parser):
    """Adds the arguments that describe a shape and what trains it."""
    parser.add_argument("--shape", choices=SHAPES, default="mnist_full")
    parser.add_argument("--clients", type=int, help="by default the shape's")
    parser.add_argument("--epochs", type=int, help="by default the shape's")
    parser.add_argument("--num_packs", type=int, default=2)


def shape_of(options):
    """Returns the shape that the arguments describe."""
    given = {name: getattr(options, name) for name in ("clients", "epochs")}
    return SHAPES[options.shape]._replace(
        **{name: value for name, value in given.items() if value}
    )
