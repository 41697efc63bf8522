// SPDX-License-Identifier: Apache-2.0

// Package caddy holds the policies of mete convert against Caddy with the handler
// rate_limit of github.com/mholt/caddy-ratelimit. The test builds that program, which takes
// minutes the first time.
package caddy
