#!/usr/bin/env bash
# Render the plans that are measured, from the recipes of this tree: plans.sh OUT [PYTHON]
# Few steps: enough for every size of picture, two saves and one round of samples.
set -euo pipefail
out=$1 python=${2:-.venv/bin/python}
here=$(dirname "$0")
folder=${MEASURE_FOLDER:-/tmp/measure}
machine=(--root "$folder/jobs" --python "${MEASURE_PYTHON:-python3}")
flux=(--weights "$folder/flux" --trainer "$folder/bundle/ai-toolkit" --set steps=${STEPS:-14} --set save_every=7)
sdxl=(--weights "$folder/sdxl" --trainer "$folder/bundle/sd-scripts")

render() { "$python" "$here/render.py" "$@" "${machine[@]}"; }
render flux-lora "${flux[@]}" --out "$out/flux-lora.json" --set low_vram=false
render flux-lora "${flux[@]}" --out "$out/flux-lora-low-vram.json" --set low_vram=true
render flux-kontext-lora "${flux[@]}" --out "$out/kontext-768.json" --set largest_resolution=768
render flux-kontext-lora "${flux[@]}" --out "$out/kontext-1024.json" --set largest_resolution=1024
render sdxl-lora "${sdxl[@]}" --out "$out/sdxl-lora.json" --set steps=${STEPS:-14} --set save_every=7 --set sample_every=10
