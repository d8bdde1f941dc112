"""Wrong flags and folders, each refused in one line with exit code 2."""

import subprocess
import sys

import pytest
from cli import ROOT, refusal, run


def test_help_imports_no_tensorflow():
    """In under two seconds: TensorFlow and TFF alone take longer."""
    code = (
        "import sys, runpy; sys.argv = ['run_experiments.py', '--help']\n"
        "try: runpy.run_path('run_experiments.py', run_name='__main__')\n"
        "except SystemExit as end: print('exit', end.code)\n"
        "print('tensorflow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.endswith("exit 0\nFalse False\n"), done.stderr
    assert "--priority" in done.stdout


# The flags, and what is said of them; capitals stand for what SHORT has.
BAD = """
--experiment=nothing | --experiment=nothing: unknown experiment 'nothing'
--experiment=quickstar | did you mean quickstart?
--priority=DS,XX | --priority=DS,XX: unknown criterion 'XX'
--priority=LD,LD | LD,LD names a criterion twice
--priority=DS;DS | --priority names DS twice
--priority=all;DS | --priority names DS twice
--priority=DS --rounds=3 -priority LD | --priority is given twice: give it once, with
--seeds=0 --seeds=4,5 | --seeds is given twice: give it once, with
--criteria=DS,LD,CB,MD,DS^2,LD^2 --priority=all | 6 criteria have too many orderings
--rounds=0 | --rounds must be at least 1, below 2^31, got 0
--rounds=many | --rounds=many
--rounds=99999999999999999999999 | --rounds must be at least 1, below 2^31, got 999
--local_epochs=2147483648 | --local_epochs must be at least 1, below
--batch_size=9999999999 | --batch_size must be 0 or more, below 2^31
--num_packs=9999999999 | --num_packs must be at least 1, below 2^31
--output_dir=gs://bucket/a | --output_dir=gs://bucket/a: URLs are not supported
--data_dir=s3://a | --data_dir=s3://a: URLs are not supported
--export= | --export= is empty:
--output_dir= | --output_dir= is empty:
--flagfile= | --flagfile=: no such file; the project has adafed_1.flags
--experiment= | --experiment= is empty:
--compare= | --compare= is empty:
--targets=20,20 | whole numbers from 1 to 100, each once
--targets=0.5 | '0.5' is not a whole number: percentages are whole numbers from 1 to 10
--targets=80,.955 | each once (did you mean 95.5?)
--targets=7_0 | --targets=7_0: '7_0' is not a whole number
--targets=٧٠ | is not a whole number
--targets=0,101 | --targets=0,101: percentages are whole numbers from 1 to 100
--targets= | '' is not a whole number
--until=target | --until must be targets; got 'target'
--output_dir=~nobody_here/a | ~nobody_here/a: this machine has no user of this name
--counterfactuals=orderings --counterfactual_rates=1_0 | '1_0' is not a number
--counterfactuals=averages:٠.٥ | the step must divide 1, as 0.25 does
--rounds=1_0 | --rounds=1_0: '1_0' is not a number: write digits from 0 to 9
--rounds=٣ | '٣' is not a number
--learning_rate=0_1 | --learning_rate=0_1: '0_1' is not a number
--seed=１ | '１' is not a number
--seeds=1,² | seeds must be whole numbers from 0, such
--tables=x --output_dir=y --targets=20,30 | --targets only applies to new runs, and
--plugin= | --plugin= is empty:
--dataset=minst | --dataset=minst: unknown data set 'minst' (did you mean mni
--model=mnist_cn | --model=mnist_cn: unknown model 'mnist_cn' (did you mean
--search_for=celebs | --search_for=celebs: unknown experiment 'celebs' (did
--tables=x --output_dir=y --seeds=0,1 | --seeds only applies to new runs, and
--export=x --output_dir=y --dataset=mnist | --dataset only applies to new runs, and
--export=x --output_dir=y --baseline=LD | --baseline needs --tables, --compare
--learning_rates=0.5 | --learning_rates only applies to --experiment=lr_search
--search_for=celeba --held_out=own | --search_for only applies to --experiment=lr_search
--inspect --seeds=0,1 | --seeds cannot be combined with --inspect: --inspect describes
--tables=x --output_dir=y --algorithms=sgd | --algorithms=sgd: unknown algorithm
--compare=x,y --dataset=minst | --dataset=minst: unknown data set
--learning_rate=-1 | --learning_rate must be above 0
--algorithms=median --max_update_norm=5 | have no effect with the algorithm median
--algorithms=momentum --normalization=max | have no effect with the algorithm momentum
--server_learning_rate=1e-40 | --server_learning_rate must be above 0, as a float32
--server_learning_rate=1e39 | --server_learning_rate must be above 0, as a float32
--no_such_flag | no_such_flag
--experiment=pmc_table4 | is a flag file, not an experiment: use --flagfile=exper
--mu=0.1 | unknown flag --mu: did you mean --prox_mu or --fedprox_mu?
--experiment=dual_criterion --sample_fraction=0.1 | did you mean --image_fraction?
--help=algoritms | --help=algoritms: unknown part of the help 'algoritms'
--local_epoch=3 | Did you mean: local_epochs
--resume | --resume needs the --output_dir of the run
stray | unexpected argument: stray
--flagfile=missing.flags | --flagfile=missing.flags: no such file; the project has
--criteria=DS,weight | --criteria=DS,weight: weight is a column of the record
--criteria=DS,MD --priority=LD | declared criteria are DS, MD
--clients_per_round=inf | --clients_per_round must be
--seed=-1 | --seed must be in
--criteria= | --criteria=
--priority=DS,,LD | --priority=DS,,LD
--normalization=range | needs --criteria_ranges
--tensorboard --inspect | --tensorboard cannot be combined with --inspect
--tables=results --export=results --output_dir=x | --export cannot be combined with
--data_dir=/no/such/dir | --data_dir=/no/such/dir is not a folder
--plugin=no_such_module | --plugin=no_such_module: No module named
--adjustment=greedy | --adjustment must be one of fixed, backtracking, best_of_all; got
--algorithms=owa --owa_quantifier= | --owa_quantifier= is empty
--experiment=femnist --protocol=reference_code | the experiment femnist does not have it
--experiment=lr_search --learning_rates=0.1,x | 'x' is not a number
--experiment=lr_search --learning_rates=nan | 'nan' is not a number
--experiment=lr_search --learning_rates=0.1,0.1 | is given twice
--experiment=lr_search --priority=LD | --priority cannot be combined with
--experiment=lr_search --record_clients=none | --record_clients cannot be combined
--experiment=lr_search --evaluate_clients=3 | --evaluate_clients cannot be combined
--experiment=lr_search --learning_rates=0.1,0.10000001 | a rate is given twice: 0.1, 0.1
--experiment=baselines --dirichlet_alpha=nan | --dirichlet_alpha must be
--experiment=lr_search --algorithms=product | --algorithms cannot be combined with
--experiment=lr_search --search_for=adafed_1 | compares algorithms
--seeds=1 | --seeds=1: name two or more seeds, each once; one seed is --seed
--seeds=1,99999999999 | --seeds=1,99999999999: seeds must be in [0, 2^31)
--seeds=1,2 --cohort_seed=3 | --cohort_seed cannot be combined with --seeds
--seeds=1,2 --priority=LD --baseline=DS | --baseline: DS is not one of the rows: LD
--priority=LD,MD;LD --baseline=FedAvg | FedAvg is not one of the rows: LD,MD; LD
--adjustment=backtracking --priority=DS | has nothing to search
--sample_fraction=0.1 | --sample_fraction is not a setting of the data
--cache_dir=/tmp | --cache_dir does not apply to digits5k
--data_dir=/tmp | --data_dir does not apply to digits5k
--inspect --output_dir=/tmp/x | --output_dir cannot be combined with --inspect
--client_rate_decay=0 | --client_rate_decay must be above 0, at most 1, got 0
--client_rate_decay=1.1 | --client_rate_decay must be above 0, at most 1, got 1.1
--client_rate_decay_every=2 | --client_rate_decay_every needs --client_rate_decay
--client_rate_decay_every=1 | --client_rate_decay_every needs --client_rate_decay
--clients_per_round=10 --cohort_rounding=up | --cohort_rounding needs a fraction of
--algorithms=dual --criteria=ACC,DS --adjustment=fixed --dual_lambda_steps=11 | needs an
--criteria=DS,LD --model_divergence=by_layer | --model_divergence needs MD in --criteria
--judge_on=server | --judge_on needs an --adjustment that searches
--adjustment=fixed --judge_on=test | --judge_on needs an --adjustment that searches
--dirichlet_alpha=0.3 | --dirichlet_alpha needs --partition=dirichlet
--partition=iid --dirichlet_alpha=1 | --dirichlet_alpha needs --partition=dirichlet
--wrong_labels=0.5 --wrong_clients=0 | --wrong_labels needs --wrong_clients
--counterfactual_every=1 | --counterfactual_every needs --counterfactuals
--counterfactual_clients=0 | --counterfactual_clients needs --counterfactuals
TUNED --personalized_alpha=0.5 | --personalized_alpha needs --personalized_form=formula
--algorithms=median,laplace --normalization=sum | --normalization has no effect on
--algorithms=median --max_update_norm=1e6 | --max_update_norm has no effect on
--algorithms=q_fedavg --client_rate_decay=0.5 | set --q_fedavg_lipschitz
TUNED --client_rate_decay=0.5 | cannot be combined with --personalized_form=text
--prox_mu=inf | --prox_mu must be 0 or more, finite, got inf
--server_momentum=0.5 | --server_momentum does not apply to --server_optimizer=sgd
ADAM --server_momentum=0.5 | does not apply to --server_optimizer=adam
ADAM --server_beta2=1 | --server_beta2 must be from 0 to 0.9999, got 1
ADAM --server_epsilon=0 | --server_epsilon must be from 1e-15 to 1e15, got 0
--server_optimizer=adagrad --server_beta1=0.5 | --server_beta1 does not apply to
--selection=by_siz | --selection=by_siz: unknown selection 'by_siz' (did you mean by_siz
--choice_candidates=5 | mnist_cnn, the algorithm prioritized or the selection uniform
--selection=power_of_choice --choice_candidates=-1 | --choice_candidates must be 0 or
--validation_fraction=0.1 | only applies to --judge_on=local_validation
--dropout=0.5 | --dropout is not a setting of the data set digits5k
--algorithms=fedavg --priority=LD | --priority has no effect on
--algorithms=median --adjustment=backtracking | adjustment has no effect on
--algorithms=median --criteria=LD | --algorithms=median:
--personalized_alpha=0.3 | --personalized_alpha has no effect
--algorithms=owa | --algorithms=owa: give either --owa_weights or --owa
--algorithms=owa --owa_weights=0.5,0.5 | the OWA of 3 criteria needs 3 weights, got 2
--algorithms=weighted_average --average_weights=1,x | average_weights=1
--owa_quantifier=most | --owa_quantifier has no effect on the alg
--algorithms=choquet --choquet_capacity=DS:x | 'DS:x' is not CODE+CODE
--algorithms=choquet --choquet_capacity=XX:0.1 | must name these criteria
CHOQUET+LD:0.35,DS+MD:0.5,LD+MD:0.4 | the capacity is not monotone: DS+LD has 0.35
CHOQUET+LD:0.8 --priority=DS,LD | must name these criteria and no others: DS, LD
MOST --adjustment=backtracking | searches over orderings, and the algorithm owa has
MOST --priority=LD | --algorithms=owa has nothing to combine
--criteria=DS,LD^x | the exponent of LD^x must be a number from -100 to 100
--criteria=DS,LD^nan | the exponent of LD^nan must be a number
--criteria=DS,XX^2 | --criteria=DS,XX^2: unknown criterion 'XX'
--priority=DS^0.5 | unknown criterion 'DS^0.5' in the ordering; the declared
--algorithms=qffl --normalization=range --criteria_ranges=DS=0:9,LD=0:9,MD=0:1 | no dec
--algorithms=fednova --normalization=max | its step length comes from the totals
--algorithms=fednova --client_optimizer=adam | which counts SGD steps
--algorithms=fedporx | unknown algorithm 'fedporx' (did you mean fedprox?)
--fedprox_mu=0.1 | the algorithm prioritized: it is a setting of the algorithm fedprox
--algorithms=qffl,fedavg --fedprox_mu=0.1 | fedavg: it is a setting of the algorithm f
--algorithms=fedavg,fedprox --prox_mu=0.1 | algorithm fedprox, whose mu is --fedprox
--algorithms=fedprox --fedprox_mu=-1 | --fedprox_mu must be 0 or more, finite, got -1
--algorithms=afl --keep_own_model | its client weights follow the losses
--algorithms=term --term_t=101 | --term_t must be from -100 to 100
--algorithms=fednova --q_fedavg_q=2 | --q_fedavg_q has no effect
ADAFED_1 --momentum_beta=0.3 | --momentum_beta has no effect
ADAFED_1 --algorithms= | --algorithms= is empty:
ADAFED_1 --algorithms=sgd | --algorithms=sgd: unknown algorithm 'sgd'
ADAFED_1 --normalization=max | cannot be used with the experiment
ADAFED_1 --judge_on=server | --judge_on has no effect
ADAFED_2 --adafed_reading=a_class | --adafed_reading needs --simulation=1
ADAFED_2 --adafed_reading=a_client | --adafed_reading needs --simulation=1
ADAFED_2 --adafed_epsilon=0 | --adafed_epsilon must be above 0, below 1, got 0
ADAFED_2 --algorithms=fedavg --adafed_epsilon=0.2 | --adafed_epsilon has no effect
DUAL --num_clients=5 | --num_clients
--num_clients=1001 | digits5k: num_clients=1001 is too many: each
DUAL --quantized_bits=0 | --quantized_bits must be from 1 to 16
--engine=local --cluster=local | --engine=local
--cluster=tcp://192.0.2.1:8786 | --insecure_cluster
--engine=worker --cluster=local | not to --engine=worker
--spread=runs | --spread only applies to --engine=cluster
--tls_cert=x | --tls_cert only applies to --engine=cluster
--engine=cluster --tls_cert=x | --tls_cert only applies to --cluster=tls
--cluster=tls://192.0.2.1:8786 | --tls_ca_file= is not a file
--cluster=local --cluster_threads=0 | --cluster_threads
--cluster=local --cluster_timeout=0 | --cluster_timeout
--cluster=local --experiment=lr_search --spread=runs | --spread=runs cannot be combined
--cluster=tcp://127.0.0.1:1 | or set --insecure_cluster
--experiment=mnist_iid --data_dir=/no/such/dir | /no/such/dir
"""
SEARCH = "--experiment=lr_search --search_for=quickstart"
SHORT = {
    "TUNED": "--algorithms=personalized --personalized_form=text",
    "ADAM ": "--server_optimizer=adam ",
    "ADAFED_": "--experiment=adafed_",
    "DUAL": "--experiment=dual_criterion",
    "MOST": "--algorithms=owa --owa_quantifier=most",
    "CHOQUET": "--algorithms=choquet --choquet_capacity=DS:0.4,LD:0.3,MD:0.2,DS",
}


@pytest.mark.parametrize("case", BAD.strip("\n").split("\n"))
def test_a_bad_flag_is_one_line_and_exit_code_2(case):
    words, says = case.split(" | ")
    for short, whole in SHORT.items():
        words = words.replace(short, whole)
    done = run(*words.split(), code=2)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--clients_per_round=101", "--clients_per_round=101"),
        ("--criteria=DS,IS", "IS needs the example attribute sharp"),
        (
            "--selection=power_of_choice --choice_candidates=9",
            "--choice_candidates=9 must be from 10, the clients in a round, to 100",
        ),
        ("--model=celeba_cnn", "--model=celeba_cnn expects inputs of (64, 64, 3)"),
        ("--output_dir=/dev/null/below", "/dev/null/below: Not a directory"),
    ],
)
@pytest.mark.parametrize(
    "base_flags", ["--experiment=quickstart", SEARCH, "--seeds=0,1 --priority=DS"]
)
def test_settings_that_do_not_fit_the_data_are_rejected_before_a_folder_is_made(
    flag, base_flags, says, tmp_path
):
    """One line, and exit code 2: of runs, a search of the rate, and several seeds."""
    assert says in refusal(
        f"--output_dir={tmp_path / 'out'}", *base_flags.split(), *flag.split()
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flag", "folder", "says"),
    [
        ("export", "none", "none is not a folder"),
        ("export", "kept", "kept contains no run: no folder has both run.json and"),
        ("tables", "none", "none is not a folder"),
        ("tables", "kept", "kept contains no run: no folder has both run.json and"),
        ("compare", "kept", "kept contains no run: no folder has both run.json and"),
        (
            "compare",
            "",
            " contains no run: no folder has both run.json",
        ),  # What holds it.
    ],
)
def test_folders_without_runs_are_named_in_one_line(tmp_path, flag, folder, says):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "run.json").write_text('{"settings": {}}')
    path = tmp_path / folder
    line = refusal(
        f"--{flag}={path},{path}" if flag == "compare" else f"--{flag}={path}",
        *("--experiment=celeba", f"--output_dir={tmp_path / 'out'}"),
    )
    assert says in line and "Errno" not in line
    assert not (tmp_path / "out").exists()
