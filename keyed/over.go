// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

var (
	// ErrStore: [Over] or [NewShared] was given no store.
	ErrStore = errors.New("keyed: a store is required")

	// ErrBurst: a burst is below 1, or more than the limit's arithmetic can hold.
	ErrBurst = errors.New("keyed: invalid burst")

	// ErrName: a [SharedConfig.Name] is invalid.
	ErrName = errors.New("keyed: invalid name")
)

// A Shared is a limiter with a bucket for each key in a store, which other processes can
// share. [Over] or [NewShared] makes it; the zero Shared is of no use. It is safe for
// concurrent use, starts no goroutine and needs no Close. The store is the caller's.
//
// The store sees no key, but the hash of it under a secret. The secret is the store's, so
// all its processes have the same. The key of a bucket is
//
//	keyed:NAME:~HASH
//
// with [SharedConfig.Name] and 22 characters. A reader of the whole store can test guesses
// of a key. A key can have any length, and may be empty.
type Shared struct {
	limit   bucket.Limit
	ofKey   bool // the limit differs from key to key: see [bucket.Limit.For]
	prefix  string
	hashKey []byte
	limiter *mete.Limiter
}

// SharedConfig are the optional settings of a [Shared].
type SharedConfig struct {
	// Name begins the keys in the store, so limiters with different names have different
	// buckets. It has at most 64 of a-z, 0-9, - and _. If empty, it is made of the limit:
	// limiters with the same limit then share buckets, and a changed limit begins with
	// full ones. With a name, a changed limit keeps the tokens that are missing.
	Name string

	// Deadline is how long the store may take: between policy.MinDeadline and
	// policy.MaxDeadline, or 0 for policy.DefaultDeadline.
	Deadline time.Duration
}

// Over returns a limiter over a store. Its buckets hold burst whole tokens and refill at
// rate, written as [bucket.ParseRate] reads it: "10/1m", "0.5/s".
//
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//	logins, err := keyed.Over(limiter.Store(), "10/1m", 20)
//
// All processes that call it with the same store, rate and burst share the buckets. Over
// asks the store for its secret: see [Shared] about keys. An error wraps [ErrStore],
// [bucket.ErrRate], [ErrBurst], or an error of the store.
func Over(store mete.Store, rate string, burst int) (*Shared, error) {
	r, err := bucket.ParseRate(rate)
	if err != nil {
		return nil, fmt.Errorf("keyed: over: rate %q: %w; valid rates are 10/1m, 0.5/s and 1000/24h", rate, err)
	}
	const most = int64(bucket.MaxTokens / bucket.Token)
	if burst < 1 || int64(burst) > most {
		return nil, fmt.Errorf("%w: %d: must be between 1 and %d", ErrBurst, burst, most)
	}
	limit, err := bucket.NewLimit(tokens(burst), r)
	if err != nil {
		return nil, fmt.Errorf("%w: %d at %q: %w", ErrBurst, burst, rate, err)
	}
	return NewShared(store, limit, SharedConfig{})
}

// NewShared is [Over] for limits of any algorithm and other settings. The zero limit is
// refused.
func NewShared(store mete.Store, limit bucket.Limit, config SharedConfig) (*Shared, error) {
	switch {
	case store == nil:
		return nil, fmt.Errorf("%w: take the Store of redisstore.NewLimiter or pgstore.NewLimiter, or memstore.New", ErrStore)
	case limit == (bucket.Limit{}):
		return nil, fmt.Errorf("keyed: over: %w: the limit is required: make one with bucket.NewLimit or bucket.Spec", bucket.ErrLimit)
	case !validName(config.Name):
		return nil, fmt.Errorf("%w: %q: must be at most %d of a-z, 0-9, - and _", ErrName, config.Name, maxNameBytes)
	}
	limiter, err := mete.New(store, nil, mete.Config{Deadline: config.Deadline})
	if err != nil {
		return nil, fmt.Errorf("keyed: over: %w", err)
	}
	hashKey, err := limiter.HashKey()
	if err != nil {
		return nil, fmt.Errorf("keyed: over: %w", err)
	}
	name := config.Name
	if name == "" {
		name = nameOf(limit)
	}
	return &Shared{
		limit: limit, ofKey: limit.Anchor() == bucket.AnchorKey,
		prefix: "keyed:" + name + ":~", hashKey: bytes.Clone(hashKey), limiter: limiter,
	}, nil
}

// nameOf returns the name of a limit: "20000+1/6000" is a capacity of 20 tokens and a
// refill of 1 thousandth in 6000 microseconds.
func nameOf(l bucket.Limit) string {
	n, p := l.Refill()
	name := fmt.Sprintf("%d+%d/%d", l.Capacity(), n, p)
	if l.Algorithm() != bucket.Continuous {
		name += fmt.Sprintf(",%d", l.Algorithm())
	}
	return name
}

const maxNameBytes = 64

func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(name) <= maxNameBytes
}

// hashBytes is the part of a hash that stands in a key.
const hashBytes = 16

// storeKey returns the key of a bucket. A hash of half its length cannot be extended.
func (s *Shared) storeKey(key string) string {
	text := make([]byte, 0, 1+sha256.Size+len(key))
	text = append(text, byte(len(s.hashKey)))
	text = append(append(text, s.hashKey...), key...)
	sum := sha256.Sum256(text)
	return string(base64.RawURLEncoding.AppendEncode([]byte(s.prefix), sum[:hashBytes]))
}
