// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"fmt"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// meteMaxKeys is more than the keys of any run. The store does not allocate for it in advance.
const meteMaxKeys = 8_000_000

type keyedLimiter struct{ *keyed.Limiter }

func newKeyed(q Quota) (Limiter, error) {
	rate := bucket.Rate{Tokens: bucket.Token, Per: q.Every}
	limit, err := bucket.NewLimit(bucket.Tokens(q.Capacity)*bucket.Token, rate)
	if err != nil {
		return nil, err
	}
	l, err := keyed.New(limit, keyed.Config{MaxKeys: meteMaxKeys})
	return keyedLimiter{l}, err
}

func (l keyedLimiter) Take(key string) bool { return l.Allow(key) }

func (keyedLimiter) Close() {}

// A policyLimiter decides by request attributes. One goroutine reuses them.
type policyLimiter struct {
	*mete.Limiter
	request *request
}

// A request has the client's key in its header. All requests have the same path.
type request struct{ key string }

func (r *request) Lookup(a policy.Attribute) (string, bool) {
	if a.Source == policy.SourcePath {
		return "/v1/items", true
	}
	return r.key, true
}

// newPolicy returns a constructor of limiters with a rule for each of the limit keys.
func newPolicy(keys ...string) func(Quota) (Limiter, error) {
	return func(q Quota) (Limiter, error) {
		var rules []string
		for i, key := range keys {
			rules = append(rules, fmt.Sprintf(`{"name": "rule%d", "group": "%d", "limit_keys": [%s], "algorithm_config": {"rate": "1/%v", "burst": %d}}`,
				i, i, key, q.Every, q.Capacity))
		}
		m, err := policy.Load([]byte(`{"rules": [`+strings.Join(rules, ",")+`]}`), policy.Options{HashKey: []byte("bench")})
		if err != nil {
			return nil, err
		}
		store, err := memstore.New(memstore.Config{MaxKeys: meteMaxKeys})
		if err != nil {
			return nil, err
		}
		l, err := mete.New(store, m, mete.Config{})
		return policyLimiter{l, new(request)}, err
	}
}

func (l policyLimiter) Take(key string) bool {
	l.request.key = key
	d, err := l.Limiter.Take(context.Background(), mete.Request{Attributes: l.request})
	return err == nil && d.Allowed
}

func (l policyLimiter) ForGoroutine() Limiter { return policyLimiter{l.Limiter, new(request)} }

func (policyLimiter) Close() {}
