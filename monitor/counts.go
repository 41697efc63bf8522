// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
)

// MaxCountedRules bounds the rules that [Counts] counts separately. Additional rules count only in the totals.
const MaxCountedRules = 1000

// Counts is a [Source] for programs without their own metrics. The limiter's hook calls OnDecision.
//
//	counts := monitor.NewCounts("memory")
//	lim, err := mete.New(store, m, mete.Config{OnDecision: counts.OnDecision})
//	mon, err := monitor.New(counts, lim.Policy)
//
// It is safe for concurrent use, counts without a lock, and has no latencies.
type Counts struct {
	instance, store string
	started         time.Time

	allowed, denied, shadow, degraded atomic.Uint64

	rules sync.Map // of *ruleCount, by name
	known atomic.Int64
}

type ruleCount struct{ allowed, denied, shadow, near, degraded atomic.Uint64 }

// NewCounts returns empty counts. store is the name of the store on the page: memory, redis or postgres.
func NewCounts(store string) *Counts {
	return &Counts{instance: rand.Text(), store: store, started: time.Now()}
}

// OnDecision counts a decision. It is for [mete.Config.OnDecision].
func (c *Counts) OnDecision(_ context.Context, d *mete.Decision) {
	if d.Allowed {
		c.allowed.Add(1)
	} else {
		c.denied.Add(1)
	}
	if d.Degraded {
		c.degraded.Add(1)
	}
	if rule := c.countOf(d.Rule); rule != nil {
		if d.Allowed {
			rule.allowed.Add(1)
		} else {
			rule.denied.Add(1)
		}
		if d.Degraded {
			rule.degraded.Add(1)
		}
	}
	for i := range d.Limits() {
		if s := &d.Limits()[i]; d.Allowed && s.Rule != nil && s.Near() && !sameRule(d.Limits(), i) {
			if rule := c.countOf(s.Rule.Name); rule != nil {
				rule.near.Add(1)
			}
		}
	}
	denied := ""
	for i := range d.Shadow {
		if s := &d.Shadow[i]; !s.Allowed && s.Rule.Name != denied {
			denied = s.Rule.Name
			c.shadow.Add(1)
			if rule := c.countOf(denied); rule != nil {
				rule.shadow.Add(1)
			}
		}
	}
}

// sameRule reports whether an earlier limit of the same rule is also near, because each rule counts once.
func sameRule(limits []mete.Status, i int) bool {
	for j := range i {
		if limits[j].Rule == limits[i].Rule && limits[j].Near() {
			return true
		}
	}
	return false
}

// countOf returns the counts of a rule, or nil if there is no rule or the rule exceeds [MaxCountedRules].
func (c *Counts) countOf(name string) *ruleCount {
	if name == "" {
		return nil
	}
	if rule, ok := c.rules.Load(name); ok {
		return rule.(*ruleCount)
	}
	if c.known.Load() >= MaxCountedRules {
		return nil
	}
	rule, was := c.rules.LoadOrStore(name, new(ruleCount))
	if !was {
		c.known.Add(1)
	}
	return rule.(*ruleCount)
}

// Totals implements [Source].
func (c *Counts) Totals() Totals {
	t := Totals{Allowed: c.allowed.Load(), Denied: c.denied.Load(), Shadow: c.shadow.Load(), Degraded: c.degraded.Load()}
	c.rules.Range(func(name, rule any) bool {
		r := rule.(*ruleCount)
		t.Rules = append(t.Rules, RuleTotals{
			Rule: name.(string), Allowed: r.allowed.Load(), Denied: r.denied.Load(), Shadow: r.shadow.Load(), Near: r.near.Load(), Degraded: r.degraded.Load(),
		})
		return true
	})
	return t
}

// State implements [Source]: the server is ready, and so is its store.
func (c *Counts) State() api.ServerState {
	return api.ServerState{
		Instance: c.instance, Started: c.started, Ready: true,
		Policy: api.PolicyState{Source: "this program", Loaded: &c.started},
		Store:  api.StoreState{Kind: c.store, Address: c.store, State: "ok", Breaker: "none"},
	}
}
