// SPDX-License-Identifier: Apache-2.0

// Package playground plays traffic against limits in virtual time, so that people see
// what a limit does before they have one. Nothing here decides anything: each lane is
// a policy as a file would have it, compiled by package policy, and a [mete.Limiter]
// over a store in memory whose clock stands at each request's own time. What comes
// out is what mete replay says of the same policy and the same trace, and both can be
// exported.
//
// The same input gives the same output, byte for byte.
package playground
