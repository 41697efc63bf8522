// SPDX-License-Identifier: Apache-2.0

// Package gateways runs what examples/gateways says: real nginx, with auth_request
// and with Lua, real HAProxy and real Caddy, each asking a real mete, in front of a
// service that says what it was sent. There is no other configuration than that of
// the examples: the tests copy it, and change its addresses and timeouts.
package gateways
