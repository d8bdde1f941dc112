"""DA: numbers of its page, from the kept records by NumPy alone."""

import itertools

import numpy as np
from recomputing import (
    PAGES,
    SEEDS,
    cohorts,
    column,
    half_interval,
    page_text,
    printed_rounds,
    printed_table,
    rounds,
    runs_of,
    text,
    weights,
)

DA = page_text("docs/da.md")
ADJUSTED = "MD,DS,LD (backtracking)"
# (target, column of DA's Table 1) -> the columns that it is the mean of.
LOW_TO_HIGH = {
    (75, "Low mean"): [(75, 20), (75, 30)],
    (75, "Mid mean"): [(75, 40), (75, 50)],
    (80, "Low mean"): [(80, 20), (80, 30)],
    (80, "Mid mean"): [(80, 40), (80, 50)],
    (75, "70%"): [(75, 70)],
}
DA_COLUMNS = [*itertools.chain(*LOW_TO_HIGH.values()), (75, 75)]


def rounds_of_da(label, above=0):
    return [rounds("femnist_online", k, label, DA_COLUMNS, above) for k in SEEDS]


def test_when_da_brings_70_and_75_percent_of_the_devices_to_75_percent():
    ds, adjusted = rounds_of_da("DS"), rounds_of_da(ADJUSTED)
    readme, fidelity = map(page_text, PAGES)
    saved = [a[75, 70] - b[75, 70] for a, b in zip(ds, adjusted)]
    size = f"{text(saved, 1).lstrip('+')} rounds sooner"
    assert f"| 140 rounds sooner | {size} | not reproduced |" in DA
    assert f"reach 75 % accuracy {size} than" in readme and f"{size} (" in fidelity
    ends = []
    for runs in (ds, adjusted, ds + adjusted):
        reached = [run[75, 70] for run in runs]
        ends.append(f"{min(reached)} to {max(reached)}")
    assert f"Here both do it in rounds {ends[2]}." in DA
    assert f"it takes {ends[0]} rounds, and 304 in Table 1" in DA
    assert f"| 304 (164) | {ends[0]} ({ends[1]}) |" in readme
    assert f"FedAvg, which takes {ends[0]} rounds" in readme
    assert [sum((75, 75) in run for run in runs) for runs in (ds, adjusted)] == [3, 1]
    assert "by three of the five runs of DS and one of the adjusted" in DA
    later = [
        above[column] - least[column]
        for least, above in zip(ds, rounds_of_da("DS", above=1))
        for column in DA_COLUMNS[:8]
    ]
    assert f"makes DS later by at most {max(later)} rounds" in DA
    last = [run.get((75, 70)) for run in rounds_of_da("DS", above=1)]
    there = [number for number in last if number]
    later = [number - run[75, 70] for number, run in zip(last, ds) if number]
    assert f"by {min(later)} to {max(later)} where 70 % of the devices" in DA
    assert f"in rounds {min(there)} to {max(there)}, under one seed not at all" in DA
    assert len(there) == 4


def test_rounds_saved_by_das_adjusting_as_a_share_of_those_of_ds():
    paper = {
        (line["study"], int(line["target_accuracy_pct"]), line["column"]): line["value"]
        for line in printed_table("da_table1")
        if line["row"] in ("Dataset size (base)", "Md≻Ds≻Ld")
    }
    runs = [*zip(rounds_of_da("DS"), rounds_of_da(ADJUSTED))]
    ours, theirs, within = [], [], []
    for mean, cells in LOW_TO_HIGH.items():
        shares = [
            100 * (1 - np.mean([b[c] for c in cells]) / np.mean([a[c] for c in cells]))
            for a, b in runs
        ]
        ds, adjusted = (float(paper[(study, *mean)]) for study in ("Ind", "Final"))
        printed_share = 100 * (1 - adjusted / ds)
        ours.append(text(shares, 0))
        theirs.append(f"{printed_share:.0f}")
        if abs(np.mean(shares) - printed_share) <= half_interval(shares):
            within.append(mean)
    assert [line[0] for line in ours] == [*"----+"]
    ours = [f"{line[1:]} %" for line in ours]
    assert (
        f"{ours[0]} (Low) and {ours[1]} (Mid) later at 75 % (paper: {theirs[0]} and "
        f"{theirs[1]} % sooner), {ours[2]} and {ours[3]} later at 80 % (paper: "
        f"{theirs[2]} and {theirs[3]} % sooner), and {ours[4]} sooner for 70 % of the "
        f"devices at 75 % (paper: {theirs[4]} %)."
    ) in DA
    assert within == [(80, "Mid mean")]
    words = f"is {ours[4]} of DS's rounds (paper: {theirs[4]} %)"
    assert words in page_text("docs/fidelity.md")


