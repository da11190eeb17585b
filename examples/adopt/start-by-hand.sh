#!/usr/bin/env bash
# On the machine: starts a training as people do, so that it goes on after the logout.
# Usage: start-by-hand.sh FOLDER [STEPS [SECONDS]]
set -euo pipefail

folder=${1:?usage: start-by-hand.sh FOLDER [STEPS [SECONDS]]}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$folder"
cd "$folder"

nohup python3 "$here/train.py" out "${2:-600}" "${3:-1}" >train.log 2>&1 </dev/null &
echo $! >pid
echo "started with process id $(cat pid); the log is $folder/train.log"
