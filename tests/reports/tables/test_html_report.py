"""The page of a run: one file, readable without scripts, on narrow screens, too."""

import html as html_module
import html.parser
import json
import shutil
import subprocess

import pytest
from small_results import of_seeds, results_of_seed

from tff_pmc.experiments import experiment_reports
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.reports import Report, page_model
from tff_pmc.reports.figures import figure_layout
from tff_pmc.reports.tables import html_report


class _Read(html.parser.HTMLParser):
    """Collects the tags with their attributes, and the classes of the cells by text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self._cell = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._cell = dict(attrs).get("class", "") if tag == "td" else None

    def handle_data(self, data):
        if self._cell is not None:
            self.cells[data] = self._cell.split()


def page_of(grid, label="DS", left=1, others=()):
    """Returns the page of a run, or of several, with a table."""
    labels = (label, *others)
    results = results_of_seed({row: [[1, 2], [2, 2]] for row in labels}, [3, 3])
    page = page_model.Page(
        "A table", ["<b>words</b>", page_model.Table(grid, left=left)]
    )
    figure, _ = figure_layout.one_panel()
    report = Report(pages={"a": page}, figures={"a_curve": figure})
    return html_report.html(results, {"a": report}, "A run", "make it & again")


def test_the_page_is_one_file_without_scripts_and_escapes_names():
    text = page_of([["x", "y"], ["<i>", "1"]], label="<script>alert(1)</script>")
    read = _Read(text)
    assert "script" not in {tag for tag, _ in read.tags}
    assert {"b", "i"}.isdisjoint({tag for tag, _ in read.tags})
    assert "make it &amp; again" in text
    links = [a.get(name, "#") for _, a in read.tags for name in ("src", "href")]
    assert all(link.startswith("#") for link in links)
    assert [a["aria-label"] for _, a in read.tags if "aria-label" in a][1:] == [
        "A curve",
        "A curve",
    ]
    places = {attrs.get("id") for _, attrs in read.tags}
    assert {link[1:] for link in links if len(link) > 1 and link[0] == "#"} <= places
    assert read.cells["0.6667"] == []  # The accuracy of the last round.


def test_the_page_begins_with_a_sentence_per_row_and_a_forest_plot():
    """Under five seeds LD has 1 of 12 more right in the last round; MD has 1 less."""
    last = {"DS": [4, 4], "LD": [5, 4], "<MD>": [4, 3]}
    counts = {label: [[1, 2], right] for label, right in last.items()}
    results = of_seeds(dict.fromkeys(range(5), counts), [6, 6], targets=(90,))
    text = html_report.html(results, {}, "A title")
    answer = text[text.index("<h1>") : text.index("What was run")]
    first = answer.index("<p>LD: accuracy +8.3 points (+8.3 to +8.3) against FedAvg")
    second = answer.index("<p>&lt;MD&gt;: accuracy -8.3 points")
    assert first < second < answer.index("<svg")
    assert "better. Worst tenth +0.0 points (+0.0 to +0.0): no difference" in answer
    read = _Read(answer)
    drawn = [attrs["aria-label"] for tag, attrs in read.tags if tag == "svg"]
    assert drawn[:2] == ["Differences in accuracy", "Differences in last accuracy"]
    assert len(drawn) == 6  # No run reaches 90 %.
    ids = [attrs["id"] for _, attrs in read.tags if "id" in attrs]
    assert len({*ids}) == len(ids)
    assert answer.count("&lt;MD&gt;</text>") == 6 and "#000000" not in answer
    for alone, words in (
        (results.only(seed=0), "points against FedAvg (DS) under one seed: no verdict"),
        (results.only(label="LD"), ""),
    ):
        text = html_report.html(alone, {}, "A title")
        assert ("<svg" in text) == bool(words) and words in text


def test_the_answer_comes_first_and_its_tables_are_folded():
    results = results_of_seed({"DS": [[1, 2], [2, 2]], "LD": [[1, 2], [2, 2]]}, [3, 3])
    page = page_model.Page("At length", ["a table"])
    reports = {
        "summary": Report(pages={"seeds": page_model.Page("Seeds", ["of seeds"])}),
        "algorithm_effect": Report(pages={"effect": page}),
        "weights": Report(pages={"weights": page_model.Page("Weights", ["weights"])}),
        "pmc_table4": Report(pages={"t": page_model.Page("Table 4", ["printed"])}),
    }
    text = html_report.html(results, reports, "A run")
    parts = ["no verdict", "printed", "weights", "of seeds", "a table"]
    parts += ["What was run", "Each run, and the versions", "FedAvg (DS)"]
    places = [text.index("no verdict"), *(text.rindex(f"{x}<") for x in parts[1:])]
    assert places == sorted(places)
    folded = text[text.index('<details id="algorithm_effect">') :]
    assert "a table" in folded[: folded.index("</details>")]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("run.py --seeds=0,1 --output_dir=runs/a --resume", "run.py --seeds=0,1"),
        ("run.py --output_dir 'a b' --rounds=2", "run.py --rounds=2"),
        ("run.py --resume=true -output_dir='a b' x", "run.py x"),
        ("run.py --priority='DS;LD,DS'", "run.py --priority='DS;LD,DS'"),
        ("run_experiments.py --rounds=2", "python run_experiments.py --rounds=2"),
        ("", ""),
    ],
)
def test_a_command_is_shown_as_it_works_in_an_empty_folder(command, expected):
    assert html_report.repeat_command(command) == expected


@pytest.mark.parametrize(
    ("cell", "color"),
    [
        *[("12 (12)", "near"), ("13 (12)", "near"), ("14 (12)", "above")],
        *[("9 (12)", "below"), ("105 (100)", "near"), ("≤3 (-1.5)", "above")],
        *[("— (12)", ""), ("12", "")],
    ],
)
def test_a_cell_is_colored_by_its_difference_from_the_published_number(cell, color):
    assert _Read(page_of([["x", "y"], ["a", cell]])).cells[cell] == color.split()


def test_a_line_of_differences_is_colored():
    grid = [["x", "", "1", "2", "3"], ["DS", "difference", "+1", "-2", ""]]
    cells = _Read(page_of(grid, left=2)).cells
    assert cells["+1"] == ["near"] and cells["-2"] == ["below"]


# What a browser shows of a page: its width, the sections in their order, and of each
# drawn text whether it is cut off, smaller than 10 pixels, or lies on another.
LOOK = """
const root = f.contentDocument.documentElement, faults = [];
const boxes = [...root.querySelectorAll("svg")].filter(s => s.clientWidth);
for (const svg of boxes) {
  const frame = svg.getBoundingClientRect(), scale = frame.width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")].map(t => [t, t.getBoundingClientRect()]);
  for (const [text, box] of texts) {
    const words = svg.getAttribute("aria-label") + ": " + text.textContent;
    const size = scale * parseFloat(f.contentWindow.getComputedStyle(text).fontSize);
    if (size < 9.99) faults.push(words + " has " + size + " pixels");
    if (box.left < frame.left - 3 || box.right > frame.right + 3) faults.push(words + " is cut off");
    for (const [other, b] of texts) {
      const across = Math.min(box.right, b.right) - Math.max(box.left, b.left);
      const down = Math.min(box.bottom, b.bottom) - Math.max(box.top, b.top);
      if (other !== text && across > 2 && down > 3) faults.push(words + " lies on " + other.textContent);
    }
  }
}
document.body.textContent = JSON.stringify({
  width: root.scrollWidth, drawn: boxes.length, faults: faults,
  sections: [...root.querySelectorAll("[id]:is(section, details)")].map(s => s.id)});
