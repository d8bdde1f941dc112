"""The tables of claims: in order, of things that there are, and refused otherwise."""

import pytest

from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.reports.papers import claim_tables, printed_rounds
from tff_pmc.reports.papers.claim_tables import ClaimError, claims, headline_numbers
from tff_pmc.settings.papers import PAPERS

TABLE = """
paper = "PMC"
[runs]
"both" = ["LD", "MD"]
[columns]
"at 70 %" = { 70 = "all" }
[[claim]]
place = "section 1"
says = "Some words."
experiments = ["mnist_iid"]
of = "rounds"
tolerance = 1.0
runs = "both"
columns = "at 70 %"
sign = "none"
[[headline]]
place = "Table 2"
experiment = "mnist_iid"
says = "a number"
printed = "7"
number = "round of half"
run = "DS"
target = 90
"""


@pytest.fixture
def read(tmp_path):
    """A function that reads the table with one text in the place of another."""

    def read_it(old="", new=""):
        assert old in TABLE
        path = tmp_path / "mine.toml"
        path.write_text(TABLE.replace(old, new, 1), encoding="utf-8")
        return claim_tables.read(path)

    return read_it


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tolerance", "tolerence", "got an unexpected keyword argument 'tolerence'"),
        (
            "[[claim]]",
            "[[claim]]\njudge = 'x'",
            "unknown judge 'x'; it has to be one of ",
        ),
        (
            '"mnist_iid"]',
            '"mnist"]',
            "unknown experiment 'mnist'; it has to be one of ",
        ),
        ('"none"', '"never"', "unknown sign 'never'; it has to be one of more, less"),
        ('of = "rounds"', 'of = "x"', "unknown quantity 'x'; it has to be one of roun"),
        ('= "at 70 %"\n', '= "at 7 %"\n', "unknown set of columns 'at 7 %'; it has"),
        ("sign", "name = '{who}'\nsign", "unknown part of a name 'who'; it has to be"),
        ("sign", "measures = [{ sing = 1 }]\nsign", "unknown key of a measure 'sing'"),
        ('runs = "both"', "", "'runs'"),
        ('place = "section 1"', "", "(without a place): the key 'place' is missing"),
        ("of half", "of all", "headline 1 (Table 2): unknown number 'round of all'"),
        ("target = 90", "", "headline 1 (Table 2): missing a required argument"),
        ("target = 90", "target = 90\nx = 1", "unexpected keyword argument 'x'"),
        ("[runs]", "[runs", "mine.toml: "),
    ],
)
def test_what_cannot_be_is_one_line_that_names_file_and_place(read, old, new, message):
    with pytest.raises(ClaimError) as error:
        read(old, new)
    text = str(error.value)
    assert text.startswith("mine.toml") and message in text and "\n" not in text
    assert "section 1" in text or "Table 2" in text or "place" in old or new == "[runs"


def test_a_row_says_what_differs_from_its_claim(read):
    (one,), (number,) = read()
    keys = one.judge.keywords
    cells = {"at 70 %": [(70, share) for share in range(10, 100, 10)]}
    assert number.measure.keywords["target"] == 90
    (row,) = keys["measures"]
    assert (row.runs, row.columns, row.sign) == (["LD", "MD"], cells, "none")
    assert (row.tolerance, row.base) == (1.0, "DS")
    rows = 'measures = [{ runs = "DS" }, { sign = "less" }]\nsign'
    (one,), _ = read("sign", rows)
    signs = [(row.runs, row.sign) for row in one.judge.keywords["measures"]]
    assert signs == [(["DS"], "none"), (["LD", "MD"], "less")]


def test_the_claims_of_all_papers_are_in_their_order_and_of_experiments():
    found = claims()
    assert list(dict.fromkeys(one.paper for one in found)) == list(PAPERS)
    for one in found:
        assert one.place and one.says.endswith((".", ".)"))
        assert one.experiments and set(one.experiments) <= set(EXPERIMENTS)
    for paper in PAPERS:
        places = [_place(one) for one in claims(paper)]
        assert places == sorted(places), paper
    figures = {word for one in claims("AdaFed") for word in one.place.split()}
    assert {word for word in figures if word.isdigit()} == set("123456")


def _place(claim):
    """A section's numbers; Table 7, of all of section 6, is with what 6.1 says of it.

    What Dual's Table IV shows without words is before section V's text.
    """
    if claim.paper == "Dual":
        return ["II-B", "Table IV", "V", "VI"].index(claim.place.split(";")[0])
    section = claim.place.removeprefix("section ").split(",")[0].split()[0]
    numbers = [int(part) for part in section.split(".")]
    return numbers if len(numbers) > 1 else [*numbers, 1]


def test_the_headline_numbers_are_as_printed():
    half = 0
    for one in headline_numbers():
        assert one.experiment in EXPERIMENTS and one.paper in PAPERS
        keys = one.measure.keywords
        if set(keys) == {"run", "target"}:
            marks = printed_rounds.printed(one.experiment, keys["run"])
            assert one.printed == f"{marks[keys['target']]:.0f}", one.says
            half += 1
    assert half == 7
