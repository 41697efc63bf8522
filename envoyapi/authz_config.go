// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/metehq/mete/policy"
)

// AuthorizationConfig holds the settings of an [Authorization]. The zero AuthorizationConfig is valid. The client is
// then the peer of Envoy's connection, which a check contains as its source.
//
// Without trusted proxies and hops, no header determines the client. If a check has no source address either, as
// behind a Unix socket, ip:address is missing, and the on_missing of each rule decides.
type AuthorizationConfig struct {
	// TrustedProxies are the addresses of Envoy and of the proxies in front of it, at most 1024 prefixes. If the
	// source of a check is one of them, the client is the rightmost address in ForwardedHeader that is not. Calls
	// from other addresses get the gRPC status PERMISSION_DENIED.
	TrustedProxies []netip.Prefix

	// TrustedHops is the number of proxies that every request has passed, including Envoy, at most 32. Use it if
	// their addresses are unknown. Every caller is then trusted. With 1, the client is the source of the check.
	// TrustedHops and TrustedProxies cannot be combined.
	//
	// Envoy's peer counts as a hop, whether or not Envoy has appended its address to X-Forwarded-For
	// (use_remote_address).
	TrustedHops int

	// ForwardedHeader is the header in which the trusted proxies write client addresses. Other headers are
	// ignored. Empty means X-Forwarded-For.
	ForwardedHeader string

	// Attribute, if not nil, returns the policy's jwt: and custom attributes. It receives the client's request as
	// Envoy described it and must be safe for concurrent use. It should return only verified claims.
	Attribute func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims reads jwt: attributes from the bearer token WITHOUT verifying it. Set it only if Envoy
	// verifies the token first. Attribute is then called for custom attributes only.
	UnverifiedClaims bool

	// Fields are the dialects of the RateLimit header fields: any of "draft-11", "legacy" and "x", or only
	// "none". Empty means draft-11 and legacy.
	Fields []string

	// DisableJitter makes Retry-After the exact wait, rounded up to seconds; see
	// [github.com/metehq/mete/httplimit.Config].
	DisableJitter bool

	// JitterKey is the key of the hash that computes each client's jitter. Servers that serve the same clients
	// should share it. If empty, the key is random.
	JitterKey []byte

	// MaxDelay bounds how long an answer is delayed while the request waits in the queue of a leaky bucket. Zero
	// means 30 seconds. A request with a longer wait is denied with a Retry-After. The wait
	// must also end within nine tenths of the time until the deadline of the call.
	MaxDelay time.Duration

	// MaxDelayed bounds the answers that are delayed at the same time. One key may have a quarter of them. Zero
	// means 4096. Excess requests are denied.
	MaxDelayed int

	// OnMisuse, if not nil, receives the reason of a gRPC error for an unusable call. Either the caller is not
	// trusted, or the call describes no HTTP request. OnMisuse must be safe for concurrent use and must not block.
	// detail contains nothing from the request.
	OnMisuse func(detail string)
}
