// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
)

// Config holds the settings of a [Middleware]. The zero Config trusts no proxy.
type Config struct {
	// TrustedProxies are the addresses of the proxies in front of the program, at most 1024 prefixes. The client
	// is the rightmost address in ForwardedHeader that is not a trusted proxy. The header is ignored unless the
	// connection also comes from a trusted proxy. A prefix that contains every address is an error: clients could
	// choose their address.
	TrustedProxies []netip.Prefix

	// TrustedHops is the number of proxies that every request has passed, at most 32. Use it if their addresses
	// are unknown: 1 takes the rightmost address in ForwardedHeader. The number must be exact, and no request may
	// bypass the proxies. Setting both TrustedHops and TrustedProxies is an error.
	TrustedHops int

	// ForwardedHeader is the header in which the trusted proxies write client addresses. Other headers are
	// ignored. Empty means X-Forwarded-For. Forwarded is parsed as in RFC 7239, any other header as a list of
	// addresses.
	ForwardedHeader string

	// Attribute, if not nil, returns the policy's jwt: and custom attributes. It must be safe for concurrent use
	// and should return only verified claims. The middleware also reads jwt:sub of denied requests, for their
	// jitter.
	Attribute func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims reads jwt: attributes from the bearer token WITHOUT verifying it, so clients can claim any
	// identity. Set it only if a proxy in front verifies every token. Attribute is then called for custom
	// attributes only.
	UnverifiedClaims bool

	// Fields are the dialects of the RateLimit header fields, or only "none". "draft-11" has RateLimit-Policy and
	// RateLimit. "legacy" has RateLimit-Limit, -Remaining and -Reset. "x" has X-RateLimit-Limit, -Remaining and
	// -Reset, the Unix time at which the bucket is full. Empty means draft-11 and legacy.
	Fields []string

	// CORSOrigins are the origins of scripts that may read denials, such as "https://app.example.com", or only
	// "*" for every origin. A denial then has Access-Control-Allow-Origin and Access-Control-Expose-Headers, and
	// with named origins also Access-Control-Allow-Credentials. The handler is responsible for preflights and all
	// other responses. If empty, denials have none of these fields.
	CORSOrigins []string

	// DisableJitter makes Retry-After the exact wait, rounded up to seconds. Otherwise each client's wait is
	// longer by 0 to max(1 s, 50%), so that clients do not all return together. All header fields of a denial have
	// the same wait; retry_after in the problem body has the exact one.
	DisableJitter bool

	// JitterKey is the key of the hash that computes jitter. The hash covers the client's address, the subject of
	// its token or its Authorization field, and the bucket's key. Servers with the same clients should share it.
	// If empty, it is random.
	JitterKey []byte

	// MaxDelay bounds how long a request waits in the queue of a limit. Zero means 30 seconds. A request with a
	// longer wait, or with a context that ends sooner, is denied immediately with a Retry-After. MaxDelay must be
	// shorter than the server's WriteTimeout, which includes the wait: a request that starts later runs but gets
	// no response.
	MaxDelay time.Duration

	// MaxDelayed bounds the requests that wait at the same time; one key may have a quarter of them. Excess
	// requests are denied immediately. Zero means 4096. Each waiting request uses a goroutine and usually a
	// connection.
	MaxDelayed int

	// OnDecision, if not nil, is called once with the decision of each request, before the handler runs or the
	// response is written. Unlike the hook of [mete.Config], it knows the names of the limits passed to [New]. It
	// also sees requests that lack the key of a limit, and requests that would wait longer than MaxDelay. Set
	// only one of the two hooks. [mete.LogDecisions] fits both. It must not block, and must not change or keep
	// the decision.
	OnDecision func(context.Context, *mete.Decision)

	// Denied, if not nil, writes the response to denied requests instead of the problem body. The header already
	// has the RateLimit fields, Retry-After, X-RateLimit-Reason, Cache-Control and the CORS fields. Denied may
	// change them and set its own status and body. Without WriteHeader, the status is the default: 429, 403 or
	// 503. The Reason of the decision is the cause. Ambiguous requests are not denials: they still get a 400.
	// Denied must be safe for concurrent use, and must not change or keep the decision.
	Denied func(http.ResponseWriter, *http.Request, mete.Decision)

	// Exempt, if not nil, exempts the requests for which it returns true. They go to the handler, cost nothing,
	// get no RateLimit fields and are not passed to OnDecision. It must be safe for concurrent use. Do not rely
	// on values that clients control, such as header fields: a client could exempt itself.
	Exempt func(*http.Request) bool

	// HashKey is the key of the hashes of the values from [ByHeader] and [ByFunc]. Processes that share a store
	// must share it and keep it across restarts. If empty, it is [mete.Limiter.HashKey].
	HashKey []byte

	// Ratios learns how many tokens a byte of a prompt or an answer has, per model of a language model. Middlewares can share
	// it, and a program can show it. If nil, the middleware has its own.
	Ratios *ai.Ratios

	// Tiktoken counts the tokens of prompts for rules with token_source: tiktoken, such as the estimator of package aitokens.
	// If nil, these rules estimate as simple_word does.
	Tiktoken ai.Estimator

	// OnModelCall, if not nil, is called at the end of each admitted request to a language model. Requests of clients that
	// disconnect are left out if a bound ends the call before its response begins. It must not block, and must not change or keep the call.
	OnModelCall func(context.Context, *policy.ModelCall)
}

// learnedModels bounds the models with a ratio of their own.
const learnedModels = 1000

func (c *Config) facts() httpfacts.Config {
	return httpfacts.Config{
		Trust:            httpfacts.Trust{Proxies: c.TrustedProxies, Hops: c.TrustedHops, Header: c.ForwardedHeader},
		Extra:            c.Attribute,
		UnverifiedClaims: c.UnverifiedClaims,
		AI:               httpfacts.AI{Ratios: c.Ratios, Tiktoken: c.Tiktoken},
	}
}

func (c *Config) fields() ratelimitfields.Config {
	return ratelimitfields.Config{Dialects: c.Fields, DisableJitter: c.DisableJitter, JitterKey: c.JitterKey}
}
