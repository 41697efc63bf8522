// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// memoryTime is how long a verified token is cached.
	memoryTime = time.Minute

	// refusalTime is how long an invalid token is cached, so that reading several claims costs one verification.
	refusalTime = time.Second
)

// A digest identifies a token, which is a secret and is not stored.
type digest [sha256.Size]byte

func digestOf(token string) digest {
	var usual [2 << 10]byte // on the stack, so typical tokens cause no allocation
	if len(token) <= len(usual) {
		return sha256.Sum256(usual[:copy(usual[:], token)])
	}
	return sha256.Sum256([]byte(token))
}

type verdict struct {
	claims map[string]string
	until  time.Time
}

// A memory caches verified tokens. Invalid tokens are not stored, so they cannot evict valid ones. It holds two
// generations of at most size tokens each. It is safe for concurrent use.
type memory struct {
	size int

	mu    sync.RWMutex // guards the fields below
	young map[digest]verdict
	old   map[digest]verdict
	born  time.Time // start of the young generation
}

func newMemory(size int) *memory { return &memory{size: size, young: map[digest]verdict{}} }

func (m *memory) claims(d digest, now time.Time) (map[string]string, bool) {
	m.mu.RLock()
	v, ok := m.young[d]
	aged := false
	if !ok {
		v, aged = m.old[d]
	}
	m.mu.RUnlock()
	if !ok && !aged || !now.Before(v.until) {
		return nil, false
	}
	if aged {
		m.remember(d, v, now) // keep tokens that are in use
	}
	return v.claims, true
}

func (m *memory) remember(d digest, v verdict, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.young) >= m.size || now.Sub(m.born) >= memoryTime {
		m.old, m.young, m.born = m.young, map[digest]verdict{}, now
	}
	m.young[d] = v
}

// refusals caches recent invalid tokens, separately from verified ones. It is safe for concurrent use.
type refusals [256]atomic.Pointer[refusal]

type refusal struct {
	digest digest
	until  time.Time
}

func (rs *refusals) slot(d digest) *atomic.Pointer[refusal] {
	return &rs[binary.LittleEndian.Uint64(d[:])%uint64(len(rs))]
}

func (rs *refusals) has(d digest, now time.Time) bool {
	r := rs.slot(d).Load()
	return r != nil && r.digest == d && now.Before(r.until)
}

func (rs *refusals) add(d digest, now time.Time) {
	rs.slot(d).Store(&refusal{digest: d, until: now.Add(refusalTime)})
}
