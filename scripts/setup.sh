#!/usr/bin/env bash
# What `./up` and `./test` share: which Debian packages are needed and how a Docker engine is started.
# Sourced, not run. Nothing here is done without saying it first.

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
note() { printf '  %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else
    command -v sudo >/dev/null 2>&1 || die "this needs root: run it as root, or install sudo"
    sudo "$@"
  fi
}

# package → the command or file that shows it is there
package_is_there() {
  case "$1" in
    build-essential) command -v cc ;;
    ca-certificates) [ -e /etc/ssl/certs/ca-certificates.crt ] ;;
    postgresql) ls /usr/lib/postgresql/*/bin/initdb ;;
    docker.io) command -v dockerd || docker_answers ;;
    iptables) command -v iptables ;;
    mmdebstrap) command -v mmdebstrap ;;
    npm) command -v npm ;;
    git) command -v git ;;
    chromium) command -v chromium ;;
    chromium-driver) command -v chromedriver ;;
    *) dpkg -s "$1" ;;
  esac >/dev/null 2>&1
}

# Prints those of the named packages that are missing.
missing_packages() {
  for package in "$@"; do package_is_there "$package" || printf '%s ' "$package"; done
}

install_packages() {
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  command -v apt-get >/dev/null 2>&1 || die "missing: $missing(and no apt-get to install them: this script knows Debian only)"
  say "Installing from Debian's packages: $missing"
  as_root apt-get update -qq >&2
  # PostgreSQL's package would start a cluster of its own; ours is private, so none is made.
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    as_root mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
  fi
  # shellcheck disable=SC2086 # a list of words
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 \
    || die "apt-get could not install: $missing"
}

# Where cargo builds: CARGO_TARGET_DIR of yours is kept.
target_folder() { printf '%s\n' "${CARGO_TARGET_DIR:-target}"; }

docker_answers() { docker version >/dev/null 2>&1; }

# Makes sure that a Docker engine answers; starts Debian's dockerd when none does.
start_docker() {
  docker_answers && return 0
  command -v dockerd >/dev/null 2>&1 || die "no Docker engine answers and no dockerd is installed"
  say "Starting the Docker engine (dockerd); it goes on running, its log is /var/log/pi-dispatch-dockerd.log"
  if command -v systemctl >/dev/null 2>&1 && [ -d /run/systemd/system ]; then
    as_root systemctl start docker
  else
    # An engine that was killed leaves files with process numbers; those may be somebody else's by now.
    if ! pgrep -x dockerd >/dev/null 2>&1; then
      pgrep -x containerd >/dev/null 2>&1 || as_root rm -f /var/run/docker/containerd/containerd.pid
      as_root rm -f /var/run/docker.pid
    fi
    as_root sh -c 'setsid dockerd </dev/null >/var/log/pi-dispatch-dockerd.log 2>&1 &'
  fi
  for _ in $(seq 1 200); do
    docker_answers && return 0
    read -r -t 0.2 <> <(:) || true
  done
  as_root tail -n 5 /var/log/pi-dispatch-dockerd.log >&2 || true
  die "the Docker engine did not answer within 40 seconds"
}

# Rust is the one thing that we do not install.
need_rust() {
  command -v cargo >/dev/null 2>&1 || die "cargo is missing: install Rust 1.95 or newer (Debian's own is too old), see its home page"
  local have
  have=$(cargo --version | sed -E 's/^cargo ([0-9]+)\.([0-9]+).*/\1 \2/')
  # shellcheck disable=SC2086
  set -- $have
  if [ "$1" -lt 1 ] || { [ "$1" = 1 ] && [ "$2" -lt 95 ]; }; then die "Rust $1.$2 is too old: 1.95 or newer is needed"; fi
}
