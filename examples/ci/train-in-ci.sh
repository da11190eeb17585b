#!/usr/bin/env bash
# Trains in CI and fails if the training fails, or if its last loss is too high.
# Usage: train-in-ci.sh DATASET FOLDER [OPTION of `stationmaster train`…]
# MAX_LOSS is the highest loss that passes (default 0.1). Needs jq.
set -euo pipefail
umask 077

dataset=${1:?usage: train-in-ci.sh DATASET FOLDER [OPTION…]}
folder=${2:?usage: train-in-ci.sh DATASET FOLDER [OPTION…]}
shift 2

# One job per commit and attempt of the workflow: a step that is retried watches the same training.
id=ci-$(printf '%.12s' "${GITHUB_SHA:-local}")-${GITHUB_RUN_ATTEMPT:-1}

stationmaster train --recipe tiny-lora@1 --dataset "$dataset" --name ci --id "$id" \
    --max-hours 2 --max-spend 5 --yes --watch "$@" &
watching=$!

# A cancelled workflow must not leave a machine that bills. The checkpoint is kept.
trap 'kill "$watching" 2>/dev/null || true; stationmaster stop "$id" || true; exit 130' INT TERM

code=0
wait "$watching" || code=$?

# Without a job the command itself has said what is wrong.
job=$(stationmaster show "$id" --json 2>/dev/null) || exit "$code"
summary=$(jq -r '"training \(.id): \(.shown), loss \(.progress.loss), $\(.cost_usd)"' <<<"$job")
echo "$summary"
echo "$summary" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"

if [ "$code" != 0 ]; then
    stationmaster analyze "$id" || true
    exit "$code"
fi
most=${MAX_LOSS:-0.1}
if ! jq -e --argjson most "$most" '.progress.loss != null and .progress.loss <= $most' <<<"$job" >/dev/null; then
    echo "the loss is above $most"
    exit 1
fi
stationmaster pull "$id" "$folder"
