#!/usr/bin/env bash
# Trains once per day and waits for the end; its exit code is that of the training. For cron: prints only failures.
# Usage: nightly.sh DATASET [OPTION of `stationmaster train`…]
set -euo pipefail
umask 077

dataset=${1:?usage: nightly.sh DATASET [OPTION…]}
shift

name=nightly-$(basename "$dataset")
id=$name-$(date +%Y%m%d)
logs=${XDG_STATE_HOME:-$HOME/.local/state}/stationmaster-cron
mkdir -p "$logs"
log=$logs/$id.log

# The id makes it safe to repeat: a second run on the same day watches the job of the first one.
code=0
{
    stationmaster dataset check "$dataset" --recipe tiny-lora@1 &&
        stationmaster train --recipe tiny-lora@1 --dataset "$dataset" --name "$name" --id "$id" \
            --max-hours 6 --max-spend 5 --yes --watch "$@"
} >>"$log" 2>&1 || code=$?

if [ "$code" != 0 ]; then
    echo "$id ended with exit code $code; the end of $log:"
    tail -n 20 "$log"
fi
exit "$code"
