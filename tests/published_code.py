"""Run folders as the authors' published code writes them, by hand."""

MNIST_LINES = """Local dataset type: non-iid
Local learning rate: 0.1
E (local epochs): 5
B (local batch size): None
C (fraction of clients): 0.1
K (number of clients): 3
Target accuracy: 0.95
Permutation: 5""".splitlines()
# Test labels of three clients; the published code writes them in any order.
CLIENTS = ANNA, BERT, CARL = [(7, 2, 1, 0), (4, 1, 4, 9), (5, 9, 0, 6)]
WRONG = 3  # A label that none of the clients has.
# Round by round, the clients as the shuffled list has them: (labels, right).
ROUNDS = [[(BERT, 1), (ANNA, 2), (CARL, 0)], [(CARL, 3), (BERT, 2), (ANNA, 4)]]


def write_theirs(folder, lines=MNIST_LINES, rounds=ROUNDS, floats=False):
    """Writes a run of the published code."""
    folder.mkdir(parents=True)
    (folder / "params.txt").write_bytes("\r\n".join(lines).encode())
    (folder / "accuracy.csv").write_text("n_round,%_clients,aggr_accuracy\n")
    for number, clients in enumerate(rounds, start=1):
        place = folder / f"round_{number}"
        place.mkdir()
        for client, (labels, num_right) in enumerate(clients, start=1):
            answers = [y if n < num_right else WRONG for n, y in enumerate(labels)]
            rows = [f"{float(a) if floats else a},{y}" for a, y in zip(answers, labels)]
            text = "\n".join(["y_pred,y_true", *rows, ""])
            (place / f"client_{client}.csv").write_text(text)
    return folder
