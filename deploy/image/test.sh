#!/bin/sh
# Tries the image: builds it, starts every role from it unprivileged, without capabilities, on a root file system that
# cannot be written, with PostgreSQL and the simulated engine, and makes a sandbox. Needs docker, and takes minutes.
#   [BASES=1] [IMAGE=sandgate:test] npm run image:test
# BASES=1 first makes the base images where no registry is reached, which takes root. SKIP_BUILD=1 takes IMAGE as it is.
set -eu
cd "$(dirname "$0")/../.."
image=${IMAGE:-sandgate:test}
postgres=$(sed -n 's/.*POSTGRES_IMAGE:-\([^}]*\)}.*/\1/p' deploy/compose/compose.yaml)
name=sandgate-image-test-$$
fail() {
  echo "image:test: $*" >&2
  exit 1
}
# Networks and containers of this run alone.
clean() {
  docker ps -aq --filter "label=$name" | xargs -r docker rm -fv >/dev/null
  docker network rm "$name" >/dev/null 2>&1 || true
}
trap clean EXIT

if [ "${BASES:-}" = 1 ]; then
  deploy/image/local-bases.sh && deploy/image/local-postgres.sh
fi
if [ "${SKIP_BUILD:-}" != 1 ]; then
  docker build ${BUILD_NETWORK:+--network "$BUILD_NETWORK"} -f deploy/image/Dockerfile -t "$image" .
fi

bytes=$(docker image inspect -f '{{.Size}}' "$image")
[ "$bytes" -lt 400000000 ] || fail "the image has $bytes bytes"

docker network create --internal "$name" >/dev/null
unprivileged() { # <container> <options and image…>
  container=$1
  shift
  docker run -d --label "$name" --name "$name-$container" --network "$name" --network-alias "$container" \
    --read-only --cap-drop ALL --security-opt no-new-privileges --tmpfs /tmp "$@" >/dev/null
}
healthy() { # <container> <command…>: within two minutes
  container=$1
  shift
  for _ in $(seq 120); do
    docker exec "$name-$container" "$@" >/dev/null 2>&1 && return
    sleep 1
  done
  docker logs "$name-$container" >&2
  fail "$container does not become ready"
}

unprivileged postgres --user 999:999 --tmpfs /var/run/postgresql:uid=999,gid=999,mode=0755 \
  -e POSTGRES_USER=sandgate -e POSTGRES_DB=sandgate -e POSTGRES_PASSWORD=password \
  -v /var/lib/postgresql/data "$postgres"
healthy postgres pg_isready -U sandgate -h 127.0.0.1

key=sandgate_$(od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n')
role() { # <role> <options…>
  role=$1
  shift
  unprivileged "$role" --tmpfs /var/lib/sandgate:uid=10001,gid=10001,mode=0700 \
    -e SERVICE_TOKEN=0123456789abcdef0123456789abcdef "$@" -e SANDBOX_URL=http://sandbox:9090 "$image" "$role"
}
service() {
  role "$@" -e RPC_HOST=0.0.0.0 -e RPC_PORT=9090 -e DATABASE_URL=postgresql://sandgate:password@postgres/sandgate \
    -e SECRETS_KEY=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
}
service sandbox
service organization -e "BOOTSTRAP_API_KEY=$key"
service billing
service orchestrator -e ENGINE=simulated
role gateway -e ORGANIZATION_URL=http://organization:9090 -e ORCHESTRATOR_URL=http://orchestrator:9090 \
  -e BILLING_URL=http://billing:9090
for one in sandbox organization billing orchestrator gateway; do
  healthy "$one" node /app/healthcheck.mjs /readyz
  user=$(docker exec "$name-$one" id -u)
  [ "$user" = 10001 ] || fail "$one runs as $user"
  docker exec "$name-$one" grep -q '^CapEff:\s*0*$' /proc/1/status || fail "$one has capabilities"
  docker exec "$name-$one" touch /app/x 2>/dev/null && fail "$one can write to its image"
done

status=$(docker exec "$name-gateway" node --input-type=module --eval '
  const url = "http://127.0.0.1:8080/v1/sandboxes?start=true&wait_for=running";
  const headers = { authorization: `Bearer ${process.argv[1]}`, "content-type": "application/json" };
  const body = JSON.stringify({ image: { type: "oci", reference: "alpine" } });
  const answer = await fetch(url, { method: "POST", headers, body });
  console.log((await answer.json()).status);' "$key")
[ "$status" = running ] || fail "the sandbox is $status"
docker exec "$name-organization" sandgate organizations list >/dev/null || fail "the command line does not work"

docker stop -t 30 "$name-gateway" "$name-sandbox" "$name-organization" "$name-billing" "$name-orchestrator" >/dev/null
for one in sandbox organization billing orchestrator gateway; do
  code=$(docker inspect -f '{{.State.ExitCode}}' "$name-$one")
  [ "$code" = 0 ] || fail "$one ended with $code"
done
echo "image:test: $bytes bytes; every role ran as 10001 without capabilities on a read-only root, and ended with 0"
