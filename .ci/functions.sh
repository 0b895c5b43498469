# What .ci/run and .ci/nightly share; to be sourced in the root of the checkout.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" PIP_DISABLE_PIP_VERSION_CHECK=1
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s (%s min)\n' "$*" "$((SECONDS / 60))"; }

# The interpreter of a version: on the PATH, or one of pyenv's.
python_of() {
  local candidate
  for candidate in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python; do
    if "$candidate" -c "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, '$1'.split('.'))))" 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  echo "no Python $1 on this machine" >&2
  return 1
}

# A block of the README between its markers, so that what is tested is what is written there.
readme() { sed -n "/<!-- $1 -->/,/<!-- end -->/p" README.md | sed -n '/^```/,/^```/p' | sed '/^```/d'; }

main_python="$(python_of 3.11 || python_of 3.12 || python_of 3.13 || python_of 3.10)"
