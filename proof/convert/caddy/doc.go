// SPDX-License-Identifier: Apache-2.0

// Package caddy compares the policies of mete convert with Caddy and the handler rate_limit of
// github.com/mholt/caddy-ratelimit. The test builds Caddy, which takes minutes the first time.
package caddy
