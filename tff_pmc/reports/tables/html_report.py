"""The page of a run: `report.html`, one file that opens in any browser.

It has the same tables and figures as the folder, from the same `Report`s: figures are
inside the file, as SVG, and it needs neither a network nor JavaScript.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import pandas as pd

from tff_pmc.escape import printable
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import RUN_INFO_COLUMNS, Results
from tff_pmc.reports import Report, page_model
from tff_pmc.reports.figures import figure_layout, page_figure
from tff_pmc.reports.figures.forest_plot import forest_plot
from tff_pmc.reports.statistics import paired_effects
from tff_pmc.reports.statistics.paired_effects import NOT_REACHED
from tff_pmc.reports.statistics.paired_statistics import MIN_SEEDS
from tff_pmc.reports.statistics.row_titles import row_titles
from tff_pmc.reports.tables import effect

FILE = "report.html"
"""The name of the page in a run's folder."""

_SETTINGS = {
    "Experiment": "experiment",
    "Model": "model",
    "Rounds": "rounds",
    "Clients in a round (below 1: a share; 0: all)": "clients_per_round",
    "Local epochs": "local_epochs",
    "Batch size (0: all examples)": "batch_size",
    "Client optimizer": "client_optimizer",
    "Client learning rate": "learning_rate",
    "Server learning rate": "server_learning_rate",
    "Criteria": "criteria",
    "Normalization": "normalization",
}
"""The rows of "What was run": words -> the name of the flag."""

# The flags of a command that hold for one folder, with their values.
_OF_ONE_FOLDER = re.compile(
    r"""\s--?(?:(?:no)?resume(?:=\S+)?|output_dir(?:=|\s+)(?:'[^']*'|\S+))(?=\s|$)"""
)

_ORDER = (
    *("curves", "weights", "fairness", "classes", "counterfactuals", "summary"),
    *("ordering_effect", "algorithm_effect", "spread_effect"),
)
"""The order of the reports that any experiment can have."""

# "12 (9)" and "≤3 (-1.5)": ours, and the published number in parentheses.
_OURS_AND_PUBLISHED = re.compile(r"[≤≥]?([-+]?[\d.]+) %? ?\(([-+]?[\d.]+)\)")


def html(
    results: Results, reports: Mapping[str, Report], title: str, command: str = ""
) -> str:
    """Returns the page of runs of one experiment, as HTML.

    It begins with a sentence per row and the forest plot, and the effect's tables are
    folded below.

    Args:
        results: the runs.
        reports: the reports on them, by name. Their figures stand above their tables.
        title: the title, such as the experiment's name and data.
        command: the command that made the runs; empty if it is not known.
    """
    effects, colors = _effects(results), set[str]()
    sections: list[dict[str, Any]] = []
    for name in sorted(reports, key=_position):
        report = reports[name]
        pages = [(page.title, _blocks(page)) for page in report.pages.values()]
        figures = [
            _figure(figure, stem, f"{name}-{stem}", colors)
            for stem, figure in report.figures.items()
            if effects is None or stem != effect.FILE  # It is on top.
        ]
        if pages or figures:
            first = pages[0][0] if pages else figures[0]["words"]
            sections.append(
                {
                    "id": name,
                    "title": first,
                    "figures": figures,
                    "pages": pages,
                    "folded": effect.FILE in report.pages,
                }
            )
    return _template().render(
        title=printable(title),
        answer=[] if effects is None else [*map(printable, effects.sentences())],
        panels=[] if effects is None else _panels(effects, colors),
        has_intervals=len(results.seeds) > 1,
        has_verdicts=effects is not None and (effects["seeds"] >= MIN_SEEDS).any(),
        facts=_facts(results),
        versions=printable(_versions(results)),
        runs=_table(page_model.Table(_runs(results), left=1)),
        sections=sections,
        command=printable(repeat_command(command)),
        light=page_figure.color_rules(colors),
        dark=page_figure.color_rules(colors, dark=True),
        dark_paper=page_figure.DARK_PAPER,
    )


def _effects(results: Results) -> effect.Effects | None:
    """Returns how the rows differ from their baseline; None if there is none."""
    with contextlib.suppress(RecordError):
        effects = effect.from_table(paired_effects.effects(results))
        return effects if len(effects) else None
    return None


def _panels(effects: effect.Effects, colors: set[str]) -> list[str]:
    """Returns the forest plot as one SVG per measure, which any screen can arrange."""
    panels = []
    for measure, part in effects[effects["verdict"] != NOT_REACHED].groupby(
        "measure", sort=False
    ):
        figure = forest_plot(part, legend=False)
        svg, used = page_figure.page_svg(figure, f"Differences in {measure}", "narrow")
        panels.append(svg)
        colors.update(used)
    return panels


def _position(name: str) -> tuple[bool, int]:
    """Returns where a report stands on the page: those of an experiment come first."""
    return name in _ORDER, _ORDER.index(name) if name in _ORDER else 0


def _figure(figure: Any, stem: str, name: str, colors: set[str]) -> dict[str, Any]:
    """Returns a figure as the template takes it; adds its colors to those there."""
    words = _spaced_name(stem)
    in_page = page_figure.page_figure(figure, name, words)
    colors.update(in_page.colors)
    picture = "" if in_page.svg else _data_uri(figure)
    return {"words": words, "svg": in_page.svg or {}, "picture": picture}


