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
# Not as arguments: everybody on this machine may read those.
sed -f /dev/stdin .env.example >.env.new <<EOF
s/^POSTGRES_PASSWORD=$/&$(secret)/
s/^SERVICE_TOKEN=$/&$(secret)/
s/^SECRETS_KEY=$/&$(secret)/
s/^BOOTSTRAP_API_KEY=$/&sandgate_$(secret)/
EOF
mv .env.new .env
echo "made .env: the first API key is BOOTSTRAP_API_KEY in it"
