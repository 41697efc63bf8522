#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Reloads the units. When dpkg purges the package, removes the admin token and the
# buckets that the service saved: systemd made /var/lib/mete, a link to
# /var/lib/private/mete. rpm has no purge. It removes the token as a file of the
# package, and keeps the buckets.
set -e

root="${DPKG_ROOT:-}"
if [ "${1:-}" = purge ]; then
	rm -f "$root/etc/mete/admin.token"
	rm -rf "$root/var/lib/mete" "$root/var/lib/private/mete"
	rmdir --ignore-fail-on-non-empty "$root/etc/mete" 2>/dev/null || :
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
fi
