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
	"github.com/metehq/mete/internal/turn"
	"github.com/metehq/mete/policy"
)

// Config are the settings of a server's [Interceptor]. The zero Config trusts no
// proxy, waits for nothing but the turns that a leaky bucket gives, and decides
// a stream once.
type Config struct {
	// Methods limit calls besides what the policy says, all or nothing with it:
	// at most [MaxMethodLimits].
	Methods []MethodLimit

	// Attribute, if set, supplies jwt: and custom attributes. It must be safe for
	// concurrent use. The context is the call's: metadata, peer and [grpc.Method]
	// are in it. Only verified claims should be supplied.
	Attribute func(context.Context, policy.Attribute) (value string, ok bool)

	// TrustedProxies are the addresses of the proxies in front of the program,
	// at most 1024 prefixes. The client is the rightmost hop in ForwardedKey
	// that is not one of them; nothing is read from it unless the connection
	// comes from one, too. A prefix that holds every address is refused.
	TrustedProxies []netip.Prefix

	// TrustedHops is how many proxies every call has passed, at most 32, for
	// those whose addresses are not known. It must be exact, and no call may come
	// around them. It takes the place of TrustedProxies; both are an error.
	TrustedHops int

	// ForwardedKey is the one metadata key that trusted proxies write clients'
	// addresses to. If empty, x-forwarded-for. The key forwarded is read as RFC
	// 7239 says, any other as a list of addresses.
	ForwardedKey string

	// MaxWait is how long a call may be held back until its tokens are there,
	// rather than denied; never beyond its deadline. Calls that wait occupy a
	// goroutine each.
	MaxWait time.Duration

	// MaxDelay is the longest that a call waits for the turn that a leaky bucket
	// gives it. If zero, 30 s, or MaxWait if that is longer. One that would have to
	// wait longer, or past its deadline, is denied at once.
	MaxDelay time.Duration

	// OnDecision, if set, is called with what each call, and each message that is
	// decided, is told, once, before it goes on. Unlike [mete.Config]'s, it learns the
	// names of Methods, of calls that lack the key of one, and of those denied for a
	// wait beyond MaxDelay, which the limiter had allowed: set this one or that.
	// [mete.LogDecisions] fits both. It must not change the decision, must not block,
	// and must not keep it.
	OnDecision func(context.Context, *mete.Decision)

	// Denied, if set, returns the error that a denied call or message ends with, in place
	// of the default status. The trailers are set in any case. An error without a status
	// becomes UNKNOWN. With nil, the call keeps the default status: Denied never admits a
	// call. The Reason of the decision tells why. It must be safe for concurrent use, must
	// not change the decision, and must not keep it.
	Denied func(ctx context.Context, method string, d mete.Decision) error

	// Exempt, if set, exempts the calls for which it returns true: they go on to the
	// handler, cost nothing, and have no trailers, and OnDecision does not see them. A
	// stream is exempt as a whole. It must be safe for concurrent use. Beware of values
	// that clients choose, such as metadata: a client could exempt itself.
	Exempt func(ctx context.Context, method string) bool

	// PerMessage decides every message that a stream receives after the first.
	PerMessage bool

	// HashKey keys the hash that replaces long and secret values in the bucket
	// keys of Methods: see [policy.Options]. If empty, it is [mete.Limiter.HashKey].
	HashKey []byte

	// OmitTrailers sends no ratelimit trailers on calls that are allowed.
	OmitTrailers bool
}

// check sets defaults and returns every mistake in c that only c can know.
func (c *Config) check() error {
	var errs []error
	if c.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("a longest wait of %v: must not be below 0", c.MaxWait))
	}
	if c.MaxDelay < 0 {
		errs = append(errs, fmt.Errorf("a longest delay of %v: must not be below 0", c.MaxDelay))
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = max(turn.Most, c.MaxWait)
	}
	return errors.Join(errs...)
}

// source reads clients' addresses, and nothing else.
func (c *Config) source() (*httpfacts.Source, error) {
	return httpfacts.New(httpfacts.Config{
		Trust: httpfacts.Trust{Proxies: c.TrustedProxies, Hops: c.TrustedHops, Header: c.forwardedHeader()},
	})
}

// forwardedHeader is the header that ForwardedKey is in HTTP/1.
func (c *Config) forwardedHeader() string {
	if c.ForwardedKey == "" {
		return "X-Forwarded-For"
	}
	return http.CanonicalHeaderKey(c.ForwardedKey)
}

// ClientConfig are the settings of a [ClientInterceptor]. The zero ClientConfig
// retries what servers ask it to retry, each call on its own.
type ClientConfig struct {
	// Methods limit outgoing calls besides what the limiter's policy says: at
	// most [MaxMethodLimits].
	Methods []MethodLimit

	// Attribute, if set, supplies jwt: and custom attributes of outgoing calls.
	// It must be safe for concurrent use.
	Attribute func(context.Context, policy.Attribute) (value string, ok bool)

	// Scope, if set, says which calls a server limits together: for example the
	// tenant whose credentials the call carries. Once one of them was told to
	// wait, all of them are paced until the server is content again. Calls of the
	// empty scope are on their own, and so are all where Scope is nil: what a
	// server says to one call says nothing about another. Scopes of different
	// targets are different. It must be safe for concurrent use.
	Scope func(ctx context.Context, method string) string

	// MaxAttempts is how often a unary call is sent at most. If zero, 3; 1 never
	// retries. At most [MaxAttempts].
	MaxAttempts int

	// MaxDelay is the longest wait that a server is obeyed in; what asks for more
	// fails at once with the server's error. If zero, 30 s.
	MaxDelay time.Duration

	// PerMessage takes from the limiter for every message that a stream sends
	// after the first.
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

// check sets defaults and returns every mistake in c that only c can know.
func (c *ClientConfig) check() error {
	var errs []error
	if c.MaxAttempts < 0 || c.MaxAttempts > MaxAttempts {
		errs = append(errs, fmt.Errorf("%d attempts: must be between 0 (%d) and %d", c.MaxAttempts, defaultAttempts, MaxAttempts))
	}
	if c.MaxDelay < 0 {
		errs = append(errs, fmt.Errorf("a longest delay of %v: must not be below 0", c.MaxDelay))
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = defaultAttempts
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = defaultMaxDelay
	}
	return errors.Join(errs...)
}
