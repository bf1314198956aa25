#!/bin/sh
# A Chromium for the browser tests: the one that is there, or Debian's where it may be installed.
for name in "$CHROMIUM" chromium-headless-shell chromium chromium-browser google-chrome chrome; do
  if [ -n "$name" ] && command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing a Chromium with apt-get"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null 2>&1
  for package in chromium-headless-shell chromium; do
    if apt-get install -y -qq --no-install-recommends "$package" fonts-dejavu-core >/dev/null 2>&1
    then exit 0; fi
  done
fi
echo "there is no Chromium and none could be installed: its tests are skipped." \
  "apt-get install chromium-headless-shell, or CHROMIUM=its path"
