"""Measures memory and seconds to load a FEMNIST of full size from LEAF's JSON.

    python benchmarks/femnist_loading.py                 # about 10 GB of disk
    python benchmarks/femnist_loading.py --files=4

It writes files in LEAF's format into a temporary folder, with random images whose text
is as long as that of real ones (5.1 KB), loads them twice, each time in a process of
its own, and removes them. The first load reads the JSON and writes the cache, the
second reads the cache, which is then still in the system's memory.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np
import tqdm

import leaf_data

PIXELS_WITH_INK = 95  # Of 784; the others are paper, "1.0".
NUM_IMAGES = 500  # Distinct images: creating their text takes longer than writing.


def image_texts(generator):
    """Returns the JSON text of some random images."""
    images = np.ones((NUM_IMAGES, 784))
    for image in images:
        places = generator.choice(784, PIXELS_WITH_INK, replace=False)
        image[places] = generator.integers(0, 255, PIXELS_WITH_INK) / 255
    return [json.dumps(image.tolist()) for image in images]


def write_file(path, users, sizes, texts, generator):
    """Writes one file in the format of LEAF's scripts."""
    with open(path, "w") as file:
        header = json.dumps({"users": users, "num_samples": sizes})
        file.write(header[:-1] + ', "user_data": {')
        for place, (user, size) in enumerate(zip(users, sizes)):
            chosen = generator.integers(0, len(texts), size)
            x = ", ".join(texts[k] for k in chosen)
            y = json.dumps(generator.integers(0, 62, size).tolist())
            comma = ", " if place else ""
            file.write(f'{comma}"{user}": {{"x": [{x}], "y": {y}}}')
        file.write("}}")


def write_federation(folder, options):
    """Writes all files: split 90 to 10, or unsplit."""
    generator = np.random.default_rng(0)
    texts = image_texts(generator)
    parts = {"all_data": 1.0} if options.unsplit else {"train": 0.9, "test": 0.1}
    for number in tqdm.trange(options.files, desc="writing"):
        users = [f"f{number:02d}{k:02d}_{k}" for k in range(options.writers)]
        spread = options.images // 2
        sizes = generator.integers(-spread, spread + 1, len(users)) + options.images
        for part, share in parts.items():
            (folder / part).mkdir(exist_ok=True)
            tag = "" if options.unsplit else f"_niid_0_keep_0_{part}_9"
            path = folder / part / f"all_data_{number}{tag}.json"
            counts = [max(1, int(size * share)) for size in sizes]
            write_file(path, users, counts, texts, generator)


def load(folder):
    """Loads once and prints time and memory; the child process runs this."""
    start = time.perf_counter()
    data = leaf_data.load("femnist", folder)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    total = data.train_examples.num_examples + data.test_examples.num_examples
    print(json.dumps([seconds, peak, len(data.client_ids), total]))


def main():
    """Writes the data, loads it twice, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=36)
    parser.add_argument("--writers", type=int, default=100, help="writers per file")
    parser.add_argument(
        "--images", type=int, default=227, help="mean images per writer"
    )
    parser.add_argument(
        "--unsplit", action="store_true", help="all_data, not split yet"
    )
    parser.add_argument("--tmp", help="make the temporary folder here")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        load(options.child)
        return
    with tempfile.TemporaryDirectory(dir=options.tmp) as name:
        folder = pathlib.Path(name)
        write_federation(folder, options)
        rows = []
        for what in ("JSON, cache made", "cache"):
            command = [sys.executable, __file__, f"--child={name}"]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            rows.append((what, *json.loads(done.stdout)))
        sizes = {
            ending: sum(path.stat().st_size for path in folder.rglob(f"*.{ending}"))
            for ending in ("json", "npz")
        }
    _, _, _, writers, total = rows[0]
    print(
        f"{writers} writers, {total} images: JSON {sizes['json'] / 1e9:.2f} GB, cache "
        f"{sizes['npz'] / 1e9:.2f} GB"
    )
    print(f"{'':18}{'seconds':>9}{'peak GB':>9}")
    for what, seconds, peak, _, _ in rows:
        print(f"{what:18}{seconds:9.1f}{peak / 1e9:9.2f}")


if __name__ == "__main__":
    main()
