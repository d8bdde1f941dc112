"""What `import tff_pmc` hands on, and that it is light."""

import pytest

import tff_pmc


def test_every_exported_name_exists():
    for name in tff_pmc.__all__:
        assert getattr(tff_pmc, name) is not None
    assert set(tff_pmc.__all__) <= set(dir(tff_pmc))
    with pytest.raises(AttributeError, match="'tff_pmc' has no attribute 'nothing'"):
        tff_pmc.nothing  # noqa: B018


@pytest.mark.parametrize("package", ["aggregation", "clients", "models", "processes"])
def test_exported_names_exist_and_are_documented(package):
    module = __import__(f"tff_pmc.{package}", fromlist=["__all__"])
    for name in module.__all__:
        exported = getattr(module, name)
        if callable(exported):
            assert exported.__doc__, name
