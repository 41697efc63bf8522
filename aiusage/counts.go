// SPDX-License-Identifier: Apache-2.0

package aiusage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// The bounds of a [Counts].
const (
	MaxModels   = 100 // models with counts of their own
	MaxRules    = 200 // rules with counts
	MaxKeys     = 100 // keys with the most tokens, and as many with the most money
	MaxStopped  = 200 // keys that a circuit breaker stopped last, and as many in a loop
	maxModelLen = 128 // bytes
)

// OtherModels is the name of the models without counts of their own.
const OtherModels = "(other)"

// Counts counts the tokens and the money of language models since its start, by model, rule and key. Hooks feed it:
//
//	counts := aiusage.New(ratios)
//	lim, err := mete.New(store, m, mete.Config{OnSettlement: counts.OnSettlement, OnDenial: counts.OnDenial})
//	counts.SetPolicy(m)
//	mw, err := httplimit.New(lim, httplimit.Config{Ratios: ratios, OnModelCall: counts.OnModelCall})
//
// Its memory is bounded. A model gets counts of its own when a provider has reported usage for it, so clients cannot use
// up the bound with invented names. It is safe for concurrent use.
type Counts struct {
	ratios *ai.Ratios
	began  time.Time

	mu       sync.Mutex // guards the fields below
	rules    map[string]*Rule
	models   map[string]*Model
	tokens   heaviest
	money    heaviest
	breakers stopped
	loops    stopped
	policy   Policy
	price    *policy.Limit // a limit that counts money; may be nil
}

// Policy tells what the active policy does with language models.
type Policy struct {
	Tokens, Money, Loops, Breakers bool

	// PriceUnit, PriceVersion and PriceDate describe the prices; they may be empty.
	PriceUnit, PriceVersion, PriceDate string
}

// InUse reports whether the policy does anything with language models.
func (p Policy) InUse() bool { return p.Tokens || p.Money || p.Loops || p.Breakers }

// State is a copy of the counts of a [Counts].
type State struct {
	Since    time.Time
	Policy   Policy
	Models   []Model      // by name
	Rules    []Rule       // by name
	Tokens   []Key        // most spent first
	Money    []Key        // most spent first
	Breakers []StoppedKey // last denial first
	Loops    []StoppedKey // last denial first
}

// OpenBreakers returns the number of open circuit breakers that the server knows. Another server can have reset some.
func (s *State) OpenBreakers() (n int) {
	now := time.Now()
	for _, k := range s.Breakers {
		if k.Until.IsZero() || k.Until.After(now) {
			n++
		}
	}
	return n
}

// Model are the counts of a model.
type Model struct {
	Model string // OtherModels for the rest

	// Reported, Estimated and Unknown are the numbers of requests with usage of the provider, with an estimate of their text,
	// and without both.
	Reported, Estimated, Unknown uint64

	Input, Cached, CacheWrite, Output, Reasoning uint64        // tokens
	Money                                        bucket.Tokens // by the first prices of the policy

	Closed, Failed uint64 // streams that a limit ended, with an end as usual or with an error

	// Prompt and Completion are the learned ratios. They have no requests unless something was learned.
	Prompt, Completion ai.Ratio
}

// Rule are the counts of a rule's first limit of tokens.
type Rule struct {
	Rule              string
	Reserved, Charged bucket.Tokens
}

// A Key is a bucket with the most tokens or money. Spent is at most Error too high.
type Key struct {
	Rule, Key    string
	Requests     uint64 // at most those since the key is listed
	Spent, Error bucket.Tokens
	Last         time.Time
}

// A StoppedKey is a bucket that a guard denied: a loop or an open circuit breaker.
type StoppedKey struct {
	Rule, Key   string
	Denials     uint64
	First, Last time.Time
	Until       time.Time // zero means until an administrator resets it
}

// New returns empty counts. The middlewares learn the ratios.
func New(ratios *ai.Ratios) *Counts {
	return &Counts{
		ratios: ratios, began: time.Now(), rules: map[string]*Rule{}, models: map[string]*Model{}, tokens: heaviest{}, money: heaviest{},
		breakers: stopped{}, loops: stopped{},
	}
}

