#!/usr/bin/env bash
# usage: images.sh -- prints a directory with the images of the end-to-end tests, as archives that
# `ctr image import` reads. They are made of this machine's own Debian packages and kept outside the
# tree under the packages' versions:
#   busybox  one static program, nothing else (aliquot.test/busybox:1; also the pause image)
#   debian   bash, coreutils, python3 and nvidia-ml-py (aliquot.test/debian:1)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
userland="python3-minimal python3 libpython3-stdlib bash coreutils findutils grep procps libstdc++6"
nvidia_ml=$(ls "$here"/../../build/clients/venv/lib/python3*/site-packages/pynvml.py 2>/dev/null) || {
  echo "kube: nvidia-ml-py is not in build/clients/venv: run scripts/setup.sh test" >&2
  exit 1
}

closure() { # PACKAGE...: they and all they depend on, as installed here
  apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts \
    --no-breaks --no-replaces --no-enhances "$@" | grep -oE '^[a-z0-9][a-z0-9.+-]*(:[a-z0-9]+)?$' |
    sort -u | while read -r package; do
      dpkg-query -W -f '${Status} ${binary:Package}\n' "$package" 2>/dev/null |
        sed -n 's/^install ok installed //p' || true # a virtual package is none
    done | sort -u
}

mapfile -t packages < <(closure $userland)
stamp=$({
  dpkg-query -W -f '${binary:Package}=${Version}\n' busybox-static "${packages[@]}"
  cat "$0" "$nvidia_ml"
} | sha256sum | cut -c1-16)
images=$kube_cache/images-$stamp
[ ! -d "$images" ] || { echo "$images"; exit 0; }

mkdir -p "$kube_cache"
work=$(mktemp -d "$kube_cache/.images.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"

archive() { # NAME COMMAND_JSON [TAG...]: the tree $work/NAME as a docker archive
  local name=$1 command=$2 layer
  shift 2
  mkdir "$work/parts"
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work/$name" \
    -cf "$work/parts/layer.tar" .
  layer=$(sha256sum "$work/parts/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/usr/bin:/bin"],"Cmd":%s},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"1970-01-01T00:00:00Z"}]}' \
    "$(dpkg --print-architecture)" "$command" "$layer" >"$work/parts/config.json"
  printf '[{"Config":"config.json","RepoTags":[%s],"Layers":["layer.tar"]}]' \
    "$(printf '"aliquot.test/%s:1",' "$name" "$@" | sed 's/,$//')" >"$work/parts/manifest.json"
  tar -C "$work/parts" -cf "$work/out/$name.tar" manifest.json config.json layer.tar
  rm -r "$work/parts"
}

skeleton() { # DIR: what every image has
  mkdir -p "$1"/{etc,proc,sys,dev,run} && mkdir -m 1777 "$1/tmp"
  echo 'root:x:0:0:root:/:/bin/sh' >"$1/etc/passwd"
}

skeleton "$work/busybox" && mkdir "$work/busybox/bin"
install -m755 "$(command -v busybox)" "$work/busybox/bin/busybox"
"$work/busybox/bin/busybox" --list | while read -r applet; do
  [ "$applet" = busybox ] || ln -s busybox "$work/busybox/bin/$applet"
done
archive busybox '["/bin/sh"]'
mkdir -p "$work/pause/bin" && cp "$work/busybox/bin/busybox" "$work/pause/bin/"
archive pause '["/bin/busybox", "sleep", "infinity"]'

# Debian 12 is merged: /bin, /lib and so on are links, in the image as here. Documentation stays out.
skeleton "$work/debian" && mkdir -p "$work/debian/usr"/{bin,sbin,lib,lib32,lib64,libx32}
for merged in bin sbin lib lib32 lib64 libx32; do ln -s "usr/$merged" "$work/debian/$merged"; done
dpkg -L "${packages[@]}" | sort -u |
  grep -vE '^/usr/share/(doc|man|info|locale|lintian|bug|perl|zoneinfo)/' |
  while read -r path; do
    if [ -L "$path" ] || [ -f "$path" ]; then printf '%s\0' "${path#/}"; fi
  done | tar -C / --null --no-recursion -T - -c |
  tar -C "$work/debian" -x --keep-directory-symlink
# Some programs are reached through alternatives or links that no package lists.
[ -e "$work/debian/usr/bin/sh" ] || ln -s bash "$work/debian/usr/bin/sh"
ldconfig -r "$work/debian"
mkdir -p "$work/debian/usr/lib/python3/dist-packages"
cp "$nvidia_ml" "$work/debian/usr/lib/python3/dist-packages/pynvml.py"
chroot "$work/debian" /usr/bin/python3 -c 'import ctypes, json, pynvml' ||
  { echo "kube: python3 does not start in the image that was made" >&2; exit 1; }
archive debian '["/bin/bash"]'
mv "$work/out" "$images"
echo "$images"
