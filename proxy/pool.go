// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

type upstream struct {
	name    string
	health  Health // with its defaults
	servers []*server
	stall   time.Duration // BodyTimeout

	unavailable atomic.Uint64 // requests that found no server
}

// newUpstream creates the servers of u, which must be valid. Timeouts that are zero in u come from config.
func newUpstream(u Upstream, config Config) *upstream {
	if u.DialTimeout == 0 {
		u.DialTimeout = config.DialTimeout
	}
	if u.HeaderTimeout == 0 {
		u.HeaderTimeout = config.HeaderTimeout
	}
	if u.BodyTimeout == 0 {
		u.BodyTimeout = config.BodyTimeout
	}
	made := &upstream{name: u.Name, health: u.Health.withDefaults(), stall: u.BodyTimeout}
	for _, url := range u.Servers {
		made.servers = append(made.servers, newServer(*url, u, config))
	}
	return made
}

// triedServers is a bit set of the servers that have failed to take the request.
type triedServers uint64

var _ = [1]struct{}{}[MaxServers-64] // one bit each

// pick returns an available server that is not in tried, or nil.
func (u *upstream) pick(not *triedServers) *server {
	if len(u.servers) == 1 {
		if s := u.servers[0]; *not == 0 && !s.unhealthy.Load() {
			*not = 1
			return s
		}
		return nil
	}
	now := time.Now()
	var ready [MaxServers]uint8
	n := 0
	for i, s := range u.servers {
		if *not&(1<<i) == 0 && s.usable(now) {
			ready[n] = uint8(i)
			n++
		}
	}
	for n > 0 {
		at := rand.IntN(n)
		if other := rand.IntN(n); u.servers[ready[other]].inFlight.Load() < u.servers[ready[at]].inFlight.Load() {
			at = other
		}
		i := ready[at]
		if s := u.servers[i]; s.claim(now) {
			*not |= 1 << i
			return s
		}
		n-- // another request is probing it
		ready[at] = ready[n]
	}
	return nil
}

func (u *upstream) retryAfter() time.Duration {
	least := u.health.Interval
	now := time.Now()
	for _, s := range u.servers {
		if !s.unhealthy.Load() {
			least = min(least, s.exclusionLeft(now))
		}
	}
	return max(least, 0)
}
