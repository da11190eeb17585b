#!/usr/bin/env bash
# Trains on a dataset in the bucket, stores the model in the bucket and prints its address.
# Usage: train.sh s3://BUCKET/PREFIX [OPTION of `stationmaster train`…]. Needs jq.
set -euo pipefail

dataset=${1:?usage: train.sh s3://BUCKET/PREFIX [OPTION…]}
shift

id=bucket-$(date +%Y%m%d%H%M%S)
stationmaster dataset check "$dataset" --recipe tiny-lora@1
stationmaster train --recipe tiny-lora@1 --dataset "$dataset" --name from-bucket --id "$id" --yes --watch "$@"
stationmaster show "$id" --json | jq -er '.catalogue.places[] | select(startswith("s3://"))'
