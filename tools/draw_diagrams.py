"""Draws the documents' diagrams, docs/images/*.svg.

python tools/draw_diagrams.py docs/images
"""

import pathlib
import sys

from svg_drawing import Drawing


def idea():
    """Draws how one aggregation gives the model of every ordering."""
    d = Drawing(
        860, 330,
        "One aggregation, every ordering",
        "Clients train once and send their update weighted by products of their "
        "criteria. The server adds them up and sees the sums only. From the same sums "
        "follows the model of every ordering of the criteria.",
    )  # fmt: skip
    d.words(130, 36, "each client trains once", "soft", 13)
    clients = [
        "600 examples, 2 labels",
        "600 examples, 4 labels",
        "20 examples, 1 label",
    ]
    for k, lines in enumerate(clients):
        y = 56 + 82 * k
        d.box(24, y, 212, 62, "client", f"client {k + 1}", lines)
        d.arrow((236, y + 31), (338, 100 + 52 * k))
    lines = ["of criteria × update,", "one for each set:", "DS, LD, MD,", "DS·LD, …"]
    d.box(340, 70, 172, 166, "sum", "sums", *lines)
    d.words(426, 36, "the server sees sums only", "soft", 13)
    orderings = ["DS", "LD, DS, MD", "any other order"]
    lines = ["federated averaging", "many labels first", "no new training"]
    for k, (name, words) in enumerate(zip(orderings, lines)):
        y = 56 + 82 * k
        d.arrow((512, 100 + 52 * k), (604, y + 31))
        d.box(606, y, 226, 62, "server", f"model of {name}", words)
    d.words(719, 36, "every ordering’s model", "soft", 13)
    d.words(
        430, 316,
        "DS: dataset size · LD: label diversity · MD: how little the model moved",
        "soft", 13,
    )  # fmt: skip
    return d


def one_round():
    """Draws the path of one round."""
    d = Drawing(
        860, 520,
        "The path of one round",
        "The server broadcasts its model. Each client trains it, measures its criteria "
        "and multiplies its update by the product of each set of criteria. Sums go "
        "back. The server weighs the sums by the ordering's factors, adds them, and "
        "takes a step of its optimizer.",
    )  # fmt: skip
    d.area(20, 16, 350, 488, "server")
    d.area(490, 16, 350, 488, "clients, many in a pack")
    d.box(46, 52, 298, 66, "server", "model w", "and the round’s number")
    d.arrow((344, 85), (514, 85), label="broadcast", at=(430, 76))
    d.box(516, 52, 298, 66, "client", "train", "w → wₖ, by local SGD")
    d.arrow((665, 118), (665, 150))
    d.box(
        516, 152, 298, 66, "client", "measure criteria", "r[k, i] from data and models"
    )
    d.arrow((665, 218), (665, 250))
    d.box(516, 252, 298, 66, "client", "multiply",
          "r_S[k] = ∏ r[k, i] over i in S, for each set S")  # fmt: skip
    d.arrow((665, 318), (665, 350))
    sent = ["for each S:  r_S[k] · (w − wₖ)", "totals:  r[k, i]", "for each S:  r_S[k]"]
    d.box(516, 352, 298, 128, "sum", "add up over the pack", *sent)
    d.arrow((514, 416), (346, 416), label="sums only", at=(430, 407))
    d.box(46, 382, 298, 98, "sum", "sums over all packs", "sum_S of updates",
          "totals T, monomials")  # fmt: skip
    d.arrow((195, 382), (195, 332))
    d.box(46, 250, 298, 80, "server", "factor_S = a_S / T_S / Σₖ s[k]",
          "a_S: what the score in force", "asks of each sum")  # fmt: skip
    d.arrow((195, 250), (195, 220))
    d.box(46, 152, 298, 66, "server", "update = Σ factor_S · sum_S",
          "optimizer: w ← w − rate · update")  # fmt: skip
    d.arrow((195, 152), (195, 120))
    return d


