#!/bin/bash
# Scheduler, four workers and driver in containers of one image. Not tried yet.
# The user in the image, number 1000, must read tls/ and write runs/.
docker build -t tff_pmc .
docker network create tff_pmc
ENCRYPTED="-e DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
    -e DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL=60s
    -e DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=false"
PORTS="--no-dashboard --dashboard-address 127.0.0.1:0
    --preload tff_pmc.cluster.tasks"
TLS="--tls-ca-file /tls/ca.pem --tls-cert /tls/member.pem --tls-key /tls/member.key"
docker run -d --network tff_pmc --name first -v "$PWD/tls:/tls:ro" $ENCRYPTED tff_pmc \
    dask scheduler --protocol tls --host first --port 8786 $PORTS $TLS
for k in 1 2 3 4; do
    docker run -d --network tff_pmc --cpus 1 -v "$PWD/tls:/tls:ro" \
        -v "$PWD/runs:/runs" $ENCRYPTED tff_pmc dask worker tls://first:8786 \
        --nworkers 1 --nthreads 1 --interface eth0 --memory-limit 0 $PORTS $TLS
done
docker run --rm --network tff_pmc -v "$PWD/tls:/tls:ro" -v "$PWD/runs:/runs" tff_pmc \
    tff-pmc --experiment=quickstart --priority=all \
    --output_dir=/runs/all --cluster_threads=1 --cluster=tls://first:8786 \
    --tls_ca_file=/tls/ca.pem --tls_cert=/tls/member.pem --tls_key=/tls/member.key
