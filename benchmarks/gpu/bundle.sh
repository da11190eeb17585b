#!/usr/bin/env bash
# Make what travels to the GPU machine: the trainers' sources and the packages that it lacks, as two archives.
# usage: bundle.sh AI_TOOLKIT DIFFUSERS SD_SCRIPTS WHEELS OUT
#   AI_TOOLKIT, SD_SCRIPTS: checkouts; DIFFUSERS: the `src` folder of ai-toolkit's pinned commit
#   WHEELS: a folder for downloads, which may hold some already
set -euo pipefail
toolkit=$1 diffusers=$2 scripts=$3 wheels=$4 out=$5
# the machine's Python and libc
target=(--python-version 3.12 --only-binary=:all: --no-deps --disable-pip-version-check -q)
for tag in manylinux_2_28_x86_64 manylinux_2_24_x86_64 manylinux2014_x86_64; do target+=(--platform "$tag"); done

unpack() { # FOLDER PACKAGE...
  local folder=$1 wanted
  shift
  for wanted in "$@"; do
    rm -rf "$wheels/now" && mkdir -p "$wheels/now"
    python3 -m pip download "${target[@]}" --find-links "$wheels" -d "$wheels/now" "$wanted"
    # PyTorch of the machine is built for CUDA 13.0
    python3 - "$folder" "$wheels"/now/*.whl <<'PYTHON'
import sys, zipfile
folder, wheel = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(folder, [n for n in archive.namelist() if "libbitsandbytes_" not in n or n.endswith("_cuda130.so")])
PYTHON
    cp "$wheels"/now/*.whl "$wheels/"
  done
}

entitle() { # FOLDER NAME VERSION: what asks importlib.metadata for a package finds it
  mkdir -p "$1/$2-$3.dist-info"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$2" "$3" > "$1/$2-$3.dist-info/METADATA"
}

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "$made/ai-toolkit" "$made/flux-site" "$made/sd-scripts" "$made/sdxl-site" "$out" "$wheels"

tar c -C "$toolkit" --exclude=__pycache__ --exclude='*_ldm_base.safetensors' \
  run.py info.py version.py LICENSE toolkit jobs extensions extensions_built_in | tar x -C "$made/ai-toolkit"
tar c -C "$diffusers" --exclude=__pycache__ diffusers | tar x -C "$made/flux-site"
entitle "$made/flux-site" diffusers "$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$diffusers/diffusers/__init__.py")"
entitle "$made/flux-site" av 16.0.1  # watch/absent_packages.py stands in for it
unpack "$made/flux-site" optimum-quanto==0.2.4 torchao==0.10.0 bitsandbytes==0.50.2 \
  oyaml python-dotenv flatten_json toml
# built for another PyTorch, and not needed to quantise to quanto's types
find "$made/flux-site/torchao" -name '*.so' -delete
tar czf "$out/flux.tar.gz" -C "$made" ai-toolkit flux-site

tar c -C "$scripts" --exclude=__pycache__ LICENSE.md library networks train_network.py sdxl_train_network.py |
  tar x -C "$made/sd-scripts"
unpack "$made/sdxl-site" bitsandbytes==0.50.2 ${SDXL_PACKAGES:-diffusers==0.32.1 transformers==4.54.1 tokenizers==0.21.4 \
  huggingface-hub==0.34.3 accelerate==1.6.0} toml==0.10.2 voluptuous==0.15.2 imagesize==1.4.1 ftfy==6.3.1 wcwidth importlib_metadata zipp
tar czf "$out/sdxl.tar.gz" -C "$made" sd-scripts sdxl-site
du -h "$out"/*.tar.gz
