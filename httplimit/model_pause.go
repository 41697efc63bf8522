// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
)

const (
	// longestProviderPause bounds the trust in a provider. After it, requests probe the provider.
	longestProviderPause = time.Hour

	// shortProviderPause follows a 429 response that announces no time.
	shortProviderPause = time.Second

	// leastProviderPause follows a response that leaves nothing of a limit. Other processes use the next tokens of a fast limit
	// while the response is on its way.
	leastProviderPause = 100 * time.Millisecond
)

// statusOverloaded is Anthropic's status of an overloaded API.
const statusOverloaded = 529

// providerPauses stops requests until the time that a provider has announced, in all processes that share the store. A
// pause is the debt of a bucket of capacity 0, which a microsecond refills by a thousandth. So a cost of 0 is denied until
// the pause ends, by the store's clock.
type providerPauses struct {
	limiter *mete.Limiter // without a policy
	limit   bucket.Limit
	prefix  string
	hash    hashKey
}

func newProviderPauses(limiter *mete.Limiter) (*providerPauses, error) {
	longest := bucket.Tokens(longestProviderPause.Microseconds())
	limit, _, err := bucket.Spec{Rate: bucket.Rate{Tokens: 1000 * bucket.Token, Per: time.Second}, MaxReserved: &longest}.Compile()
	if err != nil {
		return nil, err
	}
	key, err := limiter.HashKey()
	if err != nil {
		return nil, err
	}
	bare, err := mete.New(limiter.Store(), nil, mete.Config{})
	if err != nil {
		return nil, err
	}
	hash, err := newHashKey(key, nil, nil)
	return &providerPauses{limiter: bare, limit: limit, prefix: policy.OwnKeyPrefix("provider"), hash: hash}, err
}

// charge returns a charge that is denied during a pause. Providers count each model of an account by itself.
func (p *providerPauses) charge(account, model string) mete.Charge {
	return mete.Charge{Key: string(p.hash.append([]byte(p.prefix), account+"\x00"+model)), Limit: p.limit}
}

// left returns the rest of a pause.
func (p *providerPauses) left(ctx context.Context, look mete.Charge) (time.Duration, error) {
	d, err := p.limiter.Peek(ctx, mete.Request{Charges: []mete.Charge{look}})
	return d.RetryAfter, err
}

// begin pauses requests for a time from now on, unless a longer pause is active. A take with the same MaxWait as cost is
// admitted only if nothing else has lengthened the pause in the meantime. So pauses of several responses never add up.
func (p *providerPauses) begin(ctx context.Context, look mete.Charge, pause time.Duration) {
	for missing := pause; missing > 0; {
		c := look
		c.Cost = mete.TokensOf(bucket.Tokens(missing.Microseconds()))
		d, err := p.limiter.Take(ctx, mete.Request{Charges: []mete.Charge{c}, MaxWait: pause})
		if err != nil || d.Degraded || d.Allowed || len(d.Limits()) == 0 {
			return // without the store, the next rejection pauses again
		}
		missing = pause - d.Limits()[0].RoomAfter(0)
	}
}

// A providerCall is a request as its provider counts it.
type providerCall struct {
	look               mete.Charge // denied during a pause
	prompt, completion int64       // estimated tokens; 0 if unknown
}

// units returns the part of a limit that a request like c needs, by the name of the limit, or 0 if it is unknown.
func (c *providerCall) units(limit string) int64 {
	switch limit {
	case "requests":
		return 1
	case "tokens":
		return c.prompt + c.completion
	case "input-tokens":
		return c.prompt
	case "output-tokens":
		return c.completion
	}
	return 0
}

// providerPause returns how long a provider does not want further requests like c after a response. It is 0 for most responses.
//
// A limit without a rest refills while time passes. The pause ends when it has refilled enough for one more request like c: a
// pause until it is full would waste the whole limit. A larger request gets a 429 with the rest of the time.
func providerPause(res *http.Response, c *providerCall) time.Duration {
	now := time.Now()
	pause := time.Duration(0)
	limits, untilFull := ratelimitfields.ReadModel(res.Header, now)
	for i := range limits {
		switch l := &limits[i]; {
		case l.Remaining > 0:
		case untilFull:
			pause = max(pause, refillTime(l, c.units(l.Name)))
		default:
			pause = max(pause, l.Reset)
		}
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded:
		if wait, ok := ratelimitfields.RetryAfterModel(res.Header, now); ok {
			pause = wait // it is exact for this request, and a refill is an estimate
		} else if res.StatusCode == http.StatusTooManyRequests {
			pause = max(pause, shortProviderPause)
		}
	}
	return min(pause, longestProviderPause).Truncate(time.Microsecond)
}

// refillTime returns the time until an empty limit has refilled some units. It is the whole reset if the rate or the number of
// units is unknown.
func refillTime(l *ratelimitfields.Announced, units int64) time.Duration {
	if l.Quota <= 0 || units <= 0 || units >= l.Quota {
		return l.Reset
	}
	wait := time.Duration(math.Ceil(float64(l.Reset.Microseconds())*float64(units)/float64(l.Quota))) * time.Microsecond
	return min(max(wait, leastProviderPause), l.Reset)
}
