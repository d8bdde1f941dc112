"""Clears the outputs of the notebooks, so that a commit has what was written alone.

    python tools/clear_notebooks.py             notebooks/*.ipynb
    python tools/clear_notebooks.py FILE ...    these

Jupyter puts numbers, outputs and the machine's version of Python into a notebook when
it runs. What this leaves is the same whoever saved it, so that differences are small.
"""

import argparse
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "notebooks"
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}


def cleared(text):
    """Returns a notebook without outputs, numbers and metadata of a machine."""
    notebook = json.loads(text)
    notebook["metadata"] = METADATA
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["execution_count"] = None
            cell["outputs"] = []
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main():
    """Rewrites the notebooks that are not cleared, and names them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    files = parser.parse_args().files or sorted(FOLDER.glob("*.ipynb"))
    for path in files:
        text = path.read_text(encoding="utf-8")
        if cleared(text) != text:
            path.write_text(cleared(text), encoding="utf-8")
            print(f"cleared {path}")


if __name__ == "__main__":
    main()
