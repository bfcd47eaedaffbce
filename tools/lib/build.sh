# shellcheck shell=bash
# Configuring and compiling. Needs report.sh and `root`, the checkout.
# shellcheck disable=SC2154  # root

# jobs: as many compilers as there are cores, but not more than memory allows (a file that includes libtorch takes 2 GB).
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 2000000) }' /proc/meminfo)
  [ "${memory:-$cores}" -ge 1 ] || memory=1
  printf '%d\n' "$((memory < cores ? memory : cores))"
}

# configure FOLDER OPTION...: makes the build folder, or sets the options of an existing one; only what changes is rebuilt.
configure() {
  local folder=$1
  shift
  mkdir -p "$folder" 2>/dev/null
  [ -w "$folder" ] || die "cannot write to $folder (made by another user?): remove it, or run as its owner"
  begin "configuring $folder"
  local log=$folder/configure.log mode=()
  if [ -f "$folder/build.ninja" ]; then mode=(--reconfigure); else rm -rf "$folder/meson-private"; fi
  if ! meson setup "${mode[@]}" "$folder" "$root" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    die "could not configure $folder (see above)"
  fi
  finish
}

# compile FOLDER TARGET...: everything without targets.
compile() {
  local folder=$1
  shift
  begin "compiling in $folder${*:+: $*}"
  ninja -C "$folder" -j "$(jobs)" "$@" || die "compiling failed (see above)"
  finish
}
