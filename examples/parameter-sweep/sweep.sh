#!/usr/bin/env bash
# One job for each combination of rank and learning rate; prints them by loss when all have ended. Needs jq.
# Usage: sweep.sh NAME DATASET [OPTION of `stationmaster train`…]
# RANKS and RATES change the grid.
set -euo pipefail

name=${1:?usage: sweep.sh NAME DATASET [OPTION…]}
dataset=${2:?usage: sweep.sh NAME DATASET [OPTION…]}
shift 2
read -ra ranks <<<"${RANKS:-4 8 16}"
read -ra rates <<<"${RATES:-0.001 0.0003}"

ids=()
for rank in "${ranks[@]}"; do
    for rate in "${rates[@]}"; do
        # The id makes the script safe to repeat: jobs that exist are left as they are.
        id=$name-r$rank-lr${rate/./p}
        ids+=("$id")
        stationmaster train --recipe tiny-lora@1 --dataset "$dataset" --name "$id" --id "$id" \
            -p rank="$rank" -p learning_rate="$rate" --max-hours 2 --yes "$@"
    done
done

# A failed job must not keep the others from being compared.
for id in "${ids[@]}"; do
    stationmaster watch "$id" --json >/dev/null || echo "$id did not complete" >&2
done

stationmaster compare "${ids[@]}" --json |
    jq -r '.jobs | sort_by(.last_loss // infinite)[] | "\(.last_loss)\t\(.cost_usd)\t\(.shown)\t\(.id)"' |
    { printf 'LOSS\tCOST\tSTATE\tJOB\n' && cat; }
