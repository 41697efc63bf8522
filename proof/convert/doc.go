// SPDX-License-Identifier: Apache-2.0

// Package convert compares the policies of mete convert with their gateways: nginx and HAProxy here, Caddy
// and envoyproxy/ratelimit in subpackages.
package convert