def test_how_much_the_ordering_matters_in_das_search():
    kept, alone, apart = [], 0, {}
    for seed in SEEDS:
        chosen = runs_of("femnist_online", "rounds")[seed, ADJUSTED]["ordering"]
        trials = runs_of("femnist_online", "candidates")[seed, ADJUSTED]
        tested = {}
        for number, right in zip(trials["round"], trials["correct"]):
            tested.setdefault(int(number), []).append(int(right))
        kept.append([a == b for a, b in zip(chosen, chosen[1:])])
        alone += sum(len(part) == 1 for part in tested.values())
        for number, part in tested.items():
            if len(part) == 6:
                apart[seed, number] = max(part) - min(part)
    early, late = (np.array(kept)[:, part] for part in (slice(39), slice(39, None)))
    assert f"in {early.sum()} of {early.size} rounds up to round 40, and" in DA
    assert f"in {late.sum()} of {late.size} later ones" in DA
    assert f"In these {len(apart)} of 500 rounds the best and the worst" in DA
    assert f"In {alone} rounds it tested one ordering alone." in DA
    median = np.median([*apart.values()])
    assert f"a median of {median:g} of 1,685 test images apart" in DA
    most = max(part for (_, number), part in apart.items() if number > 40)
    (seed, number), first = max(apart.items(), key=lambda item: item[1])
    words = f"at most {most}, before it at most {first} (round {number} of seed {seed})"
    assert f"after round 40 {words}" in DA
    away = {}
    for seed in SEEDS:
        for criteria in cohorts("femnist_online", seed, "DS"):
            weight = weights(criteria, itertools.permutations(criteria))
            for ordering, each in weight.items():
                moved = abs(each - weight["MD", "DS", "LD"]).sum() / 2
                away.setdefault(ordering, []).append(moved)
    del away["MD", "DS", "LD"]
    means = sorted((100 * np.mean(part), ",".join(name)) for name, part in away.items())
    (least, first), (most, last) = means[0], means[-1]
    words = f"{least:.1f} % ({first}) to {most:.1f} % ({last}) of the weight elsewhere"
    assert words in DA


def test_what_das_adjusting_costs_and_how_accurate_it_becomes():
    def columns(label, head):
        return [column("femnist_online", k, label, "rounds", head) for k in SEEDS]

    pairs = [*zip(columns("DS", "accuracy"), columns(ADJUSTED, "accuracy"))]
    lower = [100 * np.mean(x[50:] - other[50:]) for x, other in pairs]
    assert f"is {text(lower, 2)[1:]} points below that of DS" in DA
    assert 1 < 1685 / 100 * np.mean(lower) < 2
    best = [100 * max(x.max(), other.max()) for x, other in pairs]
    assert sum(x > 80 for x in best) == 2
    assert f"under two of the five seeds, at most {max(best):.1f} %" in DA
    sent = [
        sum(map(np.sum, columns(label, head))) / 5e9
        for label, head in (
            (ADJUSTED, "test_bytes"),
            (ADJUSTED, "train_bytes"),
            ("DS", "train_bytes"),
        )
    ]
    testing, training, alone = (f"{x:.0f} GB" for x in sent)
    assert f"have {testing} for testing (mean of five seeds) and {training} for" in DA
    assert f"with DS alone training takes {alone}" in DA


