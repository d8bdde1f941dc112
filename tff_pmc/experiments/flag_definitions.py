"""The flags of `run_experiments.py` (no TensorFlow)."""

from __future__ import annotations

from absl import flags

from tff_pmc import scores, search
from tff_pmc.experiments import choices, named

FLAGS = flags.FLAGS
SEARCH = "lr_search"

flags.DEFINE_string(
    "experiment",
    "quickstart",
    f"One of: {', '.join(named.EXPERIMENTS)}; or lr_search, which finds the learning "
    "rate of --search_for.",
)
flags.DEFINE_string(
    "search_for",
    "mnist_noniid",
    "With --experiment=lr_search, the experiment whose rate is searched: the rate with "
    "which DS first brings half of the devices to its highest target, on a validation "
    "part of the training examples (PMC's rule).",
)
flags.DEFINE_list(
    "learning_rates", ["0.5", "0.215", "0.1"], "With --experiment=lr_search, the rates."
)
flags.DEFINE_multi_string(
    "priority",
    None,
    "An ordering of criteria, most important first, as DS or LD,DS,MD; or all: each "
    "criterion alone and every ordering. May be repeated: each is one run. DS is "
    "federated averaging.",
)
flags.DEFINE_list(
    "systems",
    None,
    "Of an experiment that compares systems (adafed_*, dual_criterion*): those to run, "
    "as fedavg,adafed; by default all.",
)
flags.DEFINE_enum(
    "score",
    None,
    list(scores.SCORES),
    "How the criteria that --priority names become a client's score (by default all "
    "that are measured, unless prioritized). owa and choquet sort a client's "
    "normalized criteria: with --normalization=range in one aggregation, otherwise in "
    "two, which keep the clients' updates in memory (docs/operators.md).",
)
flags.DEFINE_list(
    "score_weights",
    None,
    "As 0.5,0.3,0.2, sum 1: with --score=weighted_average of the criteria in the order "
    "of --priority; with --score=owa of the largest criterion, the next, the smallest.",
)
flags.DEFINE_enum(
    "quantifier",
    None,
    list(scores.QUANTIFIERS),
    "With --score=owa, weights by how many criteria have to be satisfied.",
)
flags.DEFINE_string(
    "capacity",
    None,
    "With --score=choquet: what each set of criteria is worth, as DS:0.4,LD:0.3,"
    "DS+LD:0.8; that of all is 1.",
)
flags.DEFINE_string("criteria", None, "The criteria the clients measure, as DS,LD,MD.")
WORDS = {
    "protocol": "Start from the papers' settings, or from those of the authors' "
    "published code: every difference of the two at once (docs/fidelity.md).",
    "model": "The model; each experiment has its own.",
    "conv_activation": "Activation of the convolutions.",
    "initializer": "Initial kernels.",
    "batch_norm": "celeba_reference_cnn's: frozen at the server, or aggregated.",
    "model_divergence": "MD over the whole model, or the mean over its kernels.",
    "cohort_rounding": "Of --clients_per_round below 1.",
    "reach": "When a device reaches a target accuracy.",
    "judge_on": "What orderings are judged on: the clients' test sets (the papers'), "
    "a validation part of their training examples, then not trained on; Dual's "
    "lambdas on the server's examples, or with test on the reported ones.",
    "femnist_source": "LEAF's JSON, or TFF's emnist_all.sqlite.",
    "celeba_source": "CelebA's own files, LEAF's JSON, or TFF's celeba.sqlite.",
    "client_rule": "Which of CelebA's identities are clients.",
    "missing_images": "CelebA's images that are not there: skip or refuse.",
    "client_optimizer": "The clients' optimizer, which begins anew in every round.",
    "server_set": "What AdaFed's server measures models on: the images that accuracy "
    "is reported on (the paper), or others.",
    "personalized_form": "Dual's personalized baseline by its formula, or its text.",
}
"""The flags that choose a word, and their help."""
for _name, _help in WORDS.items():
    flags.DEFINE_enum(_name, None, list(choices.CHOICES[_name]), _help)
