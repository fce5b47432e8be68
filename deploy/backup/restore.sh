#!/bin/sh
# Restores what backup.sh made into an empty database and an empty VOLUMES_DIR, while Sandgate does not run:
# restore.sh <folder>
# PG_RESTORE and PSQL may name other programs, with what it takes to connect. See docs/backup.md.
set -eu
umask 077
fail() {
  echo "restore: $*" >&2
  exit 1
}
. "$(dirname "$0")/connection.sh"

[ $# -eq 1 ] || fail "name the folder of a backup"
[ -f "$1/SHA256SUMS" ] || fail "$1 is no finished backup"
[ -n "${PG_RESTORE:-}" ] || [ -n "${DATABASE_URL:-}" ] || fail "DATABASE_URL is not set"
[ -n "${PG_RESTORE:-}" ] || hide_password
(cd "$1" && sha256sum --quiet --check SHA256SUMS) || fail "the backup is damaged"

ask() {
  if [ -n "${PG_RESTORE:-}" ]; then
    # shellcheck disable=SC2086
    ${PSQL:?name the psql that goes with PG_RESTORE} --no-psqlrc --tuples-only --no-align --command="$1"
  else
    psql --no-psqlrc --tuples-only --no-align --command="$1" "$DATABASE_URL"
  fi
}
tables=$(ask "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')") ||
  fail "the database does not answer"
[ "$tables" = 0 ] || fail "the database is not empty: restore into a new one"

if [ -f "$1/volumes.tar" ]; then
  [ -n "${VOLUMES_DIR:-}" ] || fail "the backup has volumes: set VOLUMES_DIR"
  [ "$(id -u)" = 0 ] || fail "only root can give files their owners back"
  mkdir -p "$VOLUMES_DIR"
  # A file system of its own has that folder.
  [ -z "$(ls -A "$VOLUMES_DIR" | grep -vxF 'lost+found')" ] || fail "$VOLUMES_DIR (VOLUMES_DIR) is not empty"
  tar --extract --file="$1/volumes.tar" --directory="$VOLUMES_DIR" --same-owner --numeric-owner --same-permissions \
    --xattrs --xattrs-include='*' --acls || fail "tar failed: empty $VOLUMES_DIR (VOLUMES_DIR) before you try again"
fi

# Last, and all of it or nothing: a program that is started too early finds nothing half there.
load() {
  if [ -n "${PG_RESTORE:-}" ]; then
    # shellcheck disable=SC2086
    $PG_RESTORE --no-owner --no-privileges --single-transaction --exit-on-error
  else
    pg_restore --no-owner --no-privileges --single-transaction --exit-on-error --dbname="$DATABASE_URL"
  fi
}
load <"$1/database.dump" || fail "pg_restore failed: empty VOLUMES_DIR before you try again, the database still is"