"""  # noqa: E501


def look_at(tmp_path, page, width):
    """Returns what a browser shows of a page in a window of a width."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("there is no Chromium")
    path, inner = tmp_path / "page.html", tmp_path / "inner.html"
    # Headless windows are at least 500 pixels wide; a frame may be narrower.
    inner.write_text(page)
    path.write_text(
        f'<iframe id="f" src="inner.html" width="{width}" height="900"></iframe>'
        f"<script>f.onload = () => {{{LOOK}}}</script>"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    options += ["--allow-file-access-from-files", "--virtual-time-budget=3000"]
    done = subprocess.run(
        [browser, *options, path.as_uri()], capture_output=True, text=True, timeout=60
    )
    shown = done.stdout.partition("<body>")[2].partition("</body>")[0]
    return json.loads(html_module.unescape(shown))


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_table_does_not_overflow_a_screen(tmp_path, width):
    grid = [["x", *map(str, range(60))], ["a" * 40, *["1000000"] * 60]]
    page = page_of(grid, label="LD," * 40, others=["MD" * 9, "a b"])
    assert 0 < look_at(tmp_path, page, width)["width"] <= width


@pytest.fixture(scope="module")
def whole_page(tmp_path_factory):
    """A page of six rows under five seeds."""
    labels = ["DS", "LD", "MD", "LD,DS,MD", "LD,DS,MD (backtracking)", "q-FFL, q 0.5"]
    by_seed = {
        seed: {
            label: [[(seed + place + r) % 9 + 1, 3 + place] for r in range(8)]
            for place, label in enumerate(labels)
        }
        for seed in range(5)
    }
    results = of_seeds(by_seed, [12, 12], targets=(50, 70))
    folder = tmp_path_factory.mktemp("whole")
    experiment = EXPERIMENTS["quickstart"]
    experiment_reports.write(experiment, results, str(folder), per_seed=())
    return (folder / html_report.FILE).read_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_whole_page_is_readable_on_a_screen(tmp_path, whole_page, width):
    """Nothing is cut off, too small, or overlaps."""
    seen = look_at(tmp_path, whole_page, width)
    assert 0 < seen["width"] <= width and seen["drawn"] > 8
    assert seen["faults"] == []
    assert seen["sections"][:2] == ["answer", "curves"]
    assert {"fairness", "summary", "ordering_effect", "what"} <= {*seen["sections"]}
