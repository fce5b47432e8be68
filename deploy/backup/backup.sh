#!/bin/sh
# Backs up the database, and then the volumes, while Sandgate runs: backup.sh <folder that does not exist yet>
# DATABASE_URL and VOLUMES_DIR are the program's own; VOLUMES_DIR may be unset where there are none. PG_DUMP may name
# another pg_dump, with what it takes to connect; it is of the server's version or newer. SECRETS_KEY is not in the
# backup: keep it elsewhere. See docs/backup.md.
set -eu
umask 077
fail() {
  echo "backup: $*" >&2
  exit 1
}
. "$(dirname "$0")/connection.sh"

[ $# -eq 1 ] || fail "name the folder to make"
[ ! -e "$1" ] || fail "$1 is there already"
[ -n "${PG_DUMP:-}" ] || [ -n "${DATABASE_URL:-}" ] || fail "DATABASE_URL is not set"
[ -n "${PG_DUMP:-}" ] || hide_password
if [ -n "${VOLUMES_DIR:-}" ]; then
  [ -d "$VOLUMES_DIR" ] || fail "$VOLUMES_DIR (VOLUMES_DIR) is not a folder"
  [ "$(id -u)" = 0 ] || fail "only root can read all of VOLUMES_DIR, and its owners"
fi

# Under another name until it is whole.
work="$1.unfinished"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# One snapshot. The database goes first: what is in a volume that it knows is then as old as its row, or newer.
dump() {
  if [ -n "${PG_DUMP:-}" ]; then
    # shellcheck disable=SC2086 # a command with its arguments
    $PG_DUMP --format=custom --no-owner --no-privileges
  else
    pg_dump --format=custom --no-owner --no-privileges --dbname="$DATABASE_URL"
  fi
}
dump >"$work/database.dump" || fail "pg_dump failed"

# Each file as it is read; what is mounted in a volume is not its own, and staging is what is only on its way.
archive() {
  tar --create --file="$work/volumes.tar" --directory="$VOLUMES_DIR" --one-file-system --sparse --numeric-owner \
    --xattrs --xattrs-include='*' --acls --exclude='./*/*/staging/*' --warning=no-file-changed --warning=no-file-removed \
    --warning=no-file-ignored . || [ $? -eq 1 ] # 1: a file changed or went while it was read
}
if [ -n "${VOLUMES_DIR:-}" ]; then
  archive || fail "tar failed"
fi

(cd "$work" && sha256sum -- * >SHA256SUMS)
sync
mv "$work" "$1"
