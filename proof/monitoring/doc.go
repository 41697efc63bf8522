// SPDX-License-Identifier: Apache-2.0

// Package monitoring has the tests of examples/monitoring: with Debian's Prometheus,
// which reads real servers.
package monitoring
