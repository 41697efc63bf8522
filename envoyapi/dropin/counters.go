// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// MaxNames bounds the names of counters that come from requests. Clients choose values of detailed_metric and
	// value_to_metric, and the descriptors of their own limits. At the bound, hits count under the path of the limit's
	// descriptor. Limits of requests then count under DOMAIN.other, and unknown domains under "other".
	MaxNames = 10_000

	// maxNameBytes bounds each of these names.
	maxNameBytes = 1024

	servicePrefix = "ratelimit.service."
	rulePrefix    = servicePrefix + "rate_limit."
	otherName     = "other"
)

// A Counter is a value of the statistics, with the reference server's name for it, such as
// "ratelimit.service.rate_limit.DOMAIN.KEY_VALUE.total_hits".
type Counter struct {
	Name  string
	Value uint64
}

// ruleCounters count the hits of one name.
type ruleCounters struct {
	name string // after sanitize

	total, over, near, within, shadow, negative atomic.Uint64
}

// counters are all counters of a service. Counters exist until the service ends, so they never decrease.
type counters struct {
	configLoaded, configErrors, storeErrors, serviceErrors, globalShadow atomic.Uint64

	mu           sync.RWMutex
	rules        map[string]*ruleCounters // by name before sanitize
	names        map[string]*ruleCounters // by name after it
	domains      map[string]*atomic.Uint64
	fromRequests int // the names that come from requests
}

func newCounters() *counters {
	return &counters{rules: map[string]*ruleCounters{}, names: map[string]*ruleCounters{}, domains: map[string]*atomic.Uint64{}}
}

// register returns the counters of a name in the configuration, or of the fallback at the bound.
func (c *counters) register(name string) *ruleCounters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registerLocked(name)
}

func (c *counters) registerLocked(name string) *ruleCounters {
	if found := c.rules[name]; found != nil {
		return found
	}
	safe := sanitize(name)
	found := c.names[safe]
	if found == nil {
		found = &ruleCounters{name: strings.Clone(safe)}
		c.names[found.name] = found
	}
	c.rules[strings.Clone(name)] = found
	return found
}

// find returns the counters of a name from a request, or nil at the bound.
func (c *counters) find(name []byte) *ruleCounters {
	c.mu.RLock()
	found := c.rules[string(name)]
	c.mu.RUnlock()
	if found != nil || len(name) > maxNameBytes {
		return found
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found = c.rules[string(name)]; found != nil || c.fromRequests >= MaxNames {
		return found
	}
	c.fromRequests++
	return c.registerLocked(string(name))
}

// countUnknown counts a descriptor of an unknown domain.
func (c *counters) countUnknown(domain string) {
	c.mu.RLock()
	found := c.domains[domain]
	c.mu.RUnlock()
	if found == nil {
		found = c.addDomain(domain)
	}
	found.Add(1)
}

func (c *counters) addDomain(domain string) *atomic.Uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(domain) > maxNameBytes || c.fromRequests >= MaxNames {
		domain = otherName
	}
	found := c.domains[domain]
	if found == nil {
		c.fromRequests++
		found = new(atomic.Uint64)
		c.domains[strings.Clone(domain)] = found
	}
	return found
}

// Counters returns all counters in ascending order of their names. The counters of a limit have the suffixes
// total_hits, over_limit, near_limit, within_limit, shadow_mode and over_limit_with_local_cache. The last one is
// always 0: the service has no cache of its own. A limit with negative hits has total_negative_hits too.
func (s *Service) Counters() []Counter {
	c := s.counters
	all := []Counter{
		{servicePrefix + "config_load_success", c.configLoaded.Load()},
		{servicePrefix + "config_load_error", c.configErrors.Load()},
		{servicePrefix + "call.should_rate_limit.redis_error", c.storeErrors.Load()},
		{servicePrefix + "call.should_rate_limit.service_error", c.serviceErrors.Load()},
		{servicePrefix + "global_shadow_mode", c.globalShadow.Load()},
	}
	c.mu.RLock()
	for name, r := range c.names {
		all = append(all,
			Counter{rulePrefix + name + ".total_hits", r.total.Load()},
			Counter{rulePrefix + name + ".over_limit", r.over.Load()},
			Counter{rulePrefix + name + ".near_limit", r.near.Load()},
			Counter{rulePrefix + name + ".within_limit", r.within.Load()},
			Counter{rulePrefix + name + ".shadow_mode", r.shadow.Load()},
			Counter{rulePrefix + name + ".over_limit_with_local_cache", 0},
		)
		if n := r.negative.Load(); n > 0 {
			all = append(all, Counter{rulePrefix + name + ".total_negative_hits", n})
		}
	}
	for name, n := range c.domains {
		all = append(all, Counter{rulePrefix + sanitize(name) + ".domain_not_found", n.Load()})
	}
	c.mu.RUnlock()
	slices.SortFunc(all, func(a, b Counter) int { return cmp.Compare(a.Name, b.Name) })
	return mergeEqual(all)
}

// mergeEqual adds up neighbors with equal names. Several domains can have the same name after sanitize.
func mergeEqual(all []Counter) []Counter {
	made := all[:0]
	for _, c := range all {
		if n := len(made); n > 0 && made[n-1].Name == c.Name {
			made[n-1].Value += c.Value
			continue
		}
		made = append(made, c)
	}
	return made
}

var address = regexp.MustCompile(`[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}`)

// sanitize replaces the characters that separate parts of a statsd name: colons, bars, and the dots of IPv4 addresses.
func sanitize(name string) string {
	name = strings.NewReplacer(":", "_", "|", "_").Replace(name)
	return address.ReplaceAllStringFunc(name, func(ip string) string { return strings.ReplaceAll(ip, ".", "_") })
}
