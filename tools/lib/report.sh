# shellcheck shell=bash
# What the commands say: headings with the time each step took, and errors.

program=${0##*/}
step_name=
step_start=0

# begin TEXT: heads a step and starts its clock.
begin() {
  step_name=$1
  step_start=$SECONDS
  printf '== %s\n' "$step_name"
}

# finish: closes the step.
finish() {
  printf '   done in %d s\n' "$((SECONDS - step_start))"
}

# count N THING: "1 rank", "2 ranks".
count() {
  if [ "$1" = 1 ]; then printf '1 %s' "$2"; else printf '%s %ss' "$1" "$2"; fi
}

# die TEXT...: the last line, and the end.
die() {
  printf '%s: %s\n' "$program" "$*" >&2
  exit 1
}

# usage_error TEXT
usage_error() {
  printf '%s: %s (see --help)\n' "$program" "$1" >&2
  exit 2
}

# header FILE: prints the comment at the top of a command, its --help.
header() {
  sed -n '2,/^$/s/^# \{0,1\}//p' "$1"
}

# value_of OPTION REMAINING VALUE: the value that follows an option, which must be there.
value_of() {
  [ "$2" -ge 2 ] || usage_error "$1 needs a value"
  printf '%s\n' "$3"
}
