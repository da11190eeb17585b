# Installs container engines and the NVIDIA driver with apt or dnf. Arguments: docker, podman, nvidia-driver.
set -eu
fail() { echo "$1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "only root can install it; log in as root, or install it yourself"
export DEBIAN_FRONTEND=noninteractive
apt_packages= dnf_packages= driver=
for part in "$@"; do
  case $part in
    docker) apt_packages="$apt_packages docker.io" dnf_packages="$dnf_packages moby-engine" ;;
    podman) apt_packages="$apt_packages podman" dnf_packages="$dnf_packages podman" ;;
    nvidia-driver)
      grep -qs 0x10de "${STATIONMASTER_SYS:-/sys}"/bus/pci/devices/*/vendor || fail "the machine has no NVIDIA GPU"
      driver=yes dnf_packages="$dnf_packages akmod-nvidia" ;;
    *) fail "cannot install $part: unknown component" ;;
  esac
done
if command -v apt-get >/dev/null; then
  apt() { apt-get -q -o DPkg::Lock::Timeout=600 "$@"; }
  apt update
  if [ -n "$driver" ] && apt-cache show nvidia-driver >/dev/null 2>&1; then
    apt_packages="$apt_packages nvidia-driver"
  elif [ -n "$driver" ]; then  # Ubuntu names its driver packages by version
    apt install -y ubuntu-drivers-common
    ubuntu-drivers install --gpgpu
  fi
  [ -z "$apt_packages" ] || apt install -y $apt_packages
elif command -v dnf >/dev/null; then
  dnf install -y $dnf_packages
else
  fail "neither apt-get nor dnf is installed"
fi
case " $* " in *" docker "*) systemctl enable --now docker >/dev/null 2>&1 || true ;; esac
[ -z "$driver" ] || modprobe nvidia >/dev/null 2>&1 || true
