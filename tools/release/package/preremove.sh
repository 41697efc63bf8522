#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stops the service, unless an upgrade removes the old version. dpkg passes
# "remove", rpm passes the number of versions that stay.
set -e

case "${1:-}" in
remove | 0)
	if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
		systemctl --quiet --no-reload disable --now mete.service
	fi
	;;
esac
