"""Runs the rounds in Flower's simulation: two clients at a time, one thread each.

It runs one round per line of standard input, and prints the time at its end.
`run_simulation` is deprecated in favor of a command, which would need a project folder
and start the same engine.
"""

import argparse
import os
import sys
import time

# Flower and Ray report no usage.
os.environ.update(FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch_model import build_model, make_clients, train

# isort: split
# torch_model makes it importable.
from shapes import add_arguments, get_shape


def build_client_app(shape):
    """Builds the app that trains one client in a worker of Ray."""
    app = ClientApp()

    @app.train()
    def train_client(message, context):
        torch.set_num_threads(1)
        x, y = make_clients(shape)[context.node_config["partition-id"]]
        model = build_model(shape)
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        train(model, x, y, shape)
        content = {
            "arrays": ArrayRecord(model.state_dict()),
            "metrics": MetricRecord({"num-examples": len(y)}),
        }
        return Message(content=RecordDict(content), reply_to=message)

    return app


def build_server_app(shape, rounds):
    """Builds the app that averages the clients' models."""
    app = ServerApp()

    def print_time(number, arrays):
        if number:
            print(time.perf_counter(), flush=True)

    @app.main()
    def main(grid, context):
        strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=shape.clients)
        strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord(build_model(shape).state_dict()),
            num_rounds=rounds,
            evaluate_fn=print_time,
        )

    return app


def main():
    """Runs the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    shape = get_shape(parser.parse_args())
    run_simulation(
        build_server_app(shape, len(sys.stdin.readlines())),
        build_client_app(shape),
        num_supernodes=shape.clients,
        backend_config={
            "init_args": {"num_cpus": 2},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )


if __name__ == "__main__":
    main()
