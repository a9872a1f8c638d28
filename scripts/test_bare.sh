#!/usr/bin/env bash
# usage: test_bare.sh [demo|test|both] -- `make demo` and `make test` in a fresh Debian 12 that has
# git and make only, laid out by debootstrap from this machine's own apt sources. Needs root.
set -euo pipefail
what=${1:-both}
here=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" = 0 ] || { echo "test-bare: needs root (debootstrap, chroot)"; exit 1; }
command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq debootstrap; }

root=$(mktemp -d /var/tmp/aliquot-bare.XXXXXX)
chmod 755 "$root"  # another user's processes start at its root
finish() {
  for mount in proc sys dev/shm dev/pts dev run tmp .; do umount -l "$root/$mount" 2>/dev/null || true; done
  rm -rf --one-file-system "$root"
}
trap finish EXIT

# The machine's own mirror, whichever it is, so that a machine without the public one works too.
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -1)
debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$root" "$mirror" \
  >"$root.log" 2>&1 || { tail -20 "$root.log"; exit 1; }
rm -f "$root.log"
cp -a /etc/apt/. "$root/etc/apt/"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
  [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
[ ! -d /usr/local/share/ca-certificates ] ||
  cp -a /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
mount --bind "$root" "$root"  # what is no mount cannot be made private, as `aliquot run` does
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
mount -t tmpfs run "$root/run"
mount -t tmpfs tmp "$root/tmp"

git clone -q --no-hardlinks "$here" "$root/root/aliquot"
inside() {
  env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    $(env | grep -E '^(PIP_|https?_proxy|no_proxy|SSL_CERT)' || true) \
    chroot "$root" sh -c "update-ca-certificates >/dev/null 2>&1; cd /root/aliquot && make $1"
}
case $what in
  demo | test) inside "$what" ;;
  both) inside demo && inside test ;;
esac
echo "test-bare: green"
