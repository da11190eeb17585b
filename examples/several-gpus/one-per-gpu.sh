#!/usr/bin/env bash
# Several trainings, each on a GPU of its own; those for which no GPU is free wait their turn.
# Usage: one-per-gpu.sh DATASET… [-- OPTION of `stationmaster train`…]
set -euo pipefail

datasets=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    datasets+=("$1")
    shift
done
[ "${#datasets[@]}" -gt 0 ] || { echo "usage: one-per-gpu.sh DATASET… [-- OPTION…]" >&2; exit 2; }
[ $# -eq 0 ] || shift

for dataset in "${datasets[@]}"; do
    stationmaster train --provider loopback --recipe sdxl-lora@2 --gpus 1 --dataset "$dataset" \
        --name "$(basename "$dataset")" --yes "$@"
done
stationmaster jobs
