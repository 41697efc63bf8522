#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Reloads the units, and removes the admin token when dpkg purges the package.
set -e

if [ "${1:-}" = purge ]; then
	rm -f "${DPKG_ROOT:-}/etc/mete/admin.token"
	rmdir --ignore-fail-on-non-empty "${DPKG_ROOT:-}/etc/mete" 2>/dev/null || :
fi
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
fi