def of_each_criterion_alone():
    """Rounds under each seed, and as Table 1 prints them, by criterion.

    Our rounds are by column, the paper's in the sequence of `LOW_TO_HIGH`.
    """
    printed = {
        (line["row"], int(line["target_accuracy_pct"]), line["column"]): line["printed"]
        for line in printed_table("da_table1")
        if line["study"] == "Ind"
    }
    names = ("Dataset size (base)", "Model divergence", "Label diversity")
    ours, papers = {}, {}
    for label, name in zip(("DS", "MD", "LD"), names):
        ours[label] = [rounds("femnist_alone", k, label, DA_COLUMNS) for k in SEEDS]
        papers[label] = [printed[(name, *mean)] for mean in LOW_TO_HIGH]
    return ours, papers


def test_the_rows_of_each_criterion_alone():
    arrivals, printed = of_each_criterion_alone()
    for label, numbers in printed.items():
        cells = [
            f"{np.mean([[run[x] for x in columns] for run in arrivals[label]]):.1f}"
            f" ({number})"
            for columns, number in zip(LOW_TO_HIGH.values(), numbers)
        ]
        assert f"| {label} | {' | '.join(cells)} |" in DA, cells
    for label in ("MD", "LD"):
        moved = []
        for seed in SEEDS:
            for criteria in cohorts("femnist_alone", seed, "DS"):
                ours, of_ds = (criteria[x] / criteria[x].sum() for x in (label, "DS"))
                moved.append(abs(ours - of_ds).sum() / 2)
        assert f"{label} moves {100 * np.mean(moved):.1f} % of DS's weight" in DA
    apart = [
        ld[cell] - ds[cell]
        for ld, ds in zip(arrivals["LD"], arrivals["DS"])
        for cell in DA_COLUMNS[:8]
    ]
    equal = apart.count(0)
    assert f"rounds of DS in {equal} of the {len(apart)} columns" in DA
    assert sorted(filter(None, apart)) == [-17, -3, -2, -1, -1, -1, 1, 2, 2]
    for label, words in (("DS", "DS takes"), ("MD", "rounds, MD"), ("LD", "and LD")):
        *first, last = (run[75, 70] for run in arrivals[label])
        assert f"{words} {', '.join(map(str, first))} and {last}" in DA


def test_how_much_later_each_criterion_alone_is():
    """`MD DS` is how much later MD is than DS, in rounds and in percent of DS's."""
    arrivals, printed = of_each_criterion_alone()
    names = [f"{time} at {target}" for target in (75, 80) for time in ("Low", "Mid")]
    later, percent = {}, {}
    for name, columns in zip([*names, "last"], LOW_TO_HIGH.values()):
        ds, md, ld = (
            np.array([np.mean([run[cell] for cell in columns]) for run in runs])
            for runs in arrivals.values()
        )
        pairs = {"MD DS": (md, ds), "LD DS": (ld, ds)}
        pairs |= {"others DS": ((md + ld) / 2, ds), "LD others": (ld, (ds + md) / 2)}
        for pair, (ours, base) in pairs.items():
            later[pair, name] = text(ours - base, 1)[1:]
            percent[pair, name] = 100 * (ours / base - 1)

    low, mid, low_80, mid_80 = (later["MD DS", name] for name in names)
    words = f"At 75 % it is {low} (Low) and {mid} rounds (Mid) later, at 80 % "
    assert f"{words}{low_80} and {mid_80}." in DA
    most = max((percent["MD DS", name] for name in names), key=np.mean)
    least = min((percent["LD DS", name] for name in names), key=np.mean)
    words = f"MD at most {text(most, 1)[1:]} % later, LD at most {text(least, 1)[1:]} %"
    assert f"| {words} sooner | reproduced" in DA
    holds = [later["others DS", name] for name in ("Mid at 75", "Low at 80")]
    assert (
        f"DS is {holds[0]} (Mid, 75 %) and {holds[1]} rounds (Low, 80 %) sooner" in DA
    )
    assert f"LD is {later['LD others', 'last']} rounds sooner than the mean of DS" in DA
    md, ld = (text(-percent[pair, "last"], 0)[1:] for pair in ("MD DS", "LD DS"))
    assert f"In the last column MD is {md} % and LD {ld} % sooner than DS" in DA
    assert f"which is {md} % and {ld} % of DS's rounds" in page_text(PAGES[1])
    low, mid = (text(percent["others DS", x], 0)[1:] for x in (names[0], names[3]))
    assert f"DS is {low} % (Low, 75 %) and {mid} % (Mid, 80 %) sooner" in DA
    ds, md, ld = ([*map(float, numbers)] for numbers in printed.values())
    last = [f"{100 * (1 - x[4] / ds[4]):.0f}" for x in (md, ld)]
    assert f"sooner than DS (paper: {last[0]} and {last[1]} %)" in DA
    others = [f"{50 * (md[k] + ld[k]) / ds[k] - 100:.0f}" for k in (0, 3)]
    assert f"of MD and LD (paper: {others[0]} and {others[1]} %)" in DA


