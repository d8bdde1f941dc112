#!/bin/bash
# Starts the scheduler on this machine, port 8786: scheduler.sh INTERFACE [MORE_FLAGS].
# INTERFACE, as `ip addr` names it, is the one to the other machines. Run it in the
# checkout.
# Dask's own --interface does not go with TLS here.
address=$(.venv/bin/python -c '
import sys, distributed.utils
print(distributed.utils.get_ip_interface(sys.argv[1]))' "$1") || exit
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
# Who is silent for so long is started anew, and its work goes elsewhere.
export DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL=60s
# Dask opens a port for pages without TLS even if it has none to show: the preload
# closes it, and until then it is this machine's alone.
exec .venv/bin/dask scheduler --host "$address" --protocol tls --port 8786 \
    --no-dashboard --dashboard-address 127.0.0.1:0 \
    --preload tff_pmc.cluster.tasks \
    --tls-ca-file tls/ca.pem --tls-cert tls/member.pem --tls-key tls/member.key "${@:2}"
