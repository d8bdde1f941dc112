"""The part of `against_reference_code.py` that runs the authors' code.

It loads their modules from a copy of sisinflab/ClientAware-FL and runs them unchanged,
except for the corrections in memory that `against_reference_code.py` describes.
"""

import importlib.util
import pathlib
import sys

import numpy as np
import tensorflow as tf

PARTS = ("Server", "Client", "Model")
FOLDERS = {"mnist": "MNIST", "celeba": "CelebA"}  # In their repository.


class Reference:
    """Their server and clients on one data set."""

    def __init__(self, repo, name, config, examples):
        parts = {part: load(repo, FOLDERS[name], part) for part in PARTS}
        self._make_server = parts["Server"].Server
        self._make_model = parts["Model"].Model
        self._name, self._config = name, config
        self._model = self._build_corrected_model()
        self._initial = self._model.get_weights()
        shared = (
            self._build_corrected_model() if name == "celeba" else None
        )  # As they do.
        self._clients = []
        for k in range(examples.num_clients):
            data = to_their_format(name, examples.client(k))
            # Each set is training and test set: nothing is evaluated.
            client = parts["Client"].Client(
                shared or self._build_corrected_model(), *data
            )
            client.place = k
            remember_trained(client)
            self._clients.append(client)

    def _build_corrected_model(self):
        rate = self._config.training.learning_rate
        model = self._make_model(rate, *([64] if self._name == "celeba" else []))
        model.optimizer.learning_rate = rate
        for layer in model.layers:
            if isinstance(layer, tf.keras.layers.Dropout):
                layer.rate = 0.0
        return model

    def start_server(self, index, config):
        """Creates a server with ordering `index` and the settings' initial weights."""
        ours = config.model.build().initial_weights[0]
        self._model.set_weights(self._initial)
        for variable, value in zip(averaged_variables(self._model), ours):
            variable.assign(value)
        mnist_arguments = (
            (False,) if self._name == "mnist" else ()
        )  # MNIST's argument `iid`.
        size = len(self._clients)
        self._server = self._make_server(
            self._model,
            None,  # Full batch.
            config.training.local_epochs,
            config.training.clients_per_round,
            size,
            *mnist_arguments,
            config.training.learning_rate,
            index,
        )
        compute_p = self._server._Server__compute_p

        def keep_p(criteria):
            self._p = compute_p(criteria)
            return self._p

        self._server._Server__compute_p = keep_p

    def weights(self):
        """Returns the weights of the server's model that the server averages."""
        return values(self._model)

    def next(self):
        """Runs one round; returns the cohort, its weights p_k and trained models."""
        self._server._Server__round_train(self._clients)
        for layer in self._model.layers:
            if isinstance(layer, tf.keras.layers.BatchNormalization):
                frozen = zip(layer.get_weights(), (1, 0, 0, 1))
                if any((value != constant).any() for value, constant in frozen):
                    sys.exit("their server's batch normalization is not frozen")
        # They shuffle the list in place and train the first clients.
        cohort = self._clients[: len(self._p)]
        return [c.place for c in cohort], self._p, [c.trained for c in cohort]


def load(repo, folder, part):
    """Loads one of their modules, which have the same names in every folder."""
    path = pathlib.Path(repo, folder, f"{part}.py")
    spec = importlib.util.spec_from_file_location(f"reference_{folder}_{part}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_repo(parser, repo):
    """Exits with one line unless the folder has the files of their repository."""
    for folder in FOLDERS.values():
        for part in PARTS:
            path = pathlib.Path(repo, folder, f"{part}.py")
            what = "class Server" if part == "Server" else part
            if not path.is_file() or what not in path.read_text(errors="replace"):
                parser.exit(
                    2,
                    f"--reference_repo={repo} is not a copy of "
                    f"sisinflab/ClientAware-FL: {folder}/{part}.py is missing, or "
                    "another file\n",
                )


def to_their_format(name, part):
    """Returns a client's examples twice, in the format of their preparation.py."""
    x = part["x"].astype("float32") / 255
    if name == "mnist":
        return (x[..., np.newaxis], np.eye(10, dtype="float32")[part["y"]]) * 2
    return ([x, 1 - part["sharp"], part["y"]],) * 2  # Blurry is 1.


def remember_trained(client):
    """Keeps a client's trained values, because on CelebA all share one model object."""
    update = client.update

    def update_and_keep(*arguments):
        update(*arguments)
        client.trained = values(client.model)

    client.update = update_and_keep


def averaged_variables(model):
    """Returns the variables that their server averages: kernel and bias of layers.

    For batch normalization, which has four variables, their server fails and continues.
    """
    return [
        v for layer in model.layers if len(layer.weights) == 2 for v in layer.weights
    ]


def values(model):
    """Returns the values of these variables."""
    return [variable.numpy() for variable in averaged_variables(model)]
