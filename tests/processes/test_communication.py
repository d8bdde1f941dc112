"""What a client sends in a round: the fields of its messages, and their bytes."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

UPDATE = "<trainable=<float32[16,3],float32[3]>,non_trainable=<>>"
COUNTS = "<clients=int32,excluded=int32,examples=int32,loss_sum=float32>"
MODEL = 51 * 4
MEASURED = 4 * 4
ROUND = 2 * 4  # The seed and the round's number, which are sent with the model.
CODES = ("DS", "LD", "MD")
OWA = scores.owa((0.2, 0.3, 0.5), CODES)


def lines(message):
    """The lines of a message's description, each as (field, type)."""
    return dict(line.split(maxsplit=1) for line in message.describe().split("\n"))


@pytest.mark.parametrize(
    ("options", "two_stage", "fields", "num_scalars"),
    [
        (
            {"priority": ("LD", "DS")},
            False,
            [("updates", f"2 x {UPDATE}"), ("criteria", 3), ("monomials", 2)],
            5,
        ),
        (
            {"priority": ("LD",), "normalization": "max"},
            False,
            [("updates", f"1 x {UPDATE}"), *zip(("criteria", "monomials"), (3, 1))]
            + [("maxima", 3)],
            7,
        ),
        (
            {"score": OWA, "normalization": "max"},
            True,
            # The totals and largest criteria; then the scales return; then the sums.
            [("updates", f"7 x {UPDATE}"), ("criteria", 3), ("monomials", 7)],
            (3 + 3) + 3 + (3 + 7),
        ),
        (
            {"aggregator": "median"},
            False,
            [("updates", f"1 x {UPDATE}"), ("monomials", "float32")],
            1,
        ),
    ],
    ids=["ordering", "max", "two stages", "aggregator"],
)
def test_the_fields_of_a_message_are_its_sums(
    toy_model, build_prioritized, options, two_stage, fields, num_scalars
):
    from tff_pmc.processes.communication import client_messages, traffic

    arguments = dict(options)
    normalization = arguments.pop("normalization", "sum")
    if normalization != "sum":
        arguments["sums"] = tff_pmc.SumOptions(normalization)
    if "aggregator" in options:
        arguments["aggregator"] = tff_pmc.BASELINES[options["aggregator"]]()
    process = build_prioritized(toy_model, **arguments)
    how = {"normalization": normalization, "two_stage": two_stage}
    *first, last = client_messages(process.next, **how)
    expected = {n: t if isinstance(t, str) else f"float32[{t}]" for n, t in fields}
    assert lines(last) == {**expected, "measurements": COUNTS}
    if two_stage:
        fields = ("criteria", "maxima")
        assert [*map(lines, first)] == [dict.fromkeys(fields, "float32[3]")]
    else:
        assert not first
    num_updates = int(expected["updates"].partition(" ")[0])
    bytes_ = (1 + num_updates) * MODEL + 4 * num_scalars + MEASURED + ROUND
    assert traffic(process.next, **how).per_client_training == bytes_


@pytest.mark.parametrize("method", ["sum", "max"])
def test_a_message_is_what_the_client_work_of_the_process_returns(
    toy_model, sgd, method
):
    from tff_pmc.aggregation.client_message import ClientMessage
    from tff_pmc.clients.training_options import Training
    from tff_pmc.criteria import resolve
    from tff_pmc.processes.round_components import build_round_components

    factory = tff_pmc.aggregation.PrioritizedMeanFactory(
        CODES, ("LD", "DS"), sums=tff_pmc.SumOptions(method)
    )
    components = build_round_components(
        toy_model,
        resolve(CODES),
        factory,
        Training(local_epochs=1),
        client_optimizer=sgd(),
        server_optimizer=None,
    )
    message = ClientMessage.of_sums(components.update_type, 3, 2, method)
    work = components.client_work.next.type_signature.result
    sent = work.result.member
    assert sent.is_equivalent_to(tff.to_type(message.client_result))
    aggregation = factory.create_for_packs(components.update_type)
    assert aggregation.next.type_signature.parameter[2].member.is_equivalent_to(
        tff.to_type(message.update_weight)
    )


def test_a_search_counts_the_sums_that_it_needs(toy_model, sgd):
    """Three sums: of both orderings of two criteria; seven with those of the others."""
    from tff_pmc.processes.communication import client_messages

    online = tff_pmc.build_online_adjusted_fed_avg(
        toy_model,
        client_optimizer_fn=sgd(),
        candidates=[scores.prioritized(o, CODES) for o in (CODES[:2], CODES[1::-1])],
        others=[scores.prioritized(CODES, CODES)],
        local_epochs=1,
    )
    for num_sums, expected in ((None, 4), (3, 3)):
        (message,) = client_messages(online.parts.train, num_sums=num_sums)
        assert len(message.updates) == expected
        assert tuple(message.monomials.shape) == (expected,)


def test_metrics_are_sent_before_they_are_finalized(metric_model, build_prioritized):
    """Two float32 of each of the two metrics, whose finalized values are one each."""
    from tff_pmc.clients.model_metrics import ModelMetrics
    from tff_pmc.processes.communication import client_messages, traffic

    process = build_prioritized(metric_model, criteria=("DS",))
    specs = ModelMetrics.from_model(metric_model).specs
    (message,) = client_messages(process.next, model_metrics=specs)
    assert len(tff.structure.flatten(message.metrics)) == 4
    sent = traffic(process.next, model_metrics=specs)
    scalars = 2 * np.dtype(np.float32).itemsize
    assert sent.per_client_training == (2 * MODEL + MEASURED + ROUND + scalars + 4 * 4)
    assert sent.per_client_testing == MODEL + 4
