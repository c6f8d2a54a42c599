#!/bin/sh
# Installs kith from this folder: for everybody if root runs it, else for this person.
#
#   ./install.sh                      into /usr/local, or ~/.local
#   ./install.sh --prefix DIR
#   ./install.sh --uninstall          removes what it installed; never a device's data
set -eu
umask 022
cd "$(dirname "$0")"
if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
action=install
while [ $# -gt 0 ]; do
  case $1 in
  --prefix) prefix=${2:?--prefix needs a directory}; shift ;;
  --uninstall) action=uninstall ;;
  *) echo "install.sh: unknown option $1; see the top of the script" >&2; exit 64 ;;
  esac
  shift
done
files=$(find bin include lib share -type f -o -type l | sort)
# Nobody looks for units below ~/.local/lib; kith service install writes a person's own.
if [ "$(id -u)" -ne 0 ]; then files=$(echo "$files" | grep -v '^lib/systemd/'); fi

if [ "$action" = uninstall ]; then
  for file in $files; do rm -f "$prefix/$file"; done
  echo "removed from $prefix; data of devices stays, by default in ~/.local/share/kith"
  exit
fi
missing=$(ldd bin/kith 2>/dev/null | sed -n 's/^[[:space:]]*\(.*\) => not found.*/\1/p' | tr '\n' ' ')
if [ -n "$missing" ]; then
  cat >&2 <<TEXT
install.sh: this computer lacks $missing
  Debian, Ubuntu:  apt install libsodium23 libsqlite3-0
  Fedora:          dnf install libsodium sqlite-libs
  Arch:            pacman -S libsodium sqlite
libcurl is needed too for carriers that are not folders.
TEXT
  exit 1
fi
version=$(bin/kith --version) || {
  echo "install.sh: kith does not run here; is this computer's libc older than the one it was built with?" >&2
  exit 1
}
for file in $files; do
  mkdir -p "$prefix/$(dirname "$file")"
  # Beside the old one and then in its place: a running kith keeps its own.
  case $file in
  lib/systemd/*) sed "s|/usr/bin/kith|$prefix/bin/kith|" "$file" >"$prefix/$file.new" ;;
  *) cp -pP "$file" "$prefix/$file.new" ;;
  esac
  mv "$prefix/$file.new" "$prefix/$file"
done
# So that programs find libkith.so.0 in a directory of the system's loader.
if [ "$(id -u)" -eq 0 ]; then ldconfig 2>/dev/null || true; fi
echo "installed kith $version as $prefix/bin/kith"
case :$PATH: in *":$prefix/bin:"*) ;; *) echo "$prefix/bin is not in PATH: add it" ;; esac
echo "next: kith account create, or kith join on a further device"
