// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/store"
)

// A Fact is one field of a rule or a limit, in words for people.
type Fact struct {
	Field string // its name in policy files
	Label string // for people
	Value string // plain text, partly from the policy file

	// Notable reports whether the fact differs from the default. Facts that the description of a limit contains are
	// not notable.
	Notable bool
}

// Facts returns the facts of r in the order of the fields of policy files.
func (r *Rule) Facts() []Fact {
	return collectFacts(func(f *field) (string, bool) {
		if f.showRule == nil {
			return "", false
		}
		return f.showRule(r)
	})
}

// Facts returns the facts of l except its bucket, in the order of the fields of policy files.
func (l *Limit) Facts() []Fact {
	return collectFacts(func(f *field) (string, bool) {
		if f.showLimit == nil {
			return "", false
		}
		return f.showLimit(l)
	})
}

func collectFacts(show func(*field) (value string, notable bool)) (all []Fact) {
	for i := range fields {
		if value, notable := show(&fields[i]); value != "" {
			all = append(all, Fact{fields[i].name, fields[i].label, value, notable})
		}
	}
	return all
}

func (r *Rule) showMissing() (string, bool) {
	if len(r.LimitKeys) == 0 {
		return "", false
	}
	words := [...]string{inspect.MissingSkip: "the rule does not apply", inspect.MissingDeny: "the request is denied", inspect.MissingEmpty: "it counts as empty"}
	return words[r.onMissing], r.onMissing != inspect.MissingSkip
}

func (r *Rule) showStoreError() (string, bool) {
	words := [...]string{OnStoreErrorOpen: "let through", OnStoreErrorClosed: "denied", OnStoreErrorLocal: "decided by a bucket in the process"}
	return fmt.Sprintf("%s, after %v", words[r.OnStoreError], r.Deadline), r.OnStoreError != OnStoreErrorOpen || r.Deadline != DefaultDeadline
}

func (r *Rule) showOnFull() (string, bool) {
	words := [...]string{store.OnFullShare: "", store.OnFullOpen: "new keys are let through", store.OnFullClosed: "new keys are denied"}
	return words[r.OnFull], true
}

func (r *Rule) showSlotBy() (string, bool)  { return r.slotText, true }
func (r *Rule) showHeaders() (string, bool) { return r.Headers.String(), true }
func (r *Rule) showJitter() (string, bool)  { return r.Jitter.String(), true }

func (l *Limit) showShards() (string, bool) {
	if l.Shards < 2 {
		return "", false
	}
	return strconv.Itoa(l.Shards), false
}

func (l *Limit) showLeased() (string, bool) {
	if !l.Leased {
		return "", false
	}
	return "yes", false
}

func (l *Limit) showChargeOn() (string, bool) {
	if l.chargeOn == nil {
		return "", false
	}
	return l.chargeOn.describe(), true
}

func (l *Limit) showStages() (string, bool) {
	var parts []string
	for _, s := range l.Stages {
		part := "warned"
		if s.Delay > 0 {
			part = fmt.Sprintf("each request waits %v", s.Delay)
		}
		parts = append(parts, fmt.Sprintf("from %s used: %s", s.Share, part))
	}
	return strings.Join(parts, "; "), true
}

func (l *Limit) showNamedCost() (string, bool) {
	c := &l.cost
	if !c.variable && !l.finalCost() {
		return "", false
	}
	var bounds []string
	if c.min > 0 {
		bounds = append(bounds, fmt.Sprintf("at least %v", c.min))
	}
	if c.max < bucket.MaxTokens {
		bounds = append(bounds, fmt.Sprintf("at most %v", c.max))
	}
	between := ""
	if len(bounds) > 0 {
		between = ": " + strings.Join(bounds, ", ")
	}
	source := c.source.String()
	switch {
	case l.Money():
		return sourceMoney + between + "; the usage in the response settles it", true
	case l.AI():
		return sourceTokens + between + "; the usage in the response settles it", true
	case c.field != "":
		source = "the field " + c.field + " of the response"
	case !c.variable:
		source = "the size of the response"
	}
	return fmt.Sprintf("%s%s; otherwise %v", source, between, c.fallback), true
}

func (l *Limit) showWeights() (string, bool) {
	if !l.AI() || l.Money() || l.cost.ai.weights == plainWeights {
		return "", false
	}
	w := &l.cost.ai.weights
	return fmt.Sprintf("input %v, cached %v, cache_write %v, output %v, reasoning %v", w.input, w.cached, w.write, w.output, w.reasoning), true
}

func (l *Limit) showFixedCost() (string, bool) {
	if !l.FixedCost() {
		return "", false
	}
	return fmt.Sprintf("%v per request", l.cost.fallback), l.cost.fallback != bucket.Token
}
