// SPDX-License-Identifier: Apache-2.0

// Package convert holds the policies of mete convert against the gateways that they come
// from: nginx and HAProxy run here, Caddy in package caddy.
package convert
