#!/usr/bin/env bash
# Installs the user unit and a file for its settings that only you can read. Safe to repeat.
set -euo pipefail
umask 077

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
settings=$HOME/.config/stationmaster/environment

mkdir -p "$units" "$(dirname "$settings")"
cp "$here/stationmaster.service" "$units/stationmaster.service"
[ -e "$settings" ] || printf '%s\n' '# VASTAI_API_KEY_FILE=…' '# STATIONMASTER_LIMITS__DAILY_SPEND=10' > "$settings"
chmod 600 "$settings"
echo "installed $units/stationmaster.service; settings are in $settings"
