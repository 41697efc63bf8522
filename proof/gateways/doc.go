// SPDX-License-Identifier: Apache-2.0

// Package gateways tests examples/gateways with real gateways: nginx with auth_request and with Lua, HAProxy,
// and Caddy. Each calls a real mete, and forwards to a service that echoes requests. The tests copy the
// configurations of the examples and change only addresses and timeouts.
package gateways
