#!/bin/bash
# Starts workers on this machine:
#     worker.sh INTERFACE SCHEDULER_HOST NUMBER_OF_CORES [MORE_FLAGS]
# Run it in the checkout.
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
# The profiler's thread may collect garbage while another holds what a TensorFlow graph
# needs to be freed, and then both wait for ever.
export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=false
# Dask's own values give freed arrays back to the system at once.
export MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_MMAP_THRESHOLD_=33554432
# One pack or run at a time in a process, and no limit by which Dask pauses or ends it.
# As with scheduler.sh, no port without TLS is left open.
exec .venv/bin/dask worker "tls://$2:8786" --interface "$1" --nworkers "$3" \
    --nthreads 1 --memory-limit 0 --no-dashboard --dashboard-address 127.0.0.1:0 \
    --preload tff_pmc.cluster.tasks \
    --tls-ca-file tls/ca.pem --tls-cert tls/member.pem --tls-key tls/member.key "${@:4}"
