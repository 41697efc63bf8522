// SPDX-License-Identifier: Apache-2.0

// Package frameworks limits requests in chi, echo, gin and fiber: one file each.
//
// Each server limits each client address to 100 requests per minute, with bursts of up to 20.
// The limits are in memory: httplimit.Must and httplimit.New take a limiter over a shared
// store in place of httplimit.PerAddress.
package frameworks
