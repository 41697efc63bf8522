// SPDX-License-Identifier: Apache-2.0

// Package convert holds the policies of mete convert against the gateways that they come
// from: nginx and HAProxy run here, Caddy and envoyproxy/ratelimit in packages of their own.
package convert
