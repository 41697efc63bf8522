// SPDX-License-Identifier: Apache-2.0

// Command program is Caddy with the handler rate_limit. It is a separate module, so that
// the requirements of Caddy move no version of ours.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/mholt/caddy-ratelimit"
)

func main() { caddycmd.Main() }
