"""What the site has besides docs/: root documents, flags, results, notebooks, examples.

MkDocs runs this (`hooks` in mkdocs.yml). Links in the repository's Markdown are those
of the repository, so that they work wherever its files are shown. Here each of them
becomes the link to the page or the file of the site. A link whose target is not there
stays as it is, and MkDocs, which is strict, stops at it.
"""

import json
import pathlib
import posixpath
import re
import urllib.parse

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

from tff_pmc.experiments.flags import flag_help

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The documents outside docs/ that are pages, and their places on the site.
PAGES = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "results/README.md": "results/index.md",
    "results/paper/README.md": "results/paper/index.md",
}
# The page that is generated from the declared settings; no file of it is kept.
FLAGS = "docs/flags.md"
# How much more a page counts in the search than another: guides come first, then flags
# and pages of how it works; the list of changes and kept results come last.
BOOSTS = {
    "own_code.md": 8,
    **dict.fromkeys(("install.md", "start.md", "own_data.md", "extend.md"), 4),
    **dict.fromkeys(("flags.md", "architecture.md", "numbers_and_words.md"), 4),
    "changelog.md": 0.1,
}
# Stands between the theme and its search. A page that is opened as a file may start no
# worker but from text that it has. A query may have a flag's dashes, which would leave
# words out, the British spelling of a word, words such as "a", which begin others, and
# plurals: the search completes a word, so that its singular finds both.
SEARCH = r"""
const Started = Worker, source = SOURCE, spellings = SPELLINGS;
window.Worker = function (address) {
  const own = location.protocol === "file:" && URL.createObjectURL(new Blob([source]));
  const worker = new Started(own || address);
  const post = worker.postMessage.bind(worker);
  worker.postMessage = (message) => post(typeof message.data !== "string" ? message : {
    ...message,
    data: message.data.replace(/(^|\s)-+/g, "$1")
      .replace(/\b(a|an|and|for|in|my|of|on|or|the|to|with|your)\s+/gi, "")
      .replace(/\w+/g, (word) => spellings[word.toLowerCase()] || word)
      .replace(/\b(\w\w+[^s\W])s\b/g, "$1"),
  });
  return worker;
};
"""
# In the search's worker: what tells two sets of words apart.
EDGE = "e=e+s+o.id"
LINK = re.compile(r'(?<=\]\()([^)\s"]+)')

# The file of the repository behind each page that is not in docs/.
_sources = {}


def on_files(files, config):
    """Adds the pages and files that do not lie in docs/."""
    _sources.clear()
    for source, place in PAGES.items():
        if (ROOT / source).is_file():
            _add_page(files, config, place, source, (ROOT / source).read_text("utf-8"))
    _add_page(files, config, "flags.md", FLAGS, flag_help.markdown())
    for path in sorted((ROOT / "results").rglob("*")):
        source = path.relative_to(ROOT).as_posix()
        if path.is_dir():
            if posixpath.join(source, "README.md") not in PAGES:
                _add_page(files, config, f"{source}/index.md", source, _listing(path))
        elif path.suffix == ".md":
            if source not in PAGES:
                _add_page(files, config, source, source, path.read_text("utf-8"))
        else:
            files.append(File.generated(config, source, abs_src_path=str(path)))
    _add_notebooks(files, config)
    return files


def _add_page(files, config, place, source, text):
    _sources[place] = source
    files.append(File.generated(config, place, content=text))


def _add_notebooks(files, config):
    folder = ROOT / "notebooks"
    lines = ["# Notebooks", ""]
    for path in sorted(folder.glob("*.ipynb")):
        text = notebook_text(json.loads(path.read_text("utf-8")))
        title = re.search(r"^# (.+)", text, re.MULTILINE)
        lines.append(f"- [{title.group(1) if title else path.stem}]({path.name})")
        text += f"\n\n[The notebook's file](../notebooks/{path.name}#file)\n"
        source = path.relative_to(ROOT).as_posix()
        _add_page(files, config, f"notebooks/{path.stem}.md", source, text)
    _add_page(files, config, "notebooks/index.md", "notebooks", "\n".join(lines))


