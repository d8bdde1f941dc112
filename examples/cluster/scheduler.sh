#!/bin/bash
# Starts the scheduler on this machine, port 8786. Run it in the checkout.
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
# No pages about the cluster: TLS does not cover them.
export DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES='[]'
exec .venv/bin/dask scheduler --protocol tls --port 8786 --no-dashboard \
    --tls-ca-file tls/ca.pem --tls-cert tls/member.pem --tls-key tls/member.key
