#!/bin/bash
# shot.sh file out width height [dark]
extra=""; [ "$5" = dark ] && extra="--force-dark-mode --enable-features=WebContentsForceDark:inversion_method/0 --blink-settings=preferredColorScheme=0"
d=$(mktemp -d); timeout 60 chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars --user-data-dir=$d --virtual-time-budget=4000 --enable-logging=stderr --v=0 $( [ "$5" = dark ] && echo --blink-settings=preferredColorScheme=0 ) --screenshot=$2 --window-size=$3,$4 file://$1 2>&1 | grep -i "console\|refused\|violat"; rm -rf $d
