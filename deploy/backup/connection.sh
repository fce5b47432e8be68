# For backup.sh and restore.sh: takes the password out of DATABASE_URL and gives it to PostgreSQL's programs by PGPASSWORD,
# for everybody on this machine may read their command lines.

# <text of a URL>: %41 is A
decode() {
  printf '%s\n' "$1" | LC_ALL=C awk '{
    digits = "0123456789abcdef"; out = ""
    while (match($0, /%[0-9A-Fa-f][0-9A-Fa-f]/)) {
      code = tolower(substr($0, RSTART + 1, 2))
      byte = 16 * (index(digits, substr(code, 1, 1)) - 1) + index(digits, substr(code, 2, 1)) - 1
      out = out substr($0, 1, RSTART - 1) sprintf("%c", byte); $0 = substr($0, RSTART + 3)
    }
    print out $0
  }'
}

hide_password() {
  case $DATABASE_URL in
    *[?\&]password=*) fail "DATABASE_URL: put the password before the @, not behind the ?" ;;
  esac
  authority=${DATABASE_URL#*://}
  authority=${authority%%[/?]*}
  case $authority in *@*) credentials=${authority%@*} ;; *) return 0 ;; esac
  case $credentials in *:*) ;; *) return 0 ;; esac
  PGPASSWORD=$(decode "${credentials#*:}")
  export PGPASSWORD
  DATABASE_URL=${DATABASE_URL%%://*}://${credentials%%:*}${DATABASE_URL#*://"$credentials"}
}
