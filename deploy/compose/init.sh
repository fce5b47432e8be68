#!/bin/sh
# Makes .env from .env.example, with new secrets; leaves one that is there alone.
set -eu
cd "$(dirname "$0")"
if [ -e .env ]; then
  echo ".env is there already" >&2
  exit 0
fi
secret() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
umask 077
sed -e "s/^POSTGRES_PASSWORD=$/&$(secret)/" -e "s/^SERVICE_TOKEN=$/&$(secret)/" \
  -e "s/^SECRETS_KEY=$/&$(secret)/" -e "s/^BOOTSTRAP_API_KEY=$/&sandgate_$(secret)/" .env.example >.env.new
mv .env.new .env
echo "made .env: the first API key is BOOTSTRAP_API_KEY in it"
