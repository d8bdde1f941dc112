"""A small CelebA: 60 photos of one color each, which says whose and which it is."""

import json

import pytest
from PIL import Image

import leaf_data


class Toy:
    """Photo k, from 1: whose it is, what it shows, and its one color."""

    COUNT = 60
    HEADER = "5_o_Clock_Shadow Blurry Male Smiling Young"
    # What LEAF's JSON and TFF's database hold of them, already split.
    TRAIN = {"20": [7, 1, 13], "60": [5, 11, 17, 23]}
    TEST = {"20": [19], "60": [29]}

    @staticmethod
    def load(folder, **options):
        return leaf_data.load("celeba", folder, **options)

    @staticmethod
    def identity(k):
        return 10 * (1 + k % 6)  # 10 photos each of 10, 20, ... 60.

    @staticmethod
    def smiling(k):
        return k % 3 == 0

    @staticmethod
    def blurry(k):
        return k % 4 == 0

    @classmethod
    def color(cls, k):
        return (k, cls.identity(k), 255 * cls.smiling(k))

    @staticmethod
    def name(k):
        return f"{k:06d}.jpg"

    @classmethod
    def write_identities(cls, folder, edit=lambda lines: lines):
        numbers = range(1, cls.COUNT + 1)
        lines = [f"{cls.name(k)} {cls.identity(k)}" for k in numbers]
        (folder / "identity_CelebA.txt").write_text("\n".join(edit(lines)) + "\n")

    @classmethod
    def write_attributes(cls, folder, edit=lambda lines: lines):
        lines = [str(cls.COUNT), cls.HEADER + " "]
        for k in range(1, cls.COUNT + 1):
            bits = [1, 1 if cls.blurry(k) else -1, -1, 1 if cls.smiling(k) else -1, 1]
            lines.append(f"{cls.name(k)} {' '.join(f'{bit:2d}' for bit in bits)}")
        path = folder / "list_attr_celeba.txt"
        path.write_text("\r\n".join(edit(lines)) + "\r\n")

    @classmethod
    def write_json(cls, path, users, change=lambda data: data):
        """LEAF's JSON: labels are floats, as (-1 + 1) / 2 and (1 + 1) / 2 in Python."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            user: dict(x=list(map(cls.name, p)), y=[float(cls.smiling(k)) for k in p])
            for user, p in users.items()
        }
        document = {
            "users": list(users),
            "num_samples": [len(photos) for photos in users.values()],
            "user_data": change(data),
        }
        path.write_text(json.dumps(document))
        return path

    @classmethod
    def photos(cls, examples, client):
        """Which photos a client's examples are, by their color; the rest is checked."""
        found = examples.client(client)
        images = found["x"]
        assert images.shape[1:] == (64, 64, 3)
        assert (images == images[:, :1, :1]).all()
        numbers = images[:, 0, 0, 0].tolist()
        for k, image, y, sharp in zip(numbers, images, found["y"], found["sharp"]):
            assert tuple(image[0, 0]) == cls.color(k)
            assert str(cls.identity(k)) == client
            assert (y, sharp) == (cls.smiling(k), not cls.blurry(k))
        return numbers

    @classmethod
    def all_photos(cls, data):
        return {
            client: [
                cls.photos(examples, client)
                for examples in (data.train_examples, data.test_examples)
            ]
            for client in data.client_ids
        }


@pytest.fixture(scope="session")
def toy():
    return Toy


@pytest.fixture
def raw(tmp_path, toy):
    """LEAF's raw layout; PNG, as LEAF's users have it, where the text says .jpg."""
    folder = tmp_path / "data" / "raw"
    (folder / "img_align_celeba").mkdir(parents=True)
    for k in range(1, toy.COUNT + 1):
        image = Image.new("RGB", (17, 21), toy.color(k))
        image.save(folder / "img_align_celeba" / f"{k:06d}.png")
    toy.write_identities(folder)
    toy.write_attributes(folder)
    return folder
