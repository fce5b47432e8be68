#!/bin/sh
# Makes the images that the Dockerfile builds on, under their names, where no image registry can be reached: from
# Debian's packages (mmdebstrap) and npm's packages of Node and npm. Needs root, mmdebstrap, docker and npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
named() { sed -n "s/^ARG $1=//p" "$here/Dockerfile"; }

mmdebstrap --quiet --variant=minbase --mode=root --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*' bookworm "$work/debian.tar"
docker import "$work/debian.tar" "$(named DEBIAN_IMAGE)"

# Node as the official image has it: node and npm in /usr/local; with the authorities that this machine trusts, one of
# which may stand before its package registry. Only what is thrown away is built in it.
node_image=$(named NODE_IMAGE)
version=${node_image#node:}
version=${version%%-*}
mkdir -p "$work/node/usr/local/bin" "$work/node/usr/local/lib/node_modules/npm"
(
  cd "$work"
  npm pack --silent "node-linux-$(node -p process.arch)@$version" npm@11 >/dev/null
  tar -xzf "node-linux-"*.tgz --strip-components=2 -C node/usr/local/bin package/bin/node
  tar -xzf npm-*.tgz --strip-components=1 -C node/usr/local/lib/node_modules/npm
  ln -s ../lib/node_modules/npm/bin/npm-cli.js node/usr/local/bin/npm
  chmod 755 node/usr/local/bin/node
  cp "${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}" node/usr/local/authorities.crt
)
cat >"$work/Dockerfile" <<EOF
FROM $(named DEBIAN_IMAGE)
COPY node /
ENV NODE_EXTRA_CA_CERTS=/usr/local/authorities.crt
CMD ["node"]
EOF
docker build --quiet -t "$node_image" "$work"
