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
	// ErrStore: [Over] or [NewShared] got no store.
	ErrStore = errors.New("keyed: a store is required")

	// ErrBurst: a burst is below 1, or exceeds the bound of the limit's arithmetic.
	ErrBurst = errors.New("keyed: invalid burst")

	// ErrName: a [SharedConfig.Name] is invalid.
	ErrName = errors.New("keyed: invalid name")
)

// A Shared is a limiter with a bucket per key in a store, which other processes can share. Use [Over] or
// [NewShared]: the zero Shared is not usable. It is safe for concurrent use, starts no goroutine and needs no
// Close. The caller closes the store.
//
// The store sees only a hash of each key under the store's secret, which all its processes share. The key of a
// bucket is
//
//	keyed:NAME:~HASH
//
// NAME is [SharedConfig.Name], and HASH has 22 characters. An attacker who reads the whole store can test guesses of a key.
// Keys may be empty and have any length.
type Shared struct {
	limit   bucket.Limit
	perKey  bool // the limit differs from key to key: see [bucket.Limit.ForKey]
	prefix  string
	hashKey []byte
	limiter *mete.Limiter
}

// SharedConfig holds the optional settings of a [Shared].
type SharedConfig struct {
	// Name is the prefix of the keys in the store: limiters with different names have different buckets. It has
	// at most 64 characters of a-z, 0-9, - and _. The default is derived from the limit. Limiters with the same
	// limit then share buckets, and a changed limit starts with full buckets. With an explicit name, buckets
	// keep their state when the limit changes.
	Name string

	// Deadline bounds a call of the store: between policy.MinDeadline and policy.MaxDeadline, or 0 for
	// policy.DefaultDeadline.
	Deadline time.Duration
}

// Over returns a limiter over a store. Its buckets hold burst whole tokens and refill at rate, in the format of
// [bucket.ParseRate]: "10/1m", "0.5/s".
//
//	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
//	logins, err := keyed.Over(limiter.Store(), "10/1m", 20)
//
// All processes with the same store, rate and burst share the buckets. Over reads the store's secret: see
// [Shared] about keys. Errors wrap [ErrStore], [bucket.ErrRate], [ErrBurst], or an error of the store.
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

// NewShared is [Over] for limits of any algorithm and other settings. The zero limit is an error.
func NewShared(store mete.Store, limit bucket.Limit, config SharedConfig) (*Shared, error) {
	switch {
	case store == nil:
		return nil, fmt.Errorf("%w: take the Store of redisstore.NewLimiter or pgstore.NewLimiter, or memstore.New", ErrStore)
	case limit == (bucket.Limit{}):
		return nil, fmt.Errorf("keyed: over: %w: the limit is required: create one with bucket.NewLimit or bucket.Spec", bucket.ErrLimit)
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
		name = limitName(limit)
	}
	return &Shared{
		limit: limit, perKey: limit.Anchor() == bucket.AnchorKey,
		prefix: "keyed:" + name + ":~", hashKey: bytes.Clone(hashKey), limiter: limiter,
	}, nil
}

// limitName returns the default name of a limit: "20000+1/6000" is a capacity of 20 tokens and a refill of 1
// thousandth per 6000 microseconds.
func limitName(l bucket.Limit) string {
	n, p := l.Refill()
	name := fmt.Sprintf("%d+%d/%d", l.Capacity(), n, p)
	if l.Algorithm() != bucket.AlgorithmContinuous {
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

// hashBytes is the length of the hash in a key.
const hashBytes = 16

// storeKey returns the key of a bucket. Truncating the hash to half its length prevents length extension.
func (s *Shared) storeKey(key string) string {
	text := make([]byte, 0, 1+sha256.Size+len(key))
	text = append(text, byte(len(s.hashKey)))
	text = append(append(text, s.hashKey...), key...)
	sum := sha256.Sum256(text)
	return string(base64.RawURLEncoding.AppendEncode([]byte(s.prefix), sum[:hashBytes]))
}
