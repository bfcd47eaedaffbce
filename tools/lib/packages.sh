# shellcheck shell=bash
# Debian packages: what hvd is built with, and installing what is missing.

# The sanitizers' libraries come with g++.
declare -A package_groups=(
  [build]='g++ ninja-build meson pkg-config openmpi-bin libopenmpi-dev libboost-dev libfmt-dev libspdlog-dev
    nlohmann-json3-dev libcli11-dev libtorch-dev zlib1g-dev python3-dev pybind11-dev'
  [test]='libgtest-dev libgmock-dev libbenchmark-dev python3-numpy python3-pytest'
  [fuzz]='clang libclang-rt-dev'
  [coverage]='gcovr'
  [data]='dataset-fashion-mnist'
)

# missing_packages NAME...: those that are not installed, one a line.
missing_packages() {
  local name
  for name in "$@"; do
    # shellcheck disable=SC2016  # a dpkg-query format
    dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || printf '%s\n' "$name"
  done
}

# as_root COMMAND...: runs it as root. sudo passes on the proxies, apt needs them.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive ${http_proxy:+"http_proxy=$http_proxy"} \
      ${https_proxy:+"https_proxy=$https_proxy"} "$@"
  fi
}

# update_lists: apt-get update, which (unlike install) cannot wait for another apt to finish. When it fails for good, the
# lists that are there may do.
update_lists() {
  local attempt
  for attempt in 1 2 3 4; do
    [ "$attempt" = 1 ] || sleep 5
    as_root apt-get update -q -o Acquire::Retries=3 && return
  done
  return 0
}

# install_packages GROUP...: installs those that are missing; removes nothing. Asks for root's rights only when it must.
install_packages() {
  local group wanted=() missing log
  for group in "$@"; do
    # shellcheck disable=SC2206  # a list of words
    wanted+=(${package_groups[$group]})
  done
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    printf '   not a Debian system; these must be there under their own names: %s\n' "${wanted[*]}"
    return
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ "${#missing[@]}" -gt 0 ] || return 0

  begin "installing ${#missing[@]} Debian packages: ${missing[*]}"
  local by_hand="apt-get install --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo; as root, run: $by_hand"
    printf '   with sudo\n'
    sudo true || die "packages are missing and sudo did not let us install them; as root, run: $by_hand"
  fi
  log=$(mktemp)
  if ! { update_lists && as_root apt-get install -y -q --no-install-recommends --no-remove -o DPkg::Lock::Timeout=600 \
    -o Acquire::Retries=3 "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    die "could not install packages (see above); as root, run: $by_hand"
  fi
  rm -f "$log"
  finish
}
