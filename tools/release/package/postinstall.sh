#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the admin token that the unit loads, once. The service is not started:
# its settings name an upstream that the administrator has to choose.
set -e

token="${DPKG_ROOT:-}/etc/mete/admin.token"
if [ ! -e "$token" ]; then
	(umask 077 && od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n' >"$token")
fi
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
	if systemctl --quiet is-active mete.service; then
		systemctl restart mete.service || echo "mete: did not restart: see systemctl status mete" >&2
	fi
fi
