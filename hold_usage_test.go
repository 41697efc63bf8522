// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const (
	modelPrices = `{"prices": {"version": "1", "models": {"small": {"input": 1000, "output": 4000}, "big": {"input": 100000, "output": 100000}}}, "rules": [`
	tokenRule   = `{"name": "tokens", "group": "t", "limit_keys": ["header:x-user"], "rate": "100000/1000h", "cost_source": "ai:tokens"}`
	moneyRule   = `{"name": "money", "group": "m", "limit_keys": ["header:x-user"], "rate": "100000/1000h", "cost_source": "ai:money"}`
	flatRule    = `{"name": "requests", "group": "r", "limit_keys": ["header:x-user"], "rate": "100000/1000h"}`
)

func loadModels(t *testing.T, rules ...string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(modelPrices+strings.Join(rules, ",")+"]}"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var chat = mete.Attrs{"header:x-user": "alice", "ai:model": "small", "ai:prompt_tokens": "500", "ai:max_tokens": "1000"}

// used returns the tokens that are missing in the buckets of a request, by rule.
func (r rig) used(attributes mete.Attrs) map[string]float64 {
	r.Helper()
	d, err := r.Peek(r.Context(), mete.Request{Attributes: attributes})
	if err != nil {
		r.Fatal(err)
	}
	used := map[string]float64{}
	for i := range d.Limits() {
		s := &d.Limits()[i]
		used[s.Rule.Name] = float64(mete.TokensOf(s.Limit.Bucket.Capacity() - s.Remaining()))
	}
	return used
}

func (r rig) assertUsed(tokens, money, requests float64) {
	r.Helper()
	got := r.used(chat)
	for name, want := range map[string]float64{"tokens": tokens, "money": money, "requests": requests} {
		if got[name] != want {
			r.Errorf("%s: %v are used, want %v", name, got[name], want)
		}
	}
}

// TestSettleUsage_LaterPolicy settles from a process with another policy. The policy of the hold counts, except for the prices
// of another model.
func TestSettleUsage_LaterPolicy(t *testing.T) {
	usage := policy.TokenUsage{Input: 400, Output: 100}
	dear := strings.Replace(moneyRule, `"rate"`, `"min_cost": 50, "rate"`, 1)
	heavy := strings.Replace(tokenRule, `"rate"`, `"weights": {"input": 9, "output": 9}, "rate"`, 1)
	for _, tt := range []struct {
		name   string
		later  *policy.Matcher
		model  string
		tokens float64
		money  float64
	}{
		{"the same model", loadModels(t, dear, heavy), "", 500, 0.8},
		{"another model", loadModels(t, dear), "big", 500, 50},
		{"an unknown model", loadModels(t, moneyRule), "new", 500, 50}, // the highest price of each class
		{"another model, and the rule is gone", loadModels(t, heavy), "big", 500, 0.8},
		{"no policy", nil, "big", 500, 0.8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, slowRule)
			r.SetPolicy(loadModels(t, tokenRule, moneyRule, flatRule))
			later, err := mete.New(r.Store(), tt.later, mete.Config{})
			if err != nil {
				t.Fatal(err)
			}
			h := r.hold(mete.Request{Attributes: chat}, mete.HoldOptions{})
			r.assertUsed(1500, 4.5, 1)
			if _, err := later.Settle(t.Context(), h.ID, 500); !errors.Is(err, store.ErrHold) || !strings.Contains(err.Error(), "settle it by the usage") {
				t.Errorf("settle with one cost: error %v, want the remedy", err)
			}
			r.assertUsed(1500, 4.5, 1)
			status, err := later.SettleUsage(t.Context(), h.ID, usage, tt.model)
			if err != nil || !status.Settled || status.State != store.HoldSettled {
				t.Errorf("settle by usage: %+v, error %v", status, err)
			}
			r.assertUsed(tt.tokens, tt.money, 1)
		})
	}
}

