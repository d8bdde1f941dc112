"""`--inspect`: what each ordering's weights would be."""


def test_inspect_trains_nothing_without_a_model_criterion(run):
    done = run("--experiment=quickstart", "--inspect", "--criteria=DS,LD")
    assert done.returncode == 0, done.stderr
    assert "100 clients" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    orderings = [line[0] for line in lines if len(line) == 4 and line[0][0] in "DL"]
    assert orderings == ["DS", "LD", "DS,LD", "LD,DS"]
    assert "cohorts: 100%" in done.stderr and "3/3" in done.stderr


def test_inspect_shows_every_orderings_weights(run):
    done = run("--experiment=quickstart", "--inspect", "--rounds=1")
    assert done.returncode == 0, done.stderr
    for name in ("DS ", "MD,LD,DS", "40 to", "effective"):
        assert name in done.stdout
