#!/bin/bash
# Makes an authority and one certificate for all members of a cluster, in the folder tls.
set -e
umask 077
mkdir -p tls && cd tls
openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj "/CN=tff_pmc cluster" \
    -addext "basicConstraints=critical,CA:TRUE" -keyout ca.key -out ca.pem
openssl req -newkey rsa:3072 -nodes -subj "/CN=member" \
    -keyout member.key -out member.csr
openssl x509 -req -in member.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
    -days 365 -out member.pem
