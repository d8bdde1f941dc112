"""The loop that a user of PyTorch would write: a contender, as `tff_round.py` is.

    python torch_loop.py --shape=mnist_batch

For each client the model's weights are loaded, `torch.optim.SGD` steps through batches
of a new random order in each epoch, and the mean of the trained weights is kept.
"""

import argparse
import copy
import sys
import time

import torch
from torch_model import clients_of, model_of, train

# isort: split
# Found through torch_model.
from shapes import add_arguments, get_shape


def one_round(server, shape):
    """Trains all clients from the server's model, which becomes their mean."""
    model = copy.deepcopy(server)
    mean = [torch.zeros_like(p) for p in server.parameters()]
    for x, y in clients_of(shape):
        model.load_state_dict(server.state_dict())
        train(model, x, y, shape)
        for total, trained in zip(mean, model.parameters()):
            total += trained.detach() / shape.clients
    with torch.no_grad():
        for old, new in zip(server.parameters(), mean):
            old.copy_(new)


def main():
    """Answers each line of standard input with the seconds of a round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    shape = get_shape(parser.parse_args())
    torch.manual_seed(0)
    server = model_of(shape)
    clients_of(shape)
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        one_round(server, shape)
        print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
    main()
