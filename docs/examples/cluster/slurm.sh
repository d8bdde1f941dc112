#!/bin/bash
# A job of four nodes: the first runs the scheduler and the driver, too.
#SBATCH --job-name=tff_pmc
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=16
#SBATCH --cpus-per-task=1
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@120

cd "$SLURM_SUBMIT_DIR"      # the checkout, on a file system of all nodes
interface=ib0               # the one between the nodes
# Its address, because the name of a machine may be another interface's.
first=$(ip -4 -o addr show "$interface" | awk '{split($4, a, "/"); print a[1]; exit}')
trap 'kill $(jobs -p)' EXIT  # Where Slurm does not end what is left of a job.
bash docs/examples/cluster/scheduler.sh "$interface" &
until (: > "/dev/tcp/$first/8786") 2> /dev/null; do sleep 1; done
srun --kill-on-bad-exit=0 bash docs/examples/cluster/worker.sh "$interface" "$first" 1 \
    --death-timeout 120 &

# Two minutes before the time is over the driver is told to end; the same job with
# --resume added goes on.
.venv/bin/python run_experiments.py --flagfile=experiments/pmc_table6.flags \
    --data_dir=/shared/data --output_dir=/shared/runs/table6 --cluster_threads=1 \
    --cluster="tls://$first:8786" --tls_ca_file=tls/ca.pem \
    --tls_cert=tls/member.pem --tls_key=tls/member.key &
driver=$!
trap 'kill -TERM $driver' TERM
wait $driver
wait $driver                # the first wait ends with the signal