def adjustment():
    """Draws online adjustment, DA's Algorithm 1."""
    d = Drawing(
        860, 400,
        "Online adjustment of the ordering",
        "The cohort trains once and the sums of all sets of criteria come back. The "
        "server makes the model of an ordering from them and all clients judge it. If "
        "it is as good as the round before it is kept; otherwise the next ordering is "
        "tried, and when none is left the best of those tried is kept.",
    )  # fmt: skip
    d.box(
        30, 40, 230, 84, "client", "train", "the cohort, once", "2ᵐ − 1 sums come back"
    )
    d.arrow((260, 82), (314, 82))
    d.box(316, 40, 230, 84, "server", "make a model", "of the ordering in force,",
          "from the same sums")  # fmt: skip
    d.arrow((546, 82), (598, 82))
    d.box(
        600,
        40,
        230,
        84,
        "client",
        "judge",
        "all clients count",
        "their correct examples",
    )
    d.arrow((715, 124), (715, 168))
    d.box(
        580,
        170,
        250,
        66,
        "plain",
        "as many correct as",
        "the last round’s model, or more?",
    )
    d.arrow((580, 203), (290, 203), label="yes", at=(520, 194))
    d.box(58, 170, 230, 66, "server", "keep this model", "and its ordering")
    d.arrow((705, 236), (705, 288), label="no", at=(722, 266), anchor="start")
    d.box(580, 290, 250, 66, "plain", "is an ordering left", "that was not tested?")
    d.arrow((580, 323), (290, 323), label="no", at=(362, 314))
    d.box(58, 290, 230, 66, "server", "keep the best", "of those tested")
    d.arrow((580, 310), (431, 310), (431, 126), label="yes: take it", at=(478, 302))
    d.words(431, 388, "No client trains again: every ordering’s model follows from the "
            "same sums.", "soft", 13)  # fmt: skip
    return d


def worker():
    """Draws TFF's worker, which is isolated from the network."""
    d = Drawing(
        860, 250,
        "TFF's worker in a namespace of its own",
        "This process talks to a host process over a unix socket that only the user "
        "can open. The host and TFF's worker live in a private network namespace, and "
        "the worker's port exists there only. A pipe tells the host when this process "
        "has ended.",
    )  # fmt: skip
    d.box(30, 76, 210, 96, "server", "this process", "your program,", "with tff_pmc")
    d.area(410, 30, 426, 196, "private user and network namespace")
    d.box(436, 76, 160, 96, "plain", "host", "worker_host.py", "relays bytes")
    d.box(662, 76, 150, 96, "plain", "worker", "TFF’s own", "worker_binary")
    d.arrow(
        (240, 104), (434, 104), both=True, label="unix socket, mode 0600", at=(325, 95)
    )
    d.arrow((240, 148), (434, 148), label="pipe: when it ends,\nthe host ends",
            at=(325, 168))  # fmt: skip
    d.arrow((596, 124), (660, 124), both=True, label="port", at=(628, 115))
    d.words(737, 198, "nobody outside", "soft", 13)
    d.words(737, 214, "can reach it", "soft", 13)
    return d


def cluster():
    """Draws the two ways to spread work over a cluster."""
    d = Drawing(
        860, 480,
        "What a cluster shares out",
        "With spread runs, each worker makes a whole run: it loads the data by itself "
        "and writes the run's folder. With spread clients, each worker keeps packs of "
        "clients and trains them; their sums are merged by pairs on the workers, and "
        "one sum returns to the driver.",
    )  # fmt: skip
    d.words(30, 40, "--spread=runs: a run for each worker", "ink", 15, "start", 600)
    d.box(30, 94, 150, 66, "server", "driver", "the command")
    names = ["DS, seed 0", "LD, seed 0", "DS, seed 1"]
    for k, name in enumerate(names):
        y = 56 + 52 * k
        d.arrow((180, 127), (308, y + 20))
        d.box(310, y, 260, 40, "client", f"worker {k + 1}: run {name}")
        d.arrow((570, y + 20), (668, 127))
    d.words(232, 84, "order", "soft", 13)
    d.box(670, 84, 160, 86, "plain", "shared folder", "data, runs,", "checkpoints")
    d.words(
        30, 252, "--spread=clients: the packs of one round", "ink", 15, "start", 600
    )
    d.box(30, 316, 150, 66, "server", "driver", "model, coefficients")
    for k in range(4):
        y = 272 + 46 * k
        d.arrow((180, 349), (308, y + 18))
        d.box(310, y, 190, 36, "client", f"worker {k + 1}: pack {k + 1}")
        d.arrow((500, y + 18), (578, 313 + 92 * (k // 2) - 23 + 12))
    d.words(232, 300, "model", "soft", 13)
    for k in range(2):
        y = 280 + 92 * k + 4
        d.box(580, y, 110, 36, "sum", "sum of two")
        d.arrow((690, y + 18), (738, 349))
    d.box(740, 326, 96, 46, "sum", "one sum")
    d.arrow((788, 372), (788, 458), (105, 458), (105, 384), label="back to the driver",
            at=(650, 450))  # fmt: skip
    return d


DIAGRAMS = {
    "adjustment": adjustment,
    "cluster": cluster,
    "idea": idea,
    "round": one_round,
    "worker": worker,
}


def main():
    """Draws all into the folder that is named."""
    for name, draw in DIAGRAMS.items():
        draw().write(pathlib.Path(sys.argv[1]) / f"{name}.svg")


if __name__ == "__main__":
    main()
