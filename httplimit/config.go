// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
)

// Config are a [Middleware]'s settings. The zero Config trusts no proxy and
// sends the default header fields.
type Config struct {
	// TrustedProxies are the addresses of the proxies in front of the program,
	// at most 1024 prefixes. The client is the rightmost hop in ForwardedHeader
	// that is not one of them; nothing is read from it unless the connection
	// comes from one, too. A prefix that holds every address is refused: it
	// would let clients choose their address.
	TrustedProxies []netip.Prefix

	// TrustedHops is how many proxies every request has passed, at most 32, for
	// those whose addresses are not known: 1 takes the rightmost address in
	// ForwardedHeader. It must be exact, and no request may come around them.
	// It takes the place of TrustedProxies; to set both is an error.
	TrustedHops int

	// ForwardedHeader names the one header the trusted proxies write clients'
	// addresses to; others are ignored. If empty, X-Forwarded-For. Forwarded is
	// read as RFC 7239 says, any other as a list of addresses.
	ForwardedHeader string

	// Attribute, if set, supplies the policy's jwt: and custom attributes. It
	// must be safe for concurrent use. Only verified claims should be supplied.
	// The front door also asks for jwt:sub of denied requests, for their jitter.
	Attribute func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims takes jwt: attributes from the bearer token WITHOUT
	// verifying it: whoever sends a request can claim to be anybody. Set it only
	// where no request gets here before something else has verified its token.
	// Attribute is then asked for custom attributes only.
	UnverifiedClaims bool

	// Fields are the dialects of the RateLimit header fields: "draft-11"
	// (RateLimit-Policy and RateLimit), "legacy" (RateLimit-Limit, -Remaining
	// and -Reset), "x" (X-RateLimit-Limit, -Remaining and -Reset, the Unix time at
	// which the bucket is full), or "none" alone. If empty, draft-11 and legacy.
	Fields []string

	// CORSOrigins are the origins whose scripts may read denials, as in
	// "https://app.example.com", or "*" alone for all of them. A denial then has
	// Access-Control-Allow-Origin and Access-Control-Expose-Headers. With named origins
	// it has Access-Control-Allow-Credentials, too. All other answers, and preflights,
	// are for the handler. If empty, denials have none of these fields.
	CORSOrigins []string

	// DisableJitter makes Retry-After the plain wait, rounded up to seconds. Otherwise
	// each client gets a longer wait, by 0 to max(1 s, 50%), so that clients do not all
	// return at once. All header fields of a denial have the same wait, and retry_after
	// of the problem body has the exact one.
	DisableJitter bool

	// JitterKey keys the hash that makes each client's jitter from its address, the
	// subject of its token or its Authorization field, and the key of the bucket. Servers
	// that answer the same clients should share JitterKey. If empty, it is random.
	JitterKey []byte

	// MaxDelay is the longest that a request waits in the queue of a limit that
	// has one. If zero, 30 seconds. One that would have to wait longer, or past the
	// deadline of its context, is denied at once, and told to come back when it
	// would not. It must be shorter than the server's WriteTimeout, which goes on
	// while a request waits: what starts after it is done, and not answered.
	MaxDelay time.Duration

	// MaxDelayed is how many requests wait at a time, those with one key a quarter of
	// them; one more is denied at once. If zero, 4096. Each is a goroutine, and most
	// often a connection.
	MaxDelayed int

	// OnDecision, if set, is called with what each request is told, once, before it
	// goes on or is answered. Unlike [mete.Config]'s, it learns the names of the
	// limits given to [New], of requests that lack the key of one, and of those
	// denied for a wait beyond MaxDelay, which the limiter had allowed: set this
	// one or that. [mete.LogDecisions] fits both. It must not change the decision,
	// must not block, and must not keep it.
	OnDecision func(context.Context, *mete.Decision)

	// Denied, if set, answers denied requests in place of the problem body. The header
	// already has the RateLimit fields, Retry-After, X-RateLimit-Reason, Cache-Control and
	// the CORS fields. Denied may change them and set its own status and body. Without
	// WriteHeader, the status is the default one: 429, 403 or 503. The Reason
	// of the decision tells why. Requests that servers read differently are no denials:
	// they keep their 400. Denied must be safe for concurrent use, must not change the
	// decision, and must not keep it.
	Denied func(http.ResponseWriter, *http.Request, mete.Decision)

	// Exempt, if set, exempts the requests for which it returns true: they go on to the
	// handler, cost nothing, and have no RateLimit fields, and OnDecision does not see
	// them. It must be safe for concurrent use. Beware of values that clients choose, such
	// as header fields: a client could exempt itself.
	Exempt func(*http.Request) bool

	// HashKey keys the hashes of what [ByHeader] and [ByFunc] find. Processes that
	// share a store must share it, and keep it over restarts. If empty, it is
	// [mete.Limiter.HashKey].
	HashKey []byte
}

func (c *Config) facts() httpfacts.Config {
	return httpfacts.Config{
		Trust:            httpfacts.Trust{Proxies: c.TrustedProxies, Hops: c.TrustedHops, Header: c.ForwardedHeader},
		Extra:            c.Attribute,
		UnverifiedClaims: c.UnverifiedClaims,
	}
}

func (c *Config) fields() ratelimitfields.Config {
	return ratelimitfields.Config{Dialects: c.Fields, DisableJitter: c.DisableJitter, JitterKey: c.JitterKey}
}
