"""docs/text.md: its commands and snippets run, and a model continues a line."""

import importlib.util
import json
import re
import shlex
import textwrap

import pytest
from commands import ROOT, python
from leaf_documents import write_leaf

import leaf_data
from leaf_data.text import LETTERS

PAGE = (ROOT / "docs" / "text.md").read_text("utf-8")
SCRIPT = ROOT / "docs" / "examples" / "text" / "continue_line.py"
COMMANDS = [
    shlex.split(text.replace("\\\n", " "))
    for text in re.findall(r"^ +\.venv/bin/python ((?:.*\\\n)*.*)$", PAGE, re.MULTILINE)
]
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RUNNER = f"""
import json, runpy, sys
sys.path.insert(0, {str(ROOT)!r})
import run_experiments
for script, *arguments in json.loads(sys.argv[1]):
    sys.argv = [script, *arguments]
    if script == "run_experiments.py":
        code = run_experiments.main(sys.argv)
        assert code == 0, (arguments, code)
    else:
        runpy.run_path({str(ROOT)!r} + "/" + script, run_name="__main__")
"""
VERSE = "Now is the winter of our discontent made glorious summer by this sun of York; "
TEXTS = {"first": VERSE * 5, "second": VERSE * 7}


def write_files(folder):
    """LEAF's files of two roles and of two accounts."""
    for part, sizes in (("train", (6, 9)), ("test", (3, 4))):
        plays = {
            f"ROLE_{k}": {
                "x": [(VERSE * 2)[k + n : k + n + 80] for n in range(size)],
                "y": [*VERSE[:size]],
            }
            for k, size in enumerate(sizes)
        }
        tweets = {
            f"account_{k}": {
                "x": [["1", "date", "q", "u", f"so good {n} {k}"] for n in range(size)],
                "y": [4 * (n % 2) for n in range(size)],
            }
            for k, size in enumerate(sizes)
        }
        for name, users in (("shakespeare", plays), ("sent140", tweets)):
            path = folder / "leaf" / "data" / name / "data" / part
            write_leaf(path / f"all_data_niid_2_keep_0_{part}_8.json", users)


def run_own_text(folder, monkeypatch):
    """Runs the page's snippet on texts of one's own, which writes a store."""
    monkeypatch.chdir(folder)
    exec(SNIPPETS[1], {"texts": TEXTS})


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    """As typed, but for one round of two clients."""
    write_files(tmp_path)
    run_own_text(tmp_path, monkeypatch)
    commands = [
        [
            re.sub(r"^--(rounds|clients_per_round)=.*", r"--\1=1", word)
            for word in command
        ]
        for command in COMMANDS
    ]
    assert [command[0] for command in commands].count("run_experiments.py") == 4
    done = python("-c", RUNNER, json.dumps(commands), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "total variation" in done.stdout and "vocabulary: 80 letters" in done.stdout
    assert "\nTo be, or not to be" in done.stdout
    for folder in ("plays", "tweets", "mine"):
        assert (tmp_path / "runs" / folder / "report.html").exists()


def test_text_of_ones_own_becomes_windows_that_do_not_overlap(tmp_path, monkeypatch):
    write_files(tmp_path)
    run_own_text(tmp_path, monkeypatch)
    data = leaf_data.open_store(tmp_path / "my_texts")
    assert data.client_ids == ("first", "second")
    for author, text in TEXTS.items():
        train, test = (
            part.client(author) for part in (data.train_examples, data.test_examples)
        )
        count = len(text) - 80
        starts = {
            "train": range(count - count // 10 - 80),
            "test": range(count - count // 10, count),
        }
        for part, client in (("train", train), ("test", test)):
            expected = [text[k : k + 80] for k in starts[part]]
            assert [data.vocabulary.decode(row) for row in client["x"]] == expected
            labels = "".join(text[k + 80] for k in starts[part])
            assert data.vocabulary.decode(client["y"]) == labels


def script_and_model(folder, length, vocabulary, predict, dtype="int32"):
    """The page's script, and a folder in which a model answers `predict(ids)`."""
    import tensorflow as tf

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, length], dtype, name="x")])
        def serve(self, x):
            return {"scores": 50.0 * predict(x)}

    module = Model()
    signatures = {"serving_default": module.serve}
    tf.saved_model.save(module, str(folder / "saved_model"), signatures)
    about = {"vocabulary": vocabulary.to_dict(), "input_shape": [None, length]}
    about["input_type"] = dtype
    (folder / "model.json").write_text(json.dumps(about))
    spec = importlib.util.spec_from_file_location("continue_line", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


TOKENS = leaf_data.Vocabulary("tokens", ("it", "is", "so", "good", "<UNK>"))


@pytest.mark.parametrize(
    ("line", "continued"), [("it", "it is so good"), ("so it is so it", "is so good")]
)
def test_a_model_of_positions_answers_at_the_last_token(tmp_path, line, continued):
    """This one's classes are more than the tokens, and padding is followed by `it`."""
    import tensorflow as tf

    def predict(x):
        return tf.one_hot((x + 1) % 5, 9)

    script = script_and_model(tmp_path, 4, TOKENS, predict, "int64")
    assert script.continue_line(tmp_path, line, count=3).endswith(continued)


def test_a_model_of_classes_does_not_continue_a_line(tmp_path):
    import tensorflow as tf

    script = script_and_model(tmp_path, 4, TOKENS, lambda x: tf.one_hot(x[:, 0] % 2, 2))
    with pytest.raises(SystemExit, match="predicts 2 classes, and not which of the 5"):
        script.continue_line(tmp_path, "it")


def test_a_model_continues_a_line_letter_by_letter(tmp_path):
    """This one's most likely letter is always the one after the last."""
    import tensorflow as tf

    vocabulary = leaf_data.Vocabulary("letters", tuple(LETTERS))
    script = script_and_model(
        tmp_path, 80, vocabulary, lambda x: tf.one_hot(x[:, -1] + 1, len(LETTERS))
    )
    assert script.continue_line(tmp_path, "to a", count=4) == "to abcde"
    drawn = {
        script.continue_line(tmp_path, "to a", count=1, temperature=1e3, seed=seed)
        for seed in range(8)
    }
    assert len(drawn) > 1


def test_the_page_shows_the_script():
    loop = textwrap.dedent(SNIPPETS[0])
    assert textwrap.indent(loop, "    ") in SCRIPT.read_text("utf-8")
