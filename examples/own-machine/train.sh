#!/usr/bin/env bash
# Trains on your own machine and copies the model here.
# Usage: train.sh DATASET FOLDER [OPTION of `stationmaster train`…]
set -euo pipefail

dataset=${1:?usage: train.sh DATASET FOLDER [OPTION…]}
folder=${2:?usage: train.sh DATASET FOLDER [OPTION…]}
shift 2

# The id makes the script safe to repeat: the same dataset on the same day is the same job.
id="own-$(basename "$dataset")-$(date +%Y%m%d)"

stationmaster offers --provider ssh --recipe tiny-lora@1
stationmaster train --provider ssh --recipe tiny-lora@1 --dataset "$dataset" --id "$id" \
    --max-hours 2 --yes --watch "$@"
stationmaster pull "$id" "$folder"