def repeat_command(command: str) -> str:
    """Returns a command that makes the same runs in a new folder.

    >>> repeat_command("run_experiments.py --seeds=0,1 --output_dir=runs/a --resume")
    'python run_experiments.py --seeds=0,1'
    """
    words = _OF_ONE_FOLDER.sub("", command)
    return f"python {words}" if words.startswith("run_experiments.py") else words


def _facts(results: Results) -> dict[str, str]:
    """Returns what all the runs share, in words."""
    first = results.runs.iloc[0]
    facts = {
        "Data": f"{first['data_name']}, {first['data_clients']} clients"
        + "".join(
            f", {name} {_text(value)}"
            for name, value in first["data_options"].items()
            if name not in ("num_clients", "seed")
        ),
        "Source": str(first["data_source"]),
        "Seeds": ", ".join(map(str, results.seeds)),
    }
    for words, name in _SETTINGS.items():
        values = results.runs[name].dropna() if name in results.runs else ()
        facts[words] = " or ".join(dict.fromkeys(map(_text, values)))
    facts["What rows differ in"] = "; ".join(_settings_of_rows(results))
    if results.runs.get("is_default_experiment", pd.Series(dtype=bool)).any():
        facts["Experiment"] += ", the default: what no flag sets is as it has it"
    return {words: printable(text) for words, text in facts.items() if text}


def _settings_of_rows(results: Results) -> list[str]:
    """Returns the settings of each row that other rows lack or have otherwise."""
    runs, titles = results.runs.drop_duplicates("label"), row_titles(results)
    info = {*RUN_INFO_COLUMNS, "algorithm", "criteria", "priority", "adjustment"}
    names = [
        name
        for name in runs
        if name not in info and runs[name].map(_text).nunique() > 1
    ]
    texts = []
    for run in runs.to_dict("records"):
        # NaN: a setting of another row's algorithm.
        values = [f"{n} {_text(run[n])}" for n in names if _text(run[n]) != "nan"]
        texts += [f"{titles[run['label']]}: {', '.join(values)}"] if values else []
    return texts


def _versions(results: Results) -> str:
    """Returns the versions of the software that the first run used."""
    versions = results.runs.iloc[0].get("versions")
    if not isinstance(versions, Mapping):
        return ""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _runs(results: Results) -> page_model.Grid:
    """Returns a line a run: its label, seed, rounds, how it ended, its last value."""
    value = "accuracy" if "accuracy" in results.rounds else "test_loss"
    titles = row_titles(results)
    head = ["run", "seed", "rounds", "status", value.replace("_", " ")]
    grid = [head]
    last = results.rounds.groupby(["seed", "label"], sort=False).last()
    for run in results.runs.to_dict("records"):
        row = last.loc[(run["seed"], run["label"])]
        early = run.get("ended_early")
        status = early if isinstance(early, str) and early else run.get("status") or ""
        grid.append(
            [
                titles[run["label"]],
                str(run["seed"]),
                str(int(row["round"])),
                str(status),
                f"{row[value]:.4f}",
            ]
        )
    return grid


def _blocks(page: page_model.Page) -> list[dict[str, Any]]:
    """Returns the parts of a page as the template takes them."""
    blocks: list[dict[str, Any]] = []
    for block in page.blocks:
        if isinstance(block, page_model.Heading):
            blocks.append({"kind": "heading", "text": printable(block.text)})
        elif isinstance(block, page_model.Items):
            blocks.append({"kind": "items", "texts": [*map(printable, block.texts)]})
        elif isinstance(block, page_model.Table):
            blocks.append({"kind": "table", **_table(block)})
        else:
            blocks.append({"kind": "paragraph", "text": printable(block)})
    return blocks


def _table(table: page_model.Table) -> dict[str, Any]:
    head, *lines = table.grid
    rows = []
    for line in lines:
        is_difference = "difference" in line[: table.left]
        rows.append(
            [
                {
                    "text": printable(cell),
                    "left": place < table.left,
                    "color": _color(cell, is_difference),
                }
                for place, cell in enumerate(line)
            ]
        )
    cells = [
        {"text": printable(cell), "left": place < table.left}
        for place, cell in enumerate(head)
    ]
    colored = any(cell["color"] for row in rows for cell in row)
    return {"head": cells, "rows": rows, "colored": colored}


def _color(cell: str, is_difference: bool) -> str:
    """Returns the CSS class of a cell: by how far ours is from the published number.

    A cell has a difference if its line is one of differences, or if the published
    number follows ours in parentheses. `near` is within a tenth of the published
    number, or within 1 of it, as rounds and points are; else `above` or `below`.
    """
    match = _OURS_AND_PUBLISHED.fullmatch(cell)
    if match:
        ours, published = map(float, match.groups())
        difference, near = ours - published, max(1.0, abs(published) / 10)
    elif is_difference:
        try:
            difference, near = float(cell), 1.0
        except ValueError:
            return ""
    else:
        return ""
    if abs(difference) <= near:
        return "near"
    return "above" if difference > 0 else "below"


def _data_uri(figure: Any) -> str:
    encoded = base64.b64encode(figure_layout.png_bytes(figure)).decode()
    return f"data:image/png;base64,{encoded}"


def _spaced_name(name: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=\d)", " ", name.replace("_", " "))
    return words[:1].upper() + words[1:]


def _text(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


@functools.lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("tff_pmc.reports.tables", ".")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("html_report.html.jinja")
