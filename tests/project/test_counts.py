"""The regression of docs/adafed.md: AdaFed and the client that miscounts."""

import importlib.util
import sys

import numpy as np
import pytest
from commands import ROOT, python, rows
from scipy import signal

FOLDER = ROOT / "docs" / "examples" / "counts"


@pytest.fixture(scope="module")
def runs_of_blobs(tmp_path_factory):
    """A folder of two rounds, and the output of this run and of a refused command."""
    folder = tmp_path_factory.mktemp("counts") / "out"
    plugin = ["--plugin=blobs", "--experiment=blobs", "--algorithms=adafed"]
    without_labels = [
        "--plugin=blobs",
        "--dataset=blobs",
        "--model=heat_map",
        plugin[-1],
    ]
    commands = [
        [*plugin, "--rounds=2", f"--output_dir={folder}"],
        [*without_labels, "--criteria=ACC,DS", f"--output_dir={folder}_no"],
    ]
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n"
        "import run_experiments\n"
        f"for words in {commands!r}:\n"
        "    print(run_experiments.main(['run_experiments.py', *words]), flush=True)\n"
    )
    done = python("-c", code, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture(scope="module")
def blobs():
    """The example's module, which registers nothing in this process."""
    from declared_settings import Registry
    from tff_pmc.experiments import experiment  # noqa: F401

    path = FOLDER / "blobs.py"
    spec = importlib.util.spec_from_file_location("blobs_of_a_test", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Registry, "register", lambda *arguments: None)
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
    return module


def counted(weights, pictures):
    """Computes the counts of the example's model in NumPy."""
    kernel, bias, last_kernel, (last_bias,) = (np.asarray(w, float) for w in weights)
    counts = []
    for picture in pictures / 255.0:
        heat = np.full(picture.shape, last_bias)
        for channel in range(len(bias)):
            hidden = signal.correlate2d(picture, kernel[:, :, 0, channel], "same")
            hidden = np.maximum(hidden + bias[channel], 0)
            heat += signal.correlate2d(hidden, last_kernel[:, :, channel, 0], "same")
        counts.append(heat.sum() / len(picture))
    return np.array(counts)


def test_the_weight_of_the_client_that_miscounts_equals_numpy(
    runs_of_blobs, blobs, runtime
):
    """Here each client trains alone, and its model counts the server's pictures."""
    import tensorflow_federated as tff

    import tff_pmc

    data = blobs.Blobs().load()
    process = tff_pmc.build_prioritized_fed_avg(
        blobs.HeatMap().build(),
        criteria=("DS",),
        client_optimizer_fn=tff.learning.optimizers.build_adam(0.01),
        local_epochs=2,
        batch_size=10,
    )
    server, qualities = data.server_examples, []
    for client in range(data.train_examples.num_clients):
        packs = tff_pmc.pack(data.train_examples, [client])
        state = process.next(process.initialize(), packs).state
        trained = process.get_model_weights(state).trainable
        error = np.abs(counted(trained, server.x) - server.y) / server.y
        qualities.append(1 / error.mean())
    cohort = rows(runs_of_blobs[0] / "adafed" / "cohort.csv")
    columns = np.array([(row["MAPE"], row["weight"]) for row in cohort], float)
    first, second = np.split(columns, 2)
    np.testing.assert_allclose(first[:, 0], qualities, rtol=2e-3)
    for raw, weights in (first.T, second.T):
        np.testing.assert_allclose(weights, raw / raw.sum(), rtol=1e-4)
        assert weights.argmin() == blobs.MISCOUNTS and weights.min() < 0.1


def test_accuracy_is_rejected_before_a_folder_is_made(runs_of_blobs):
    folder, done = runs_of_blobs
    codes = [line for line in done.stdout.splitlines() if line in ("0", "2")]
    assert codes == ["0", "2"]
    line = done.stderr.splitlines()[-1]
    assert "ACC needs classes, and blobs is a regression data set" in line
    assert not folder.with_name("out_no").exists()
