#!/bin/sh
# Makes an image for the compose file's `postgres` from Debian's packages: the part of the official image's interface that
# is used here (POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB, uid 999), for trying things where no registry is reached.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
image=$(sed -n 's/.*POSTGRES_IMAGE:-\([^}]*\)}.*/\1/p' "$root/deploy/compose/compose.yaml")
debian=$(sed -n 's/^ARG DEBIAN_IMAGE=//p' "$root/deploy/image/Dockerfile")

cat >"$work/entrypoint" <<'EOF'
#!/bin/sh
set -eu
bin=$(echo /usr/lib/postgresql/*/bin)
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  "$bin/initdb" -D "$PGDATA" -U "$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 -E UTF8
  rm /tmp/password
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  echo "CREATE DATABASE $POSTGRES_DB" | "$bin/postgres" --single -D "$PGDATA" postgres
fi
exec "$bin/postgres" -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
EOF
cat >"$work/Dockerfile" <<EOF
FROM $debian
RUN groupadd -g 999 postgres && useradd -u 999 -g 999 -d /var/lib/postgresql postgres \
  && apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql \
  && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/* \
  && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/ \
  && install -d -m 0700 -o postgres -g postgres /var/lib/postgresql/data
COPY entrypoint /usr/local/bin/entrypoint
RUN chmod 755 /usr/local/bin/entrypoint
ENV PGDATA=/var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["entrypoint"]
EOF
docker build --quiet --network host -t "$image" "$work"
