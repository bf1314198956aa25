#!/bin/sh
# LightGBM's wheel uses the system's OpenMP (libgomp), which a bare Debian does not have.
# sh constraints/install_openmp.sh PYTHON: nothing where LightGBM loads, else apt-get where it may.
loads() {
  "$1" -c 'import lightgbm' 2>&1 | grep -q 'OSError' && return 1
  return 0
}
if loads "$1"; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing libgomp1 with apt-get, for LightGBM"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null 2>&1
  apt-get install -y -qq --no-install-recommends libgomp1 >/dev/null 2>&1
  if loads "$1"; then exit 0; fi
fi
echo "LightGBM does not load: it needs OpenMP, which could not be installed here. Its tests and the" \
  "README's are skipped. Debian: apt-get install libgomp1; macOS: brew install libomp"
