"""The models of `tff_pmc.models` in PyTorch, and how each peer trains a client."""

import functools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import torch
from shapes import MODELS, RATE, check_parameters, make_data

# A model's channels, the size of its kernels, and its dense units.
LAYERS = {
    "mnist": (1, 5, (512, 10)),
    "femnist": (1, 5, (2048, 62)),
    "celeba": (3, 3, (512, 1)),
}


class StackedLstm(torch.nn.Module):
    """LEAF's stacked LSTM, with PyTorch's fused cells.

    These add two biases, of which the second stays zero, as ours have one.
    """

    def __init__(self, letters):
        """Creates the layers."""
        super().__init__()
        self.embedding = torch.nn.Embedding(letters, 8)
        self.lstm = torch.nn.LSTM(8, 256, num_layers=2, batch_first=True)
        self.dense = torch.nn.Linear(256, letters)
        for name, weight in self.lstm.named_parameters():
            if name.startswith("bias_hh"):
                torch.nn.init.zeros_(weight).requires_grad_(False)

    def forward(self, x):
        """Returns the scores of the next letter."""
        return self.dense(self.lstm(self.embedding(x))[0][:, -1])


def count_trained(model):
    """Returns the number of parameters that are trained."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def build_model(shape):
    """Builds the model, whose convolutions are linear, as in ours by default."""
    if shape.model == "shakespeare":
        model = StackedLstm(MODELS[shape.model][1])
        check_parameters(shape, count_trained(model))
        return model
    channels, kernel, (units, outputs) = LAYERS[shape.model]
    side = MODELS[shape.model][0][0] // 4
    model = torch.nn.Sequential(
        torch.nn.Conv2d(channels, 32, kernel, padding="same"),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, kernel, padding="same"),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(side * side * 64, units),
        torch.nn.ReLU(),
        torch.nn.Linear(units, outputs),
    )
    check_parameters(shape, count_trained(model))
    return model


# Cached, because a worker of Ray trains one client after another.
@functools.lru_cache(maxsize=1)
def make_clients(shape):
    """Returns each client's images, as bytes, or letters, and labels."""
    x, y = (torch.from_numpy(array) for array in make_data(shape))
    if x.ndim > 2:
        x = x[:, None] if x.ndim == 3 else x.permute(0, 3, 1, 2).contiguous()
    return list(zip(x.split(shape.examples), y.long().split(shape.examples)))


def batches(x, y, size):
    """Yields the batches of an epoch, whose examples are shuffled."""
    for batch in torch.randperm(len(y)).split(size or len(y)):
        yield x[batch], y[batch]


def batch_loss(model, x, y):
    """Returns the loss of a batch; a single output is a logit."""
    outputs = model(x.float() / 255 if x.ndim > 2 else x)
    if outputs.shape[1] == 1:
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        return loss(outputs[:, 0], y.float())
    return torch.nn.functional.cross_entropy(outputs, y)


def train(model, x, y, shape):
    """Trains the model on one client's examples."""
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for _ in range(shape.epochs):
        for batch in batches(x, y, shape.batch_size):
            optimizer.zero_grad()
            batch_loss(model, *batch).backward()
            optimizer.step()
