"""Runs the loop that a user of PyTorch would write: a contender like `tff_round.py`.

    python torch_loop.py --shape=mnist_batch

For each client it loads the model's weights, steps with `torch.optim.SGD` through
batches of shuffled examples in each epoch, and adds the trained weights to the mean.
"""

import argparse
import copy
import sys
import time

import torch
from torch_model import build_model, make_clients, train

# isort: split
# torch_model makes it importable.
from shapes import add_arguments, get_shape


def run_round(server, shape):
    """Trains all clients from the server's model, which becomes their mean."""
    model = copy.deepcopy(server)
    mean = [torch.zeros_like(p) for p in server.parameters()]
    for x, y in make_clients(shape):
        model.load_state_dict(server.state_dict())
        train(model, x, y, shape)
        for total, trained in zip(mean, model.parameters()):
            total += trained.detach() / shape.clients
    with torch.no_grad():
        for old, new in zip(server.parameters(), mean):
            old.copy_(new)


def main():
    """Runs a round per line of standard input and prints its seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    shape = get_shape(parser.parse_args())
    torch.manual_seed(0)
    server = build_model(shape)
    make_clients(shape)
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        run_round(server, shape)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
