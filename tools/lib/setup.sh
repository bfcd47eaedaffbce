# shellcheck shell=bash
# Shared by the commands in tools/. Sets `root`, the checkout.

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd) || exit 1

# shellcheck source=report.sh
. "$root/tools/lib/report.sh"
# shellcheck source=packages.sh
. "$root/tools/lib/packages.sh"
# shellcheck source=build.sh
. "$root/tools/lib/build.sh"
