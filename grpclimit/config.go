// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/queuewait"
	"github.com/metehq/mete/policy"
)

// Config holds the settings of a server's [Interceptor]. The zero Config trusts no proxy, waits only for the
// turns of leaky buckets, and decides each stream once.
type Config struct {
	// Methods limit calls in addition to the policy, all or nothing. At most [MaxMethodLimits].
	Methods []MethodLimit

	// Attribute, if not nil, returns jwt: and custom attributes. It must be safe for concurrent use. The context
	// of the call contains metadata, peer and [grpc.Method]. Attribute should return only verified claims.
	Attribute func(context.Context, policy.Attribute) (value string, ok bool)

	// TrustedProxies are the addresses of the proxies in front of the program, at most 1024 prefixes. The client
	// is the rightmost address in ForwardedKey that is not a trusted proxy. The key is ignored unless the
	// connection also comes from a trusted proxy. A prefix that contains every address is an error.
	TrustedProxies []netip.Prefix

	// TrustedHops is the number of proxies that every call has passed, at most 32. Use it if their addresses are
	// unknown. The number must be exact, and no call may bypass the proxies. Setting both TrustedHops and
	// TrustedProxies is an error.
	TrustedHops int

	// ForwardedKey is the metadata key in which trusted proxies write client addresses. Empty means
	// x-forwarded-for. The key forwarded is parsed as in RFC 7239, any other key as a list of addresses.
	ForwardedKey string

	// MaxWait bounds how long a call waits for its tokens instead of being denied. A call never waits beyond its
	// deadline. Each waiting call uses a goroutine.
	MaxWait time.Duration

	// MaxDelay bounds how long a call waits for its turn in a leaky bucket. Zero means 30 s, or MaxWait if that
	// is longer. A call with a longer wait or an earlier deadline is denied immediately.
	MaxDelay time.Duration

	// OnDecision, if not nil, is called once with the decision of each call and each limited message, before the
	// handler runs. Unlike the hook of [mete.Config], it knows the names of Methods. It also sees calls that lack
	// the key of a limit, and calls that would wait longer than MaxDelay. Set only one of the two hooks.
	// [mete.LogDecisions] fits both. It must not block, and must not change or keep the decision.
	OnDecision func(context.Context, *mete.Decision)

	// Denied, if not nil, returns the error for a denied call or message, instead of the default status. The
	// trailers are set in any case. An error without a status becomes UNKNOWN. With nil, the call keeps the
	// default status: Denied never allows a call. The Reason of the decision is the cause. Denied must be safe
	// for concurrent use, and must not change or keep the decision.
	Denied func(ctx context.Context, method string, d mete.Decision) error

	// Exempt, if not nil, exempts the calls for which it returns true. They go to the handler, cost nothing, get
	// no trailers and are not passed to OnDecision. A stream is exempt as a whole. Exempt must be safe for
	// concurrent use. Do not rely on values that clients control, such as metadata: a client could exempt itself.
	Exempt func(ctx context.Context, method string) bool

	// PerMessage also limits every message that a stream receives after the first.
	PerMessage bool

	// HashKey is the key of the hash that replaces long and secret values in the bucket keys of Methods: see
	// [policy.Options]. If empty, it is [mete.Limiter.HashKey].
	HashKey []byte

	// OmitTrailers omits the ratelimit trailers of allowed calls.
	OmitTrailers bool
}

func (c *Config) validate() error {
	var errs []error
	if c.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("max wait %v: must not be negative", c.MaxWait))
	}
	if c.MaxDelay < 0 {
		errs = append(errs, fmt.Errorf("max delay %v: must not be negative", c.MaxDelay))
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = max(queuewait.DefaultMaxWait, c.MaxWait)
	}
	return errors.Join(errs...)
}

func (c *Config) source() (*httpfacts.Source, error) {
	return httpfacts.New(httpfacts.Config{
		Trust: httpfacts.Trust{Proxies: c.TrustedProxies, Hops: c.TrustedHops, Header: c.forwardedHeader()},
	})
}

func (c *Config) forwardedHeader() string {
	if c.ForwardedKey == "" {
		return "X-Forwarded-For"
	}
	return http.CanonicalHeaderKey(c.ForwardedKey)
}

// ClientConfig holds the settings of a [ClientInterceptor]. The zero ClientConfig retries calls when servers
// permit it, each call independently.
type ClientConfig struct {
	// Methods limit outgoing calls in addition to the limiter's policy. At most [MaxMethodLimits].
	Methods []MethodLimit

	// Attribute, if not nil, returns jwt: and custom attributes. It must be safe for concurrent use.
	Attribute func(context.Context, policy.Attribute) (value string, ok bool)

	// Scope, if not nil, returns a name for the calls that a server limits together, for example the tenant of
	// the call's credentials. After a server tells one of them to wait, all calls of the scope are paced until
	// the server accepts them again. Calls with an empty scope, or without Scope, are independent. Scopes of
	// different targets are separate. Scope must be safe for concurrent use.
	Scope func(ctx context.Context, method string) string

	// MaxAttempts bounds how often a unary call is sent. Zero means 3; 1 disables retries. At most [MaxAttempts].
	MaxAttempts int

	// MaxDelay bounds the wait that a server can request. A call with a longer wait fails immediately with the
	// server's error. Zero means 30 s.
	MaxDelay time.Duration

	// PerMessage also takes from the limiter for every message that a stream sends after the first.
	PerMessage bool

	// HashKey is as in [Config].
	HashKey []byte
}

// Bounds and defaults of a [ClientConfig].
const (
	// MaxAttempts bounds [ClientConfig.MaxAttempts].
	MaxAttempts = 10

	defaultAttempts = 3
	defaultMaxDelay = 30 * time.Second
)

func (c *ClientConfig) validate() error {
	var errs []error
	if c.MaxAttempts < 0 || c.MaxAttempts > MaxAttempts {
		errs = append(errs, fmt.Errorf("%d attempts: must be between 0 (%d) and %d", c.MaxAttempts, defaultAttempts, MaxAttempts))
	}
	if c.MaxDelay < 0 {
		errs = append(errs, fmt.Errorf("max delay %v: must not be negative", c.MaxDelay))
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = defaultAttempts
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = defaultMaxDelay
	}
	return errors.Join(errs...)
}
