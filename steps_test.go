// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

const streamRule = `
	{"name": "chat", "limit_keys": ["header:x-key"], "algorithm": "token_bucket_llm", "tokens_per_minute": 1000, "tokens_per_day": 1500},
	{"name": "would", "mode": "shadow", "group": "b", "limit_keys": ["header:x-key"], "rate": "5000/1m", "cost_source": "ai:tokens"}`

// A stream that loses answers to its steps pays once for its usage.
func TestSteps_LostAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		lose   func(n *node, r *mete.Reservation) // after 300 tokens are reserved
		output int64                              // of the settlement; the prompt has 100
	}{
		"a step, and another": {func(n *node, r *mete.Reservation) {
			n.line.cut(lossy)
			n.extend(r, 300, false, true)
			n.extend(r, 400, false, true)
			n.line.cut(up)
			n.extend(r, 500, false, false)
		}, 520},
		"the last step": {func(n *node, r *mete.Reservation) {
			n.line.cut(lossy)
			n.extend(r, 500, false, true)
			n.line.cut(up)
		}, 520},
		"a step that owes": {func(n *node, r *mete.Reservation) {
			n.line.cut(lossy)
			n.extend(r, 1000, true, true)
			n.line.cut(up)
		}, 1020},
		"a step that did not arrive": {func(n *node, r *mete.Reservation) {
			n.line.cut(silent)
			n.extend(r, 500, false, true)
			n.line.cut(up)
		}, 520},
		"a step, and then the connection": {func(n *node, r *mete.Reservation) {
			n.line.cut(lossy)
			n.extend(r, 500, false, true)
			n.line.cut(down)
			n.extend(r, 510, false, true)
			n.line.cut(up)
		}, 520},
		"a step above the usage": {func(n *node, r *mete.Reservation) {
			n.line.cut(lossy)
			n.extend(r, 500, false, true)
			n.line.cut(up)
		}, 120},
		"the settlement": {func(n *node, r *mete.Reservation) {
			n.extend(r, 400, false, false)
			n.line.cut(lossy)
			for range 2 {
				if err := r.Finish(t.Context(), used(100, 520)); mete.Spent(err) != mete.MaybeSpent || err == nil {
					t.Errorf("error %v, want a lost answer", err)
				}
			}
			n.line.cut(up)
		}, 520},
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, 1, streamRule).nodes[0]
			r := n.begin(t)
			tt.lose(n, r)
			if err := r.Finish(t.Context(), used(100, tt.output)); err != nil {
				t.Error(err)
			}
			n.wantSpent(t, bucket.Tokens(100+tt.output))
			if err := r.Finish(t.Context(), used(100, 900)); err != nil {
				t.Error(err)
			}
			n.wantSpent(t, bucket.Tokens(100+tt.output))
		})
	}
}

// Settle and Cancel learn the outcome of a lost step, too. A lost answer to an excess is repeated.
func TestSteps_SettleAndCancel(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(n *node, r *mete.Reservation) error
		left bucket.Tokens
	}{
		"cancel": {func(_ *node, r *mete.Reservation) error { return r.Cancel(t.Context()) }, 0},
		"settle": {func(n *node, r *mete.Reservation) error {
			n.line.cut(lossy)
			if err := r.Settle(t.Context(), 700); mete.Spent(err) != mete.MaybeSpent || err == nil {
				t.Errorf("error %v, want a lost answer", err)
			}
			n.line.cut(up)
			return r.Settle(t.Context(), 650)
		}, 650},
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, 1, streamRule).nodes[0]
			r := n.begin(t)
			n.line.cut(lossy)
			n.extend(r, 500, false, true)
			n.line.cut(up)
			if err := tt.end(n, r); err != nil {
				t.Error(err)
			}
			n.wantSpent(t, tt.left)
		})
	}
}

