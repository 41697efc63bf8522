// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests examples/monitoring with Debian's Prometheus and real servers.
package monitoring
