// SPDX-License-Identifier: Apache-2.0

// Package frameworks shows rate limits in chi, echo, gin and fiber, in one file each.
//
// Each server limits each client address to 100 requests per minute, with bursts of up to 20, in memory. For a shared
// store, use httplimit.Must or httplimit.New with its limiter instead of httplimit.PerAddress.
package frameworks
