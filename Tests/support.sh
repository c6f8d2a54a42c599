# Functions that Tests/run and Tests/nightly share; to be sourced, from the top of the repository.

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }

# Installs the Debian packages that are missing, and ends the script if that fails or Swift is missing.
install_missing() {
  local missing=()
  command -v pkg-config >/dev/null || missing+=(pkg-config)
  { command -v pkg-config >/dev/null && pkg-config --exists libsodium; } ||
    missing+=(libsodium-dev)
  { command -v pkg-config >/dev/null && pkg-config --exists sqlite3; } ||
    missing+=(libsqlite3-dev)
  # For QR codes, which the tool draws if the library is there.
  compgen -G '/usr/lib/*/libqrencode.so.4' >/dev/null || missing+=(libqrencode4)
  # For the attacks on real processes: namespaces, file systems, clocks.
  command -v ip >/dev/null || missing+=(iproute2)
  command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
  compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(faketime)
  # For the patches of Tests/Canaries.
  command -v git >/dev/null || missing+=(git)
  # For the device in Python, which is written along Docs/Protocol.md.
  command -v python3 >/dev/null || missing+=(python3)
  if [ "${#missing[@]}" -gt 0 ]; then
    echo "installing ${missing[*]}"
    as_root apt-get update -q >/dev/null &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy "${missing[@]}" >/dev/null ||
      { echo "$0: not all Debian packages that it needs can be installed" >&2; exit 1; }
  fi
  command -v swift >/dev/null || { echo "$0: install Swift 6.2 or newer first" >&2; exit 1; }
}

names=()
results=()
failed=0

# Runs one part and remembers how it went and how long it took. A part that this host cannot run ends
# with status 77.
part() {
  local name=$1 start=$SECONDS status=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  names+=("$name")
  if [ "$status" -eq 0 ]; then
    results+=("ok      $((SECONDS - start)) s")
  elif [ "$status" -eq 77 ]; then
    results+=("skipped")
  else
    results+=("FAILED  $((SECONDS - start)) s, status $status")
    failed=1
  fi
}

# Ends a command that hangs, with all that it started, after KITH_TEST_LIMIT seconds.
limited() {
  local limit=${KITH_TEST_LIMIT:-900} status=0 pid watch
  "$@" &
  pid=$!
  { sleep "$limit" && echo "$1 takes more than $limit s; it is ended" >&2 && end_tree "$pid"; } &
  watch=$!
  disown "$watch"
  wait "$pid" || status=$?
  end_tree "$watch"
  return "$status"
}
end_tree() {
  local child
  kill -STOP "$1" 2>/dev/null
  for child in $(pgrep -P "$1"); do end_tree "$child"; done
  kill -KILL "$1" 2>/dev/null
}

# Arguments of tests may be whole megabytes: no line needs them in full. Failures are kept, and
# repeated at the end, where a reader finds them. Tests that never end are ended, and named.
log=$(mktemp)
wrong=$(mktemp)
trap 'rm -f "$log" "$wrong"' EXIT
# A few at a time: hundreds that begin together keep each other from the processor for longer than a
# handshake may take.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=16
tests() {
  local status=0
  limited swift test --traits Web --skip-build "$@" 2>&1 |
    stdbuf -oL cut -c 1-400 | tee "$log" || status=$?
  [ "$status" -ne 137 ] || unended >>"$wrong"
  # A known issue is expected; it begins with another mark.
  [ "$status" -eq 0 ] ||
    grep -E -A 6 '✘ Test .* recorded an issue|error: |Fatal error|unexpected signal' "$log" >>"$wrong"
  return "$status"
}
# The tests that began and did not end, out of the log.
unended() {
  echo "not ended after ${KITH_TEST_LIMIT:-900} s:"
  sed -n 's/^◇ \(Test .*\) started\.$/\1/p' "$log" | grep -v '^Test case passing' | sort -u |
    while read -r name; do
      grep -qF -e "✔ $name passed" -e "✘ $name failed" -e "➜ $name skipped" "$log" ||
        grep -qF -e "✔ $name with" -e "✘ $name with" "$log" || echo "  $name"
    done
}

attacks='KithCommandsTests\.(Faults|HalfOpenTests)'
# Real processes under attack. All that they make on the host begins with the name of this run, and
# must be gone afterwards.
faults() {
  local status=0
  KITH_RUN=$$ tests --filter "$attacks" || status=$?
  leftovers "kith-$$-" || status=1
  return "$status"
}
leftovers() {
  local prefix=$1 status=0 pid path name
  for path in /proc/[0-9]*; do
    pid=${path#/proc/}
    [ "$pid" = "$$" ] || [ "$pid" = "$BASHPID" ] && continue
    tr '\0' ' ' <"$path/cmdline" 2>/dev/null | grep -q "/tmp/$prefix" || continue
    echo "left behind: process $pid: $(tr '\0' ' ' <"$path/cmdline" | cut -c 1-200)" >&2
    kill -KILL "$pid"
    status=1
  done
  while read -r _ path _; do
    case $path in "/tmp/$prefix"*) ;; *) continue ;; esac
    echo "left behind: mount $path" >&2
    as_root umount -l "$path"
    status=1
  done </proc/mounts
  for name in $(ip netns list 2>/dev/null | cut -d ' ' -f 1); do
    case $name in "$prefix"*) ;; *) continue ;; esac
    echo "left behind: network namespace $name" >&2
    as_root ip netns del "$name"
    status=1
  done
  for path in "/tmp/$prefix"*; do
    [ -e "$path" ] || continue
    echo "left behind: $path" >&2
    rm -rf "$path"
    status=1
  done
  return "$status"
}

# Prints what went wrong, and how each part went; its status is that of the whole.
summary() {
  local index
  [ -s "$wrong" ] && printf '\n== what went wrong\n' && head -n 200 "$wrong"
  printf '\n== summary\n'
  for index in "${!names[@]}"; do printf '%-10s %s\n' "${names[$index]}" "${results[$index]}"; done
  case "$failed ${results[*]}" in
  1*) echo "something failed" ;;
  *skipped*) echo "all passed that this host can run" ;;
  *) echo "all passed" ;;
  esac
  return "$failed"
}
