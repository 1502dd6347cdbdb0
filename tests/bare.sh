#!/usr/bin/env bash
# Runs a command as on a machine that has Python, make, bash, git and the coreutils, and nothing else: no Java, Maven,
# Node, browser or database server, neither on the PATH nor where the tests look for them besides.
#
#     tests/bare.sh make test
set -euo pipefail
(($#)) || { echo "usage: tests/bare.sh COMMAND..." >&2; exit 2; }

found=
for python in "${PYTHON:-}" python3.11 python3; do
  # A version manager's command of that name needs the rest of it: its Python says where it is itself.
  [ -n "$python" ] && found=$("$python" -c 'import sys; print(sys.executable) if sys.version_info >= (3, 11) else 1/0' \
    2>/dev/null) && break
done
[ -n "$found" ] || { echo "tests/bare.sh needs Python 3.11 or newer" >&2; exit 1; }

folder=$(mktemp -d "${TMPDIR:-/tmp}/bare-XXXXXXXX")
trap 'rm -rf "$folder"' EXIT
for name in python3.11 python3; do # no links: what a link's environment is made of would go with the folder
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$found" >"$folder/$name"
  chmod +x "$folder/$name"
done
for name in make bash sh git \
  "[" arch base64 basename cat chgrp chmod chown cksum comm cp cut date dd df dirname du echo env expr false fold head id \
  install join link ln ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc od paste printf pwd readlink realpath \
  rm rmdir seq sha1sum sha256sum shuf sleep sort split stat stty sum sync tac tail tee test timeout touch tr true \
  truncate tsort tty uname unexpand uniq unlink wc whoami yes; do
  path=$(type -P "$name") && ln -s "$path" "$folder/$name"
done

kept=()
for name in HOME USER LOGNAME LANG TZ TMPDIR PIP_INDEX_URL PIP_CACHE_DIR http_proxy https_proxy no_proxy \
  HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE REQUESTS_CA_BUNDLE SPARKSTREAM_TEST_PICTURES; do
  [ -n "${!name:-}" ] && kept+=("$name=${!name}")
done
env -i "${kept[@]}" PATH="$folder" SPARKSTREAM_TEST_HIDE=java,maven,browser,servers "$@"