def test_how_accurate_each_criterion_alone_is():
    def late(label):
        return np.array(
            [column("femnist_alone", k, label, "rounds", "accuracy") for k in SEEDS]
        )[:, 50:].mean(axis=1)

    def late_worst(label):
        means = []
        for seed in SEEDS:
            run = runs_of("femnist_alone", "clients")[seed, label]
            right, examples = (np.array(run[x], int) for x in ("correct", "examples"))
            shares = np.sort((right / examples).reshape(100, 105), axis=1)
            means.append(shares[50:, :11].mean())  # A tenth of 105, rounded up.
        return np.array(means)

    lower, higher = (100 * (late(label) - late("DS")) for label in ("MD", "LD"))
    assert f"is {text(-lower, 2)[1:]} points lower, which is about five" in DA
    assert 4.5 < -1685 / 100 * np.mean(lower) < 5.5
    assert f"over the same rounds is {text(higher, 2)[1:]} points higher" in DA
    worst = 100 * (late_worst("DS") - late_worst("MD"))
    assert f"the worst tenth of the devices {text(worst, 2)[1:]} points" in DA
    assert f"MD is {text(-lower, 2)[1:]} points below DS" in page_text(PAGES[1])


NAMES = {"DS": "Dataset size", "LD": "Label diversity", "MD": "Model divergence"}
ORDERINGS = {
    first: [",".join(x) for x in itertools.permutations(NAMES) if x[0] == first]
    for first in NAMES
}


def of_the_nine_rows():
    """Under seed 0: the rounds of each row by column, and by mean of two columns."""
    by_column, by_mean = {}, {}
    for first, orderings in ORDERINGS.items():
        by_column[first] = rounds("femnist_alone", 0, first, DA_COLUMNS)
        for label in orderings:
            run = rounds("femnist_fixed_orderings", 0, label, DA_COLUMNS)
            by_column[label] = run
    for label, run in by_column.items():
        by_mean[label] = [
            float(np.mean([run[x] for x in columns]))
            for columns in LOW_TO_HIGH.values()
        ]
    return by_column, by_mean


def test_the_rows_of_the_six_orderings_fixed():
    by_column, by_mean = of_the_nine_rows()
    for label, ours in by_mean.items():
        printed = printed_rounds("da_table1", label)
        papers = [np.mean([printed[x] for x in part]) for part in LOW_TO_HIGH.values()]
        cells = [f"{mean:g} ({paper:g})" for mean, paper in zip(ours, papers)]
        assert f"| {label} | {' | '.join(cells)} |" in DA, label
    assert {run[75, 70] for run in by_column.values()} == {69}
    assert "**All nine bring 70 % of the devices to 75 % in round 69**" in DA
    later = np.array([by_mean[x] for x in ("MD", *ORDERINGS["MD"])]) - by_mean["DS"]
    assert later.min() == 0 and later.max() == 3
    assert "if only by up to three rounds" in DA
    best = np.mean([by_mean[x] for x in ORDERINGS["DS"]], axis=0)
    others = np.mean([by_mean[x] for y in ("LD", "MD") for x in ORDERINGS[y]], axis=0)
    low, mid = (others - best)[:2]
    assert f"| {low:.1f} and {mid:.1f} rounds sooner under [one seed]" in DA


