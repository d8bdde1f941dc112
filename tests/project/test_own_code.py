"""The modules that docs/own_code.md links to: TFF's programs, q-FedAvg, PyTorch."""

import importlib.util

import numpy as np
import pytest
from commands import ROOT, python, rows

FOLDER = ROOT / "docs" / "examples" / "own_code"
PAGE = (ROOT / "docs" / "own_code.md").read_text("utf-8")


# The example's q-FedAvg with the algorithm of this name.
SAME_BY_NAME = """
import types
import numpy as np
from tff_pmc.algorithms.step_algorithms import QFedAvg

settings = types.SimpleNamespace(
    training=types.SimpleNamespace(learning_rate=rate),
    criterion_codes=["q_fedavg_weight", "q_fedavg_h"],
)
algorithm = QFedAvg(q=q)
by_name = tff_pmc.build_prioritized_fed_avg(
    tff_pmc.models.mnist_cnn(),
    criteria=algorithm.own_criteria(settings),
    score=algorithm.score(settings),
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(rate),
    local_epochs=1,
)
with tff_pmc.Runtime():
    same, metrics = by_name.next(by_name.initialize(), clients)
for one, other in zip(*(s.global_model_weights.trainable for s in (state, same))):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
"""


@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name
)
def test_the_page_links_to_each_example(path):
    assert f"({path.relative_to(ROOT / 'docs')})" in PAGE


@pytest.mark.slow  # A notebook runs one, too.
def test_the_program_resumes(tmp_path):
    for rounds in ("1", "2"):
        done = python(FOLDER / "program.py", tmp_path, rounds, PYTHONPATH=str(ROOT))
        assert done.returncode == 0, done.stderr
    trained, judged = (rows(tmp_path / f"{n}.csv") for n in ("training", "evaluation"))
    assert [row["round"] for row in trained] == ["1", "2"]
    assert [row["model_metrics/examples"] for row in trained] == ["400", "400"]
    assert [row["model_metrics/num_examples"] for row in judged] == ["1000", "1000"]
    first, second = (float(row["model_metrics/accuracy"]) for row in judged)
    assert first < second  # It is judged after each round.
    for name in ("training", "evaluation"):
        assert len(list((tmp_path / "tensorboard" / name).iterdir())) == 2
    assert not done.stderr.count("Traceback")


@pytest.mark.slow
def test_q_fed_avg_equals_the_algorithm_of_this_name():
    code = (FOLDER / "q_fed_avg.py").read_text("utf-8")
    done = python("-c", code + SAME_BY_NAME)
    assert done.returncode == 0, done.stderr


def torch_scores(state, images):
    """What PyTorch makes of the layers of `to_arrays.py`, in its layout, by NumPy."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (5, 5), axis=(2, 3))
    kernels, bias = state["0.weight"], state["0.bias"]
    seen = np.einsum("nihwab,oiab->nohw", windows, kernels) + bias[:, None, None]
    count, channels = seen.shape[:2]
    pooled = np.maximum(seen, 0).reshape(count, channels, 12, 2, 12, 2).max((3, 5))
    flat = pooled.reshape(count, -1)  # Channels first.
    return flat @ state["4.weight"].T + state["4.bias"]


def drawn_state():
    generator = np.random.default_rng(1)
    shapes = {
        **{"0.weight": (8, 1, 5, 5), "0.bias": (8,)},
        **{"4.weight": (10, 8 * 12 * 12), "4.bias": (10,)},
    }
    return {
        name: generator.normal(0, 0.05, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


@pytest.mark.slow
def test_weights_in_pytorchs_layout_give_the_same_scores(tmp_path):
    state = drawn_state()
    images = np.random.default_rng(2).random((3, 1, 28, 28), np.float32)
    scores = torch_scores(state, images)
    np.savez(tmp_path / "cnn.npz", images=images, scores=scores, **state)
    done = python(FOLDER / "from_torch.py", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    difference, loss = (float(line.split()[-1]) for line in done.stdout.splitlines())
    assert difference < 1e-5 < np.abs(scores).max()
    assert 0.5 < loss < 4


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no PyTorch here")
def test_pytorch_agrees_with_numpy(tmp_path):
    done = python(FOLDER / "to_arrays.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "cnn.npz") as saved:
        state = {name: saved[name] for name in saved.files}
    assert {name: state[name].shape for name in drawn_state()} == {
        name: array.shape for name, array in drawn_state().items()
    }
    scores = torch_scores(state, state["images"])
    np.testing.assert_allclose(scores, state["scores"], rtol=1e-4, atol=1e-5)
