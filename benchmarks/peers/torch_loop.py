"""The same clients' training as in `round.py`, in PyTorch: a process of its own.

    python torch_loop.py --model=mnist --clients=10 --examples=50 --batch_size=10

It makes its data, says `ready`, and answers every line of standard input with the
seconds that one round took. A round is what a user of PyTorch would write: for each
client, the model's weights are loaded, `torch.optim.SGD` steps through batches of a
new random order in each epoch, and the mean of the trained weights is kept.
"""

import argparse
import copy
import sys
import time

import torch

RATE = 0.05


def digit_cnn(units, classes):
    """`tff_pmc.models.mnist_cnn` (512 units, 10 classes), `femnist_cnn` (2048, 62)."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 5, padding=2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 5, padding=2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(7 * 7 * 64, units),
        torch.nn.ReLU(),
        torch.nn.Linear(units, classes),
    )


def face_cnn():
    """`tff_pmc.models.celeba_cnn`, with two scores in the place of one logit."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 16 * 64, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, 2),
    )


# The model, the shape of its images and the number of classes.
MODELS = {
    "mnist": (lambda: digit_cnn(512, 10), (1, 28, 28), 10),
    "femnist": (lambda: digit_cnn(2048, 62), (1, 28, 28), 62),
    "celeba": (face_cnn, (3, 64, 64), 2),
}


def train(model, x, y, batch_size, epochs):
    """Trains the model on one client's examples, bytes of images and labels."""
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(batch_size):
            optimizer.zero_grad()
            loss(model(x[batch].float() / 255), y[batch]).backward()
            optimizer.step()


def one_round(server, clients, batch_size, epochs):
    """Trains all clients from the server's model, which becomes their mean."""
    model = copy.deepcopy(server)
    mean = [torch.zeros_like(p) for p in server.parameters()]
    for x, y in clients:
        model.load_state_dict(server.state_dict())
        train(model, x, y, batch_size, epochs)
        for total, trained in zip(mean, model.parameters()):
            total += trained.detach() / len(clients)
    with torch.no_grad():
        for old, new in zip(server.parameters(), mean):
            old.copy_(new)


def main():
    """Answers each line of standard input with the seconds of a round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--batch_size", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    make, shape, classes = MODELS[options.model]
    torch.manual_seed(0)
    server = make()
    clients = [
        (
            torch.randint(0, 256, (options.examples, *shape), dtype=torch.uint8),
            torch.randint(0, classes, (options.examples,)),
        )
        for _ in range(options.clients)
    ]
    size = options.batch_size or options.examples
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        one_round(server, clients, size, options.epochs)
        print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
    main()
