#!/usr/bin/env bash
# At home: adopts that training, watches it to its end and copies its model here.
# Usage: adopt.sh HOST FOLDER_ON_THE_HOST LOCAL_FOLDER
set -euo pipefail

host=${1:?usage: adopt.sh HOST FOLDER_ON_THE_HOST LOCAL_FOLDER}
there=${2:?usage: adopt.sh HOST FOLDER_ON_THE_HOST LOCAL_FOLDER}
here=${3:?usage: adopt.sh HOST FOLDER_ON_THE_HOST LOCAL_FOLDER}

id=adopted-$(date +%Y%m%d%H%M%S)
stationmaster adopt "$host" --log "$there/train.log" --pid-file "$there/pid" --output "$there/out" \
    --id "$id" --yes --watch
stationmaster pull "$id" "$here"