def test_how_near_each_ordering_is_to_its_first_criterion():
    by_column, _ = of_the_nine_rows()
    name, reached = "femnist_fixed_orderings", DA_COLUMNS[:9]
    equal, moved, apart = [], [], []
    of_ds = column("femnist_alone", 0, "DS", "rounds", "accuracy")[50:].mean()
    for first, orderings in ORDERINGS.items():
        for label in orderings:
            ordering, alone = by_column[label], by_column[first]
            equal.append(sum(ordering[x] == alone[x] for x in reached))
            ours = column(name, 0, label, "rounds", "accuracy")[50:].mean()
            apart.append(100 * (ours - of_ds))
            away = [
                abs(weight - criteria[first] / criteria[first].sum()).sum() / 2
                for criteria in cohorts(name, 0, label)
                for weight in weights(criteria, [tuple(label.split(","))]).values()
            ]
            moved.append(100 * np.mean(away))
    assert f"moves {min(moved):.1f} to {max(moved):.1f} % of that criterion's" in DA
    assert (min(equal), max(equal)) == (6, 8)
    assert "has exactly its round in six to eight of the nine columns" in DA
    assert all(by_column["LD"][x] == by_column["DS,MD,LD"][x] for x in reached)
    words = f"{-min(apart):.2f} points below and {max(apart):.2f} points above"
    assert f"between {words} that of DS" in DA


def test_what_table_1_has_for_rows_of_nearly_the_same_weights():
    printed = {
        label: printed_rounds("da_table1", label)
        for label in [*NAMES, *itertools.chain(*ORDERINGS.values())]
    }
    exchanged, far = {"DS": "DS", "LD": "MD", "MD": "LD"}, []
    for alone, name in NAMES.items():
        row, cells = printed[alone], []
        assert len(row) == 10
        for first, labels in ORDERINGS.items():
            others = [printed[label] for label in labels]
            equal = [sum(row[x] == other[x] for x in row) for other in others]
            apart = [
                100 * np.mean([abs(row[x] / other[x] - 1) for x in row])
                for other in others
            ]
            far += apart if first != exchanged[alone] else []
            words = f"{apart[0]:.0f} and {apart[1]:.0f} %"
            cells.append(f"{equal[0]} and {equal[1]} ({words})")
        assert f"| {name} | {' | '.join(cells)} |" in DA, cells
    assert f"first criterion are {min(far):.0f} to {max(far):.0f} % away" in DA

    high = {
        label: np.mean([row[75, 70], row[75, 75]]) for label, row in printed.items()
    }
    with_ds = [high[label] for label in ("DS", *ORDERINGS["DS"])]
    least, most = min(with_ds), max(with_ds)
    assert f"High at 75 % by up to {most - least:.0f} rounds (DS and" in DA
    assert f"begin with it: {least:.1f} to {most:.1f})" in DA
    last = [printed[label][75, 75] for label in ("DS", *ORDERINGS["DS"])]
    apart = f"{max(last) - min(last):.0f} ({min(last):.0f} to {max(last):.0f})"
    assert f"in its last column by up to {apart}" in DA
    first, second = (high[label] for label in ORDERINGS["MD"])
    assert f"begin with Md stand apart, with {first:.1f} and {second:.1f} rounds" in DA
    assert all(least < high[label] < most for label in ORDERINGS["LD"])
    sooner = {
        f"{100 * (1 - printed[x][75, 70] / printed['DS'][75, 70]):.0f} % sooner than DS"
        for x in ORDERINGS["MD"]
    }
    assert len(sooner) == 1 and f"begin with Md are {sooner.pop()}" in DA
    ours, _ = of_each_criterion_alone()
    ds, ld, md = (
        [
            np.array([np.mean([run[x] for x in columns]) for run in ours[label]])
            for columns in LOW_TO_HIGH.values()
        ]
        for label in NAMES
    )
    *early, _ = (text(a - b, 1)[1:] for a, b in zip(md, ld))
    words = f"at 75 % by {early[0]} (Low) and {early[1]} rounds (Mid), at 80 % by "
    assert f"{words}{early[2]} and {early[3]}." in DA
    words = f"{text(md[4] - (ds[4] + ld[4]) / 2, 1)[1:]} rounds later than the mean of"
    assert f"would be MD, which is {words} DS and LD here" in DA
    later = [
        100 * (md[75, 70] / ds[75, 70] - 1) for md, ds in zip(ours["MD"], ours["DS"])
    ]
    words = f"{-min(later):.0f} % sooner and {max(later):.0f} % later here"
    assert f"MD alone is between {words}" in DA
