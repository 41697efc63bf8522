// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

// The parameters of draft-ietf-httpapi-ratelimit-headers-11. The next draft is
// expected to rename r and t.
const (
	paramQuota     = ";q="
	paramWindow    = ";w="
	paramAvailable = ";r="
	paramEffective = ";t="
)

// A field is one of the header fields there are.
type field uint8

const (
	draftPolicy field = iota
	draftLimit
	legacyLimit // the trio is in this order
	legacyRemaining
	legacyReset
	xLimit // and so is this one
	xRemaining
	xReset
	retryAfter
	reason
	cacheControl
	warning

	fieldCount = iota
)

// fieldNames are in the spelling of their standards.
var fieldNames = [fieldCount]string{
	draftPolicy: "RateLimit-Policy", draftLimit: "RateLimit",
	legacyLimit: "RateLimit-Limit", legacyRemaining: "RateLimit-Remaining", legacyReset: "RateLimit-Reset",
	xLimit: "X-RateLimit-Limit", xRemaining: "X-RateLimit-Remaining", xReset: "X-RateLimit-Reset",
	retryAfter: "Retry-After", reason: "X-RateLimit-Reason", cacheControl: "Cache-Control",
	warning: "X-RateLimit-Warning",
}