// SetPolicy drops the counts of rules and keys that the policy does not have. Money starts again if its unit changes.
func (c *Counts) SetPolicy(m *policy.Matcher) {
	p, names, price := Policy{}, map[string]bool{}, (*policy.Limit)(nil)
	for _, r := range m.Rules() {
		names[r.Name] = true
		for i := range r.Limits {
			l := &r.Limits[i]
			p.Loops = p.Loops || l.Reason == policy.ReasonLoop
			p.Breakers = p.Breakers || l.Reason == policy.ReasonBreaker
			p.Tokens = p.Tokens || l.AI() && !l.Money()
			if l.Money() && price == nil {
				price = l
			}
		}
	}
	if price != nil {
		p.Money, p.PriceUnit, p.PriceVersion, p.PriceDate = true, price.PriceUnit(), m.Prices().Version(), m.Prices().Date()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.PriceUnit != c.policy.PriceUnit {
		clear(c.money)
		for _, of := range c.models {
			of.Money = 0
		}
	}
	c.policy, c.price = p, price
	maps.DeleteFunc(c.rules, func(name string, _ *Rule) bool { return !names[name] })
	for _, keys := range []heaviest{c.tokens, c.money} {
		maps.DeleteFunc(keys, func(_ string, k *Key) bool { return !names[k.Rule] })
	}
	for _, keys := range []stopped{c.breakers, c.loops} {
		maps.DeleteFunc(keys, func(_ string, k *StoppedKey) bool { return !names[k.Rule] })
	}
}

// OnSettlement counts the charge of a request by rule and key. It is for [mete.Config.OnSettlement]. It
// counts the first limit of tokens and the first one of money of each rule. The others and guards count the same tokens again.
func (c *Counts) OnSettlement(_ context.Context, s *policy.Settlement) {
	if !s.Limit.AI() || s.Rule.IsGuard() || s.Limit != firstLimit(s.Rule, s.Limit.Money()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Limit.Money() {
		c.money.add(s)
		return
	}
	c.tokens.add(s)
	r := c.rules[s.Rule.Name]
	if r == nil {
		if len(c.rules) >= MaxRules {
			return
		}
		r = &Rule{Rule: s.Rule.Name}
		c.rules[s.Rule.Name] = r
	}
	r.Reserved, r.Charged = addTokens(r.Reserved, s.Reserved), addTokens(r.Charged, s.Charged)
}

// firstLimit returns the first limit of a rule that counts the tokens or the money of language models.
func firstLimit(r *policy.Rule, money bool) *policy.Limit {
	for i := range r.Limits {
		if l := &r.Limits[i]; l.AI() && l.Money() == money {
			return l
		}
	}
	return nil
}

// OnModelCall counts the tokens of a request by model. It is for OnModelCall of package httplimit.
func (c *Counts) OnModelCall(_ context.Context, call *policy.ModelCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.model(call.Model, call.Reported)
	switch {
	case call.Usage == nil:
		m.Unknown++
	case call.Reported:
		m.Reported++
	default:
		m.Estimated++
	}
	switch call.Cut {
	case policy.StreamClose:
		m.Closed++
	case policy.StreamError:
		m.Failed++
	}
	if call.Usage == nil {
		return
	}
	m.Input += count(call.Usage.Input)
	m.Cached += count(call.Usage.Cached)
	m.CacheWrite += count(call.Usage.CacheWrite)
	m.Output += count(call.Usage.Output)
	m.Reasoning += count(call.Usage.Reasoning)
	if c.price != nil {
		money, _ := c.price.Price(call.Model, call.Usage)
		m.Money = addTokens(m.Money, money)
	}
}

func count(tokens int64) uint64 { return uint64(max(tokens, 0)) }

// addTokens returns the sum, at most the largest amount.
func addTokens(a, b bucket.Tokens) bucket.Tokens { return min(a+b, bucket.MaxTokens) }

// model returns the counts of a model. Only a provider's report makes a model known.
func (c *Counts) model(name string, reported bool) *Model {
	if m := c.models[name]; m != nil {
		return m
	}
	if !reported || name == "" || len(name) > maxModelLen || !utf8.ValidString(name) || len(c.models) >= c.maxModels() {
		name = OtherModels
	}
	m := c.models[name]
	if m == nil {
		m = &Model{Model: name}
		c.models[name] = m
	}
	return m
}

// maxModels returns the bound of the map, which has the others beside the models.
func (c *Counts) maxModels() int {
	if c.models[OtherModels] != nil {
		return MaxModels + 1
	}
	return MaxModels
}

// OnDenial remembers the keys that loop detection and circuit breakers deny. It is for [mete.Config.OnDenial].
func (c *Counts) OnDenial(_ context.Context, d *mete.Denial) {
	if d.Allowed {
		return
	}
	for i := range d.Limits() {
		s := &d.Limits()[i]
		if s.Allowed || s.RetryAfter == bucket.Never { // a cost above the threshold alone opens no circuit breaker
			continue
		}
		switch s.Reason() {
		case policy.ReasonLoop:
			c.addStopped(c.loops, s)
		case policy.ReasonBreaker:
			c.addStopped(c.breakers, s)
		}
	}
}

func (c *Counts) addStopped(keys stopped, s *mete.Status) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	keys.add(s, now)
}

// Forget drops a key from the open circuit breakers and the loops, such as after a reset.
func (c *Counts) Forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.breakers, key)
	delete(c.loops, key)
}

// Policy tells what the active policy does with language models.
func (c *Counts) Policy() Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy
}

// State returns a copy of the counts.
func (c *Counts) State() State {
	ratios := map[ai.Side]map[string]ai.Ratio{ai.PromptSide: {}, ai.CompletionSide: {}}
	for _, r := range c.ratios.All() {
		ratios[r.Side][cmp.Or(r.Model, OtherModels)] = r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{
		Since: c.began, Policy: c.policy, Rules: valuesOf(c.rules), Models: valuesOf(c.models), Tokens: valuesOf(c.tokens), Money: valuesOf(c.money),
		Breakers: valuesOf(c.breakers), Loops: valuesOf(c.loops),
	}
	for i := range s.Models {
		m := &s.Models[i]
		m.Prompt, m.Completion = ratios[ai.PromptSide][m.Model], ratios[ai.CompletionSide][m.Model]
	}
	slices.SortFunc(s.Models, func(a, b Model) int { return cmp.Compare(a.Model, b.Model) })
	slices.SortFunc(s.Rules, func(a, b Rule) int { return cmp.Compare(a.Rule, b.Rule) })
	for _, keys := range [][]Key{s.Tokens, s.Money} {
		slices.SortFunc(keys, func(a, b Key) int { return cmp.Or(cmp.Compare(b.Spent, a.Spent), cmp.Compare(a.Key, b.Key)) })
	}
	for _, keys := range [][]StoppedKey{s.Breakers, s.Loops} {
		slices.SortFunc(keys, func(a, b StoppedKey) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Key, b.Key)) })
	}
	return s
}

func valuesOf[V any](m map[string]*V) []V {
	all := make([]V, 0, len(m))
	for _, v := range m {
		all = append(all, *v)
	}
	return all
}