flags.DEFINE_float("dropout", None, "celeba_reference_cnn's and keras_mnist_cnn's.")
flags.DEFINE_float("accuracy_power", None, "AdaFed: to which ACC is raised.")
flags.DEFINE_integer(
    "lambda_steps", None, "Dual: how many lambdas are tried, evenly from 0 to 1."
)
flags.DEFINE_float("alpha", None, "Dual's personalized: the new models' part.")
flags.DEFINE_float("beta", None, "Dual's momentum baseline: the momentum.")
flags.DEFINE_float("eta", None, "Dual's momentum baseline: the server's rate.")
flags.DEFINE_float("epsilon", None, "Dual's Laplace noise has the scale 1/epsilon.")
flags.DEFINE_integer("quantization_levels", None, "Dual's quantized baseline: Q.")
flags.DEFINE_integer(
    "num_clients", None, "Clients of adafed_1 (6 or 8) and dual_criterion (3 or 4)."
)
flags.DEFINE_integer("num_adversaries", None, "Clients of adafed_3 that are.")
flags.DEFINE_integer("images_per_client", None, "Training images of adafed_3.")
flags.DEFINE_float(
    "image_fraction", None, "Of CIFAR-10's images, by class, for quick trials."
)
flags.DEFINE_multi_enum(
    "adjustment",
    None,
    list(search.POLICIES),
    "Of the ordering in each round: fixed; backtracking (DA's Algorithm 1), which "
    "tests orderings until one is as good as the round before; or best_of_all. May be "
    "repeated: each --priority is run with each. DS alone has nothing to adjust.",
)
flags.DEFINE_float(
    "validation_fraction", None, "That part, with --judge_on=local_validation."
)
flags.DEFINE_bool(
    "predictions",
    None,
    "Record the predicted label of every test example in every round, which PMC's "
    "Tables 3, 5 and 7 and the export to the published code's form need.",
)
flags.DEFINE_integer("rounds", None, "Communication rounds.")
flags.DEFINE_float(
    "clients_per_round", None, "Clients in a round; below 1, a fraction of all."
)
flags.DEFINE_integer("local_epochs", None, "Local epochs, E.")
flags.DEFINE_integer("batch_size", None, "Local batch size, B; 0 is full batch.")
flags.DEFINE_float("learning_rate", None, "The clients' learning rate.")
flags.DEFINE_float(
    "server_learning_rate", None, "The server's rate; 1 takes the weighted mean."
)
flags.DEFINE_list(
    "seeds",
    None,
    "Several seeds, as 0,1,2,3,4: all runs are made under each, in folders seed_N, and "
    "effect.md holds every ordering against DS (every system against FedAvg, or Dual's "
    "against the weighted mean) seed by seed, beside the noise floor.",
)
flags.DEFINE_integer("seed", None, "Sets the four seeds below at once.")
for _name in ("partition", "model", "cohort", "batch"):
    flags.DEFINE_integer(f"{_name}_seed", None, f"Seed of the {_name}.")
flags.DEFINE_integer("num_shards", None, "Placements the cohort is packed into.")
flags.DEFINE_string(
    "data_dir",
    None,
    "Where the data is: MNIST's idx .gz files or mnist.npz, what LEAF's preprocess.sh "
    "made of FEMNIST, CelebA's raw folder, CIFAR-10's python batches or an image "
    "folder, Dual's places, or a folder with subfolders of these names.",
)
flags.DEFINE_string(
    "cache_dir",
    None,
    "Where data that is converted once is kept; by default beside the data.",
)
flags.DEFINE_float(
    "sample_fraction", None, "Of FEMNIST, by LEAF's niid rule (preprocess.sh --sf)."
)
flags.DEFINE_integer(
    "min_samples", None, "FEMNIST's writers with fewer are left out (preprocess.sh -k)."
)
flags.DEFINE_string(
    "output_dir", None, "A new folder for the results; default runs/EXPERIMENT-TIME."
)
flags.DEFINE_list(
    "compare",
    None,
    "Two folders, as A,B: a run or several, ours or as the authors' published code "
    "writes them. Compares them row by row and runs nothing; with --output_dir as "
    "comparison.csv, too.",
)
flags.DEFINE_string(
    "tables",
    None,
    "A folder of runs, ours or as the authors' published code writes them, of which "
    "the PMC tables and figure of --experiment are made again, into --output_dir.",
)
flags.DEFINE_string(
    "export",
    None,
    "A run's folder, recorded with --predictions, to be written into --output_dir in "
    "the form of the authors' published code, whose evaluation script then reads it.",
)
flags.DEFINE_bool(
    "resume",
    False,
    "Go on with the run that --output_dir holds, given the same flags: to exactly "
    "what it would have been without the interruption.",
)
flags.DEFINE_string(
    "normalization", None, "Of the criteria: sum (the papers'), max or range."
)
flags.DEFINE_string(
    "criteria_ranges",
    None,
    "For --normalization=range: CODE=LOW:HIGH for each criterion, comma-separated.",
)
flags.DEFINE_string(
    "client_table",
    None,
    "A CSV of client attributes, a column client and one for each attribute (boolean "
    "or in [0, 1]): they can be named in --criteria and --priority, and accuracy is "
    "recorded by group.",
)
flags.DEFINE_float(
    "clip_norm", None, "L2 norm to which clients clip their updates; 0 does not."
)
flags.DEFINE_bool(
    "inspect",
    False,
    "Describe the federation and each ordering's weights on the first cohorts; train "
    "nothing beyond what the criteria need.",
)
flags.DEFINE_bool(
    "private_worker",
    True,
    "Run TFF's worker in a network namespace of its own, so that nothing listens.",
)
