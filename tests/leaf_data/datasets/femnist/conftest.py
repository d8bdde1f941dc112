"""A small FEMNIST in LEAF's form, whose images tell whose and which they are."""

import json

import pytest

import leaf_data


class Toy:
    """Writes writers' images and recognizes them."""

    SPLIT = {  # client -> whose, train and test sizes; in order
        "c": (3, 18, 2),
        "b": (2, 8, 2),
        "e": (5, 0, 3),
        "d": (4, 9, 2),
        "a": (1, 1, 1),
    }

    @staticmethod
    def load(folder, **options):
        return leaf_data.load("femnist", folder, **options)

    @staticmethod
    def user(number, size, first=0):
        """Examples that tell whose and which they are: two pixels and the label."""
        x = [[1.0] * 784 for _ in range(size)]
        for k, image in enumerate(x, first):
            image[0], image[783] = number / 255, k / 255
        return {"x": x, "y": [(number + k) % 62 for k in range(first, first + size)]}

    @staticmethod
    def write(path, users):
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "users": list(users),
            "num_samples": [len(data["y"]) for data in users.values()],
            "user_data": dict(reversed(list(users.items()))),
        }
        path.write_text(json.dumps(document))

    @staticmethod
    def seen(examples):
        """client -> [(whose, which)] of its examples; the labels have to agree."""
        found = {}
        for client in examples.client_ids:
            own = examples.client(client)
            assert [(int(x[0, 0]) + int(x[27, 27])) % 62 for x in own["x"]] == list(
                own["y"]
            )
            found[client] = [(int(x[0, 0]), int(x[27, 27])) for x in own["x"]]
        return found

    @staticmethod
    def numbered(number, start, stop):
        """What `seen` says of a run of a user's images."""
        return [(number, k) for k in range(start, stop)]

    @classmethod
    def write_split(cls, folder):
        """Two files of three writers, files out of order; one has a test part only."""
        name = "data/{0}/all_data_{1}_niid_05_keep_0_{0}_9.json"
        user, write = cls.user, cls.write
        write(folder / name.format("train", 10), {"d": user(4, 9), "a": user(1, 1)})
        write(
            folder / name.format("test", 10),
            {"d": user(4, 2, 9), "a": user(1, 1, 1)},
        )
        write(folder / name.format("train", 2), {"c": user(3, 18), "b": user(2, 8)})
        write(
            folder / name.format("test", 2),
            {"c": user(3, 2, 18), "e": user(5, 3), "b": user(2, 2, 8)},
        )


@pytest.fixture(scope="session")
def toy():
    return Toy