// After the store may have dropped the ID of a lost step, the cost is charged again rather than never.
func TestSteps_LostForLong(t *testing.T) {
	c := start(t, 1, `{"name": "chat", "limit_keys": ["header:x-key"], "rate": "1/1h", "burst": 5000, "cost_source": "ai:tokens"}`)
	n := c.nodes[0]
	r := n.begin(t)
	n.line.cut(silent)
	n.extend(r, 500, false, true)
	c.clock.Advance(store.RetryHorizon.Microseconds())
	n.line.cut(up)
	if err := r.Finish(t.Context(), used(100, 520)); err != nil {
		t.Error(err)
	}
	n.wantSpent(t, 620)
}

// begin reserves a prompt of 100 tokens and a completion of 200.
func (n *node) begin(t *testing.T) *mete.Reservation {
	t.Helper()
	r, err := n.Reserve(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "100", "ai:max_tokens": "200", "header:x-key": "a", "ai:model": "m"}})
	if err != nil || !r.Allowed || r.Degraded {
		t.Fatalf("%+v, error %v", r, err)
	}
	return r
}

func (n *node) extend(r *mete.Reservation, output int64, force, fails bool) {
	n.Helper()
	if allowed, err := r.Extend(n.Context(), used(100, output), force); (err != nil) != fails || allowed == fails {
		n.Errorf("extended to %d: %v, %v", output, allowed, err)
	}
}

// wantSpent compares the missing tokens of all limits. A part of a token can have refilled.
func (n *node) wantSpent(t *testing.T, want bucket.Tokens) {
	t.Helper()
	d, err := n.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "0", "ai:max_tokens": "0", "header:x-key": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range d.Limits() {
		if got := l.Missing(); got > want*bucket.Token || got <= (want-1)*bucket.Token {
			t.Errorf("%v tokens are spent, want %d", got, want)
		}
	}
}

// Random faults at random calls of random streams: in the end each limit is charged the usage of all streams.
func TestSteps_RandomFaults(t *testing.T) {
	for name, rule := range map[string]string{
		"one bucket": `{"name": "chat", "limit_keys": [], "rate": "1/1h", "burst": 9000, "cost_source": "ai:tokens"}`,
		"two weights": `{"name": "chat", "limit_keys": [], "rate": "1/1h", "burst": 9000, "cost_source": "ai:tokens"},
			{"name": "other", "group": "b", "limit_keys": [], "rate": "1/1h", "burst": 9000, "cost_source": "ai:tokens", "weights": {"output": 2}}`,
		"local": `{"name": "chat", "limit_keys": [], "rate": "1/1h", "burst": 9000, "cost_source": "ai:tokens", "on_store_error": "local"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(testseed.PCG(1, 33))
			for range 100 {
				n := start(t, 1, rule).nodes[0]
				spent, weighted := int64(0), int64(0)
				for range 5 {
					res := n.begin(t)
					output := int64(200)
					for range r.IntN(5) {
						n.line.cut(fault(r.IntN(4)))
						output += r.Int64N(60)
						_, _ = res.Extend(t.Context(), used(100, output), r.IntN(2) == 0)
					}
					for range r.IntN(3) {
						n.line.cut([]fault{down, lossy, silent}[r.IntN(3)])
						_ = res.Finish(t.Context(), used(100, output+50))
					}
					n.line.cut(up)
					if output += r.Int64N(100) - 50; r.IntN(4) == 0 {
						output = r.Int64N(output)
					}
					if err := res.Finish(t.Context(), used(100, output)); err != nil {
						t.Fatal(err)
					}
					spent, weighted = spent+100+output, weighted+100+2*output
				}
				d, err := n.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "0", "ai:max_tokens": "0"}})
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range []int64{spent, weighted}[:len(d.Limits())] {
					if got := d.Limits()[i].Missing(); got != bucket.Tokens(want)*bucket.Token {
						t.Fatalf("limit %d: %v tokens are spent, want %d", i, got, want)
					}
				}
			}
		})
	}
}
