"""Runs the rounds in pfl-research's simulation: one process with two threads.

It runs one round per line of standard input, and prints the time at its end.
"""

import argparse
import sys
import time

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm import FederatedAveraging, NNAlgorithmParams
from pfl.callback.base import TrainingProcessCallback
from pfl.data import FederatedDataset
from pfl.data.dataset import Dataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch_model import batch_loss, batches, build_model, make_clients

# isort: split
# torch_model makes it importable.
from shapes import RATE, add_arguments, get_shape


class Model(torch.nn.Module):
    """The model with the two methods that pfl calls."""

    def __init__(self, shape):
        super().__init__()
        self.layers = build_model(shape)

    def loss(self, x, y):
        """Returns the loss of a batch."""
        return batch_loss(self.layers, x, y)

    def metrics(self, x, y):
        """Predicts nothing: only pfl evaluates in its first round."""
        return {"examples": Weighted(len(y), 1)}


class Shuffled(Dataset):
    """A client that shuffles its examples in each epoch, as in the other contenders."""

    def iter(self, batch_size):
        """Yields the batches of an epoch."""
        return batches(*self.raw_data, batch_size)


class EndOfRound(TrainingProcessCallback):
    """Prints the time."""

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        """Runs at the end of a round."""
        print(time.perf_counter(), flush=True)
        return False, Metrics()


def main():
    """Runs the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    shape = get_shape(parser.parse_args())
    torch.set_num_threads(2)
    module, clients = Model(shape), make_clients(shape)
    data = FederatedDataset(
        lambda k: Shuffled(clients[k], user_id=str(k)),
        get_user_sampler("minimize_reuse", list(range(shape.clients))),
    )
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=len(sys.stdin.readlines()),
            evaluation_frequency=1_000_000,
            train_cohort_size=shape.clients,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(data, data, [WeightByDatapoints()]),
        model=PyTorchModel(
            module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0)
        ),
        model_train_params=NNTrainHyperParams(
            local_batch_size=shape.batch_size or None,
            local_num_epochs=shape.epochs,
            local_learning_rate=RATE,
        ),
        callbacks=[EndOfRound()],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    main()