def notebook_text(notebook):
    """Returns a notebook's cells as Markdown, without outputs."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and text:
            text = f"```python\n{text}\n```"
        parts.append(text)
    return "\n\n".join(parts)


def _listing(folder):
    """Returns the page of a folder of results: its pictures, and links to the rest."""
    names = sorted(path.name for path in folder.iterdir() if path.name != "index.md")
    lines = [f"# {folder.name}", ""]
    for name in names:
        if name.endswith(".png"):
            lines += [f"![{name}]({name})", ""]
    lines += [f"- [{name}]({name})" for name in names if not name.endswith(".png")]
    return "\n".join(lines)


def on_page_markdown(markdown, page, config, files):
    """Turns the repository's links into the site's, and shows the examples' code.

    A page that links to a file of `docs/examples/` has the file at its end. In a search
    kept results come last.
    """
    place = page.file.src_uri
    boost = 1e-6 if place.startswith("results/reproduced/") else BOOSTS.get(place)
    if boost:
        page.meta["search"] = {"boost": boost}
    source = _sources.get(place, f"docs/{place}")
    # The page of a folder stands in the folder, its links too.
    here = source if (ROOT / source).is_dir() else posixpath.dirname(source)
    examples = []

    def replace(match):
        path, mark, anchor = match.group(1).partition("#")
        if not path or urllib.parse.urlsplit(path).scheme:
            return match.group(1)
        target = posixpath.normpath(posixpath.join(here, path))
        if target.startswith("docs/examples/") and (ROOT / target).is_file():
            if target not in examples:
                examples.append(target)
            return f"#{posixpath.basename(target).replace('.', '-')}"
        destination = _place(target, anchor == "file")
        if destination is None:
            return match.group(1)
        if files.get_file_from_path(destination) is None:
            path = str(ROOT / target)
            files.append(File.generated(config, destination, abs_src_path=path))
        mark = "" if anchor == "file" else mark + anchor
        return posixpath.relpath(destination, posixpath.dirname(place)) + mark

    markdown = LINK.sub(replace, markdown)
    for target in examples:
        name = posixpath.basename(target)
        anchor, kind = name.replace(".", "-"), posixpath.splitext(name)[1]
        language = {".py": "python", ".sh": "bash", ".toml": "toml"}.get(kind, "text")
        code = (ROOT / target).read_text("utf-8")
        markdown += f"\n\n## {name} {{: #{anchor} }}\n\n```{language}\n{code}```\n"
    return markdown


def on_page_content(html, page, **_):
    """Wraps the claims in an element that the style sheet lays out for phones."""
    claims = page.file.src_uri == "claims.md"
    return f'<div class="claims">{html}</div>' if claims else html


@event_priority(-100)  # When the plugin has written the index.
def on_post_build(config):
    """Writes scripts of the search and of its index, since a file cannot read JSON."""
    folder = pathlib.Path(config.site_dir)
    search = folder / "search"
    index = (search / "search_index.json").read_text("utf-8")
    (search / "search_index.js").write_text(f"var __index = {index}", "utf-8")
    (worker,) = folder.glob("assets/javascripts/workers/search.*.min.js")
    source = worker.read_text("utf-8")
    # lunr 2.3.9 takes sets of words for equal whose edges and numbers read alike in a
    # row ("1" to 23, "12" to 3), and a search that meets such a word finds nothing.
    if source.count(EDGE) != 1:
        raise PluginError(
            f"{worker.name} has no {EDGE}, which lunr 2.3.9 has: is this another "
            "search? See EDGE in tools/site_pages.py"
        )
    source = source.replace(EDGE, f'{EDGE}+"/"')
    worker.write_text(source, "utf-8")
    text = index.replace(r"\n", " ").lower()
    words = sorted(set(re.findall(r"\b[a-z]+iz[a-z]+\b", text)))
    values = {
        "SOURCE": source,
        "SPELLINGS": {word.replace("iz", "is"): word for word in words},
    }
    script = re.sub(
        "|".join(values), lambda match: json.dumps(values[match[0]]), SEARCH
    )
    (search / "search.js").write_text(script, "utf-8")


def _place(target, as_file):
    """Returns where the site has a file or folder of the repository, or None."""
    path = ROOT / target
    if target == FLAGS:
        return "flags.md"
    if target.startswith("..") or not path.exists():
        return None
    if target in PAGES:
        return PAGES[target]
    if path.is_dir():
        inside = target == "notebooks" or target.split("/")[0] == "results"
        return f"{target}/index.md" if inside else None
    if target.startswith("docs/"):
        return target[len("docs/") :]
    if target.endswith(".ipynb") and not as_file:
        return target[: -len(".ipynb")] + ".md"
    return target if target.startswith("results/") else f"files/{target}"