// TestSettleUsage_Kinds settles holds that have one kind of limits.
func TestSettleUsage_Kinds(t *testing.T) {
	usage := policy.TokenUsage{Input: 400, Output: 100}
	header := `{"name": "header", "group": "h", "limit_keys": ["header:x-user"], "rate": "100000/1000h", "cost_source": "header:units"}`
	refused := errors.New("refused")
	for _, tt := range []struct {
		name   string
		rules  []string
		req    mete.Request
		want   map[string]float64
		refuse error
	}{
		{"tokens", []string{tokenRule}, mete.Request{}, map[string]float64{"tokens": 500}, nil},
		{"only requests", []string{flatRule}, mete.Request{}, map[string]float64{"requests": 1}, nil},
		{"a shadow rule beside requests", []string{flatRule, strings.Replace(tokenRule, `"rate"`, `"mode": "shadow", "rate"`, 1)}, mete.Request{}, map[string]float64{"requests": 1}, nil},
		{"a header's cost", []string{header}, mete.Request{}, map[string]float64{"header": 7}, refused},
		{"a header's cost beside tokens", []string{header, tokenRule}, mete.Request{}, map[string]float64{"header": 7, "tokens": 500}, nil},
		{"a cost of the request", []string{tokenRule}, mete.Request{Cost: 900}, map[string]float64{"tokens": 900}, refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, slowRule)
			r.SetPolicy(loadModels(t, tt.rules...))
			tt.req.Attributes = mete.Attrs{"header:x-user": "alice", "header:units": "7", "ai:model": "small", "ai:prompt_tokens": "500", "ai:max_tokens": "1000"}
			h := r.hold(tt.req, mete.HoldOptions{})
			if _, err := r.SettleUsage(t.Context(), h.ID, usage, ""); errors.Is(err, store.ErrHold) != (tt.refuse != nil) || err != nil && tt.refuse == nil {
				t.Errorf("settle: error %v", err)
			}
			for name, want := range tt.want {
				if got := r.used(tt.req.Attributes.(mete.Attrs))[name]; got != want {
					t.Errorf("%s: %v are used, want %v", name, got, want)
				}
			}
			if _, err := r.Release(t.Context(), h.ID); err != nil {
				t.Errorf("release: %v", err)
			}
		})
	}
}

// TestSettleUsage_OwnCharge keeps a charge of the request in the bucket of a rule, as a response does.
func TestSettleUsage_OwnCharge(t *testing.T) {
	r := newRig(t, slowRule)
	r.SetPolicy(loadModels(t, tokenRule))
	d, err := r.Peek(t.Context(), mete.Request{Attributes: chat})
	if err != nil {
		t.Fatal(err)
	}
	s := d.Limits()[0]
	own := mete.Charge{Key: s.Key, Limit: s.Limit.Bucket, Cost: 20}
	for _, fixed := range []bool{false, true} {
		own.Fixed = fixed
		h := r.hold(mete.Request{Attributes: chat, Charges: []mete.Charge{own}}, mete.HoldOptions{})
		if _, err := r.SettleUsage(t.Context(), h.ID, policy.TokenUsage{Output: 80}, ""); err != nil {
			t.Fatal(err)
		}
		if got := r.used(chat)["tokens"]; got != 100 {
			t.Errorf("fixed %v: %v tokens are used, want 100", fixed, got)
		}
		if err := r.Reset(t.Context(), mete.Request{Attributes: chat}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSettleUsage_Invalid(t *testing.T) {
	r := newRig(t, slowRule)
	r.SetPolicy(loadModels(t, tokenRule, moneyRule))
	h := r.hold(mete.Request{Attributes: chat}, mete.HoldOptions{})
	for _, bad := range []policy.TokenUsage{{Input: -1}, {Output: 1_000_000_001}} {
		if _, err := r.SettleUsage(t.Context(), h.ID, bad, ""); !errors.Is(err, mete.ErrCost) {
			t.Errorf("settle by %+v: error %v, want ErrCost", bad, err)
		}
	}
	base, usage, _ := strings.Cut(h.ID, "~")
	for _, id := range []string{base + "~", base + "~!", base + "~" + usage[:len(usage)-4], base + "~" + strings.Repeat("A", 1<<15), h.ID + "~" + usage, "~" + usage} {
		if _, err := r.SettleUsage(t.Context(), id, policy.TokenUsage{}, ""); !errors.Is(err, store.ErrHoldUnknown) {
			t.Errorf("%.60q: error %v, want ErrHoldUnknown", id, err)
		}
	}
	if _, err := r.SettleUsage(t.Context(), h.ID, policy.TokenUsage{}, ""); err != nil {
		t.Errorf("the valid ID: %v", err)
	}
	parts := mete.Request{Parts: []mete.Part{{Attributes: chat}, {Attributes: chat}}}
	if _, err := r.Hold(t.Context(), parts, mete.HoldOptions{}); !errors.Is(err, store.ErrHold) || !strings.Contains(err.Error(), "several parts") {
		t.Errorf("a hold of parts: error %v, want a HoldError", err)
	}
}
