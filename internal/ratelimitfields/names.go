// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import "net/http"

// The parameters of draft-ietf-httpapi-ratelimit-headers-11. The next draft is expected to rename r and t.
const (
	paramQuota     = ";q="
	paramWindow    = ";w="
	paramAvailable = ";r="
	paramEffective = ";t="
)

type field uint8

const (
	draftPolicy field = iota
	draftLimit
	legacyLimit // the three fields must stay in this order
	legacyRemaining
	legacyReset
	xLimit // the three fields must stay in this order
	xRemaining
	xReset
	retryAfter
	reason
	cacheControl
	warning
	tokensLimit // the three fields must stay in this order
	tokensRemaining
	tokensReset
	requestsLimit // the three fields must stay in this order
	requestsRemaining
	requestsReset

	fieldCount = iota
)

// fieldNames are in the canonical form of [net/http.CanonicalHeaderKey], not in the spelling of the draft:
// [net/http.Header] finds no other keys. Field names are case-insensitive (RFC 9110, section 5.1).
var fieldNames = [fieldCount]string{
	draftPolicy: "Ratelimit-Policy", draftLimit: "Ratelimit",
	legacyLimit: "Ratelimit-Limit", legacyRemaining: "Ratelimit-Remaining", legacyReset: "Ratelimit-Reset",
	xLimit: "X-Ratelimit-Limit", xRemaining: "X-Ratelimit-Remaining", xReset: "X-Ratelimit-Reset",
	retryAfter: "Retry-After", reason: "X-Ratelimit-Reason", cacheControl: "Cache-Control",
	warning:     "X-Ratelimit-Warning",
	tokensLimit: "X-Ratelimit-Limit-Tokens", tokensRemaining: "X-Ratelimit-Remaining-Tokens", tokensReset: "X-Ratelimit-Reset-Tokens",
	requestsLimit: "X-Ratelimit-Limit-Requests", requestsRemaining: "X-Ratelimit-Remaining-Requests", requestsReset: "X-Ratelimit-Reset-Requests",
}

// Remove deletes the rate limit fields of every dialect. It keeps Retry-After and Cache-Control.
func Remove(h http.Header) {
	for f, name := range fieldNames {
		if field(f) != retryAfter && field(f) != cacheControl {
			delete(h, name)
		}
	}
}
