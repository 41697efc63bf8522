// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ownlimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A Limit is a limit of a [Middleware], beside those of the policy. A request is
// charged by all of them or by none.
type Limit struct {
	// Name tells clients, in header fields and problem bodies, which limit it is.
	// It is required: letters, digits, and "-", "_", "." and "/", at most 64 bytes.
	// Limits of one name share their buckets, also those of two middlewares with
	// the same store, and should then be the same.
	Name string

	// Rate is how fast tokens come back, as in policies: "100/1m", "0.5/10s". It is
	// required without Bucket. [bucket.ParseRate] has the grammar and the bounds.
	Rate string

	// Burst is the most requests at one instant: the capacity in whole tokens, at least 1.
	// It is required with Rate.
	Burst int

	// Bucket is a limit of another algorithm than the token bucket. It replaces Rate and
	// Burst: to set both is an error.
	Bucket bucket.Limit

	// Key tells which requests share a bucket. It is required: see [ByAddress],
	// [ByHeader], [ByFunc] and [Everyone].
	Key Key

	// Cost is the whole tokens that a request costs. If zero, 1. A cost that the limit can
	// never admit is an error.
	Cost int

	// Shards splits every bucket: see [mete.Charge]. At most [policy.MaxShards].
	Shards int
}

// maxNameBytes bounds the names of limits and keys.
const maxNameBytes = 64

// A route is a Limit that has been checked.
type route struct {
	prefix string // of its keys; the whole key, where all share one
	key    Key
	keys   *keyCache
	charge mete.Charge // but for its key

	// What decisions show of it.
	rule  policy.Rule
	limit policy.Limit
}

func (l *Limit) route() (*route, error) {
	var errs []error
	if err := checkName(l.Name); err != nil {
		errs = append(errs, err)
	}
	cost := ownlimit.Whole(l.Cost)
	limit, err := ownlimit.Limit(l.Rate, l.Burst, l.Bucket)
	if err == nil {
		err = ownlimit.Check(limit, cost, l.Shards)
	}
	if err != nil {
		errs = append(errs, err)
	}
	switch {
	case l.Key.err != nil:
		errs = append(errs, l.Key.err)
	case l.Key.name == "":
		errs = append(errs, errors.New("key is required: say who shares a bucket, be it Everyone"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("limit %q: %w", l.Name, err)
	}
	return &route{
		prefix: policy.OwnKeyPrefix(l.Name) + l.Key.name,
		key:    l.Key,
		keys:   newKeyCache(),
		charge: mete.Charge{Limit: limit, Cost: mete.TokensOf(ownlimit.Cost(cost)), Shards: l.Shards},
		rule:   policy.Rule{Name: l.Name},
		limit:  policy.Limit{Name: l.Name, Reason: limit.Reason(), Bucket: limit},
	}, nil
}

// routes checks limits, and that no two have one name.
func routes(limits []Limit) ([]*route, error) {
	var all []*route
	var errs []error
	names := map[string]bool{}
	for i := range limits {
		r, err := limits[i].route()
		if err == nil && names[r.rule.Name] {
			err = fmt.Errorf("limit %q: the name is taken by an earlier limit", r.rule.Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		names[r.rule.Name] = true
		all = append(all, r)
	}
	if len(all) > store.MaxCharges {
		errs = append(errs, fmt.Errorf("%d limits: at most %d are allowed", len(all), store.MaxCharges))
	}
	return all, errors.Join(errs...)
}

// keyOf returns the key of r's bucket for a request, made in space. It is "" where the
// request lacks the value that the key is made of.
func (r *route) keyOf(facts *httpfacts.Facts, req *http.Request, h hashKey, space []byte) string {
	if r.key.value == nil {
		return r.prefix
	}
	value, ok := r.key.value(facts, req)
	if !ok || value == "" {
		return ""
	}
	slot, hash := r.keys.slot(value)
	if key := slot.key(value); key != "" {
		return key
	}
	return slot.add(r.key.append(append(space, r.prefix...), value, h), value, hash)
}

// checkName reports what is wrong with the name of a limit or a key.
func checkName(name string) error {
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_./", c)
	}
	if name == "" || len(name) > maxNameBytes || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }) {
		return fmt.Errorf("name %q: must be letters, digits, and any of -_./, between 1 and %d", name, maxNameBytes)
	}
	return nil
}
