#!/usr/bin/env bash
# One training on several GPUs of this computer. Usage: one-training.sh GPUS DATASET [OPTION of `stationmaster train`…]
set -euo pipefail

gpus=${1:?usage: one-training.sh GPUS DATASET [OPTION…]}
dataset=${2:?usage: one-training.sh GPUS DATASET [OPTION…]}
shift 2

stationmaster train --provider loopback --recipe sdxl-lora@2 --gpus "$gpus" --dataset "$dataset" --yes "$@"
