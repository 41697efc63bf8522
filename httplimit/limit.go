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

// A Limit is a limit of a [Middleware] in addition to the policy. A request is charged by all limits or by none.
type Limit struct {
	// Name identifies the limit in header fields and problem bodies. It is required: letters, digits, and "-",
	// "_", "." and "/", at most 64 bytes. Limits with the same name share their buckets, even across middlewares
	// with the same store, and should then be identical.
	Name string

	// Rate is the refill rate, as in policies: "100/1m", "0.5/10s". It is required without Bucket.
	// [bucket.ParseRate] documents the grammar and the bounds.
	Rate string

	// Burst is the maximum number of requests at one instant, at least 1. It is required with Rate.
	Burst int

	// Bucket is a limit with another algorithm. It replaces Rate and Burst; setting both is an error.
	Bucket bucket.Limit

	// Key determines which requests share a bucket, such as [ByAddress]. It is required.
	Key Key

	// Cost is the cost of a request in whole tokens. Zero means 1. A cost that can never pass is an error.
	Cost int

	// Shards splits every bucket: see [mete.Charge]. At most [policy.MaxShards].
	Shards int
}

const maxNameBytes = 64

// A route is a validated Limit.
type route struct {
	prefix string // prefix of the keys; the whole key for a shared bucket
	key    Key
	keys   *keyCache
	charge mete.Charge // without the key

	// The rule and limit that decisions show.
	rule  policy.Rule
	limit policy.Limit
}

func (l *Limit) compile() (*route, error) {
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
		errs = append(errs, errors.New("key is required: use ByAddress, ByHeader, ByFunc or Everyone"))
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

// newRoutes validates limits. Their names must be unique.
func newRoutes(limits []Limit) ([]*route, error) {
	var all []*route
	var errs []error
	names := map[string]bool{}
	for i := range limits {
		r, err := limits[i].compile()
		if err == nil && names[r.rule.Name] {
			err = fmt.Errorf("limit %q: duplicate name", r.rule.Name)
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

// keyOf returns the key of r's bucket for a request, or "" if the request lacks the value.
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

func checkName(name string) error {
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_./", c)
	}
	if name == "" || len(name) > maxNameBytes || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }) {
		return fmt.Errorf("name %q: must be 1 to %d letters, digits or any of -_./", name, maxNameBytes)
	}
	return nil
}
