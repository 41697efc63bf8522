// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A stream is one request to a language model of a client.
type stream struct {
	t       *testing.T
	limiter *mete.Limiter
}

func newStream(t *testing.T, text string) (*stream, *storetest.Clock) {
	clock := storetest.NewClock()
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(storetest.NewModel(clock.Now), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &stream{t, l}, clock
}

func (s *stream) begin(prompt, most string, more ...string) *mete.Reservation {
	s.t.Helper()
	attrs := mete.Attrs{"ai:prompt_tokens": prompt, "ai:max_tokens": most, "header:x-key": "a"}
	for i := 0; i < len(more); i += 2 {
		attrs[more[i]] = more[i+1]
	}
	r, err := s.limiter.Reserve(s.t.Context(), mete.Request{Attributes: attrs})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// left returns the remaining tokens of each limit.
func (s *stream) left(r *mete.Reservation) (left []bucket.Tokens) {
	d, err := s.limiter.Peek(s.t.Context(), mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "0", "ai:max_tokens": "0", "header:x-key": "a"}})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range d.Limits() {
		left = append(left, d.Limits()[i].Room()/bucket.Token)
	}
	return left
}

func used(input, output int64) policy.Response {
	return policy.Response{Status: 200, Usage: &policy.TokenUsage{Input: input, Output: output}}
}

// A lossyStore applies takes of an ended context, and then returns an error, as a store does that loses an answer.
type lossyStore struct{ mete.Store }

func (s lossyStore) Unwrap() mete.Store { return s.Store }

func (s lossyStore) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	snaps, allowed, err := s.Store.Take(context.WithoutCancel(ctx), dst, charges, mode)
	return snaps, allowed, cmp.Or(err, ctx.Err())
}

// A client that hangs up in a charge does not pay twice.
func TestStream_ClientHangsUpInACharge(t *testing.T) {
	clock := storetest.NewClock()
	m, err := policy.Load([]byte(perKey), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(lossyStore{storetest.NewModel(clock.Now)}, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t, l}
	r := s.begin("100", "200")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if allowed, err := r.Extend(ctx, used(100, 250), false); !allowed || err != nil {
		t.Errorf("extended: %v, %v", allowed, err)
	}
	if err := r.Finish(t.Context(), used(100, 260)); err != nil {
		t.Error(err)
	}
	if left := s.left(r); left[0] != 640 || left[1] != 1140 {
		t.Errorf("%v left, want 640 and 1140", left)
	}
}

const perKey = `{"rules": [{"name": "chat", "limit_keys": ["header:x-key"], "algorithm": "token_bucket_llm", "tokens_per_minute": 1000, "tokens_per_day": 1500, "max_prompt_tokens": 600}]}`

func TestStream_PaysForWhatItUses(t *testing.T) {
	s, _ := newStream(t, perKey)
	r := s.begin("100", "200")
	want := func(what string, minute, day bucket.Tokens) {
		t.Helper()
		if left := s.left(r); left[0] != minute || left[1] != day {
			t.Errorf("%s: %v left, want %v and %v", what, left, minute, day)
		}
	}
	want("after the reservation", 700, 1200)
	extend := func(output int64, force, allowed bool) {
		t.Helper()
		if got, err := r.Extend(t.Context(), used(100, output), force); got != allowed || err != nil {
			t.Errorf("extended to %d: %v, %v", output, got, err)
		}
	}
	extend(150, false, true) // less than reserved
	want("within the reservation", 700, 1200)
	extend(500, false, true)
	want("above the reservation", 400, 900)
	extend(901, false, false) // the minute has 400 left
	want("denied in one step", 400, 900)
	extend(950, true, true)
	want("a debt", 0, 450)
	end := used(100, 400)
	end.Ended = true
	if err := r.Finish(t.Context(), end); err != nil {
		t.Error(err)
	}
	want("settled at the real usage", 500, 1000)
}

func TestStream_EndsByTheStrictestLimit(t *testing.T) {
	s, _ := newStream(t, `{"rules": [
		{"name": "a", "group": "a", "limit_keys": [], "rate": "1000/1m", "cost_source": "ai:tokens"},
		{"name": "b", "group": "b", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 1000, "streaming": {"buffer_tokens": 10}},
		{"name": "c", "group": "c", "limit_keys": [], "rate": "1000/1m"}]}`)
	got, ok := s.begin("1", "1").Streaming()
	if want := (policy.Streaming{Every: 10, OnLimit: policy.StreamClose, Partial: true, AskUsage: true}); got != want || !ok {
		t.Errorf("streaming %+v, %v, want %+v", got, ok, want)
	}
	s, _ = newStream(t, `{"rules": [
		{"name": "a", "group": "a", "limit_keys": [], "rate": "1000/1m", "cost_source": "ai:tokens"},
		{"name": "b", "group": "b", "limit_keys": [], "rate": "1000/1m", "cost_source": "ai:tokens", "streaming": {"ask_usage": false}}]}`)
	if got, _ := s.begin("1", "1").Streaming(); got.AskUsage {
		t.Error("one of two limits does not ask for usage: the request asks for it")
	}
	s, _ = newStream(t, `{"name": "c", "limit_keys": [], "rate": "1000/1m"}`)
	if _, ok := s.begin("1", "1").Streaming(); ok {
		t.Error("a request without limits of tokens has a treatment of streams")
	}
}

func TestStream_Refusals(t *testing.T) {
	s, _ := newStream(t, perKey)
	r := s.begin("601", "1")
	if r.Allowed || r.Rule != "chat" || r.Reason != policy.ReasonPromptTokens || r.RetryAfter != bucket.Never || r.RefusingRule() == nil {
		t.Errorf("a long prompt: %+v", r.Decision)
	}
	if left := s.left(r); left[0] != 1000 {
		t.Errorf("a refused request leaves %v", left)
	}
	s.begin("500", "500")
	if r := s.begin("1", "1"); r.Allowed || r.Reason != "tpm_exceeded" {
		t.Errorf("without tokens of the minute: %+v", r.Decision)
	}
}

func TestLoop_DeniesUntilTheWindowEnds(t *testing.T) {
	s, clock := newStream(t, `{"rules": [{"name": "r", "limit_keys": ["header:x-key"], "rate": "100/1s"}],
		"loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 3}}`)
	for i := range 2 {
		if r := s.begin("1", "1", "ai:fingerprint", "f"); !r.Allowed {
			t.Fatalf("request %d: %+v", i, r.Decision)
		}
	}
	clock.Advance(20_000_000)
	r := s.begin("1", "1", "ai:fingerprint", "f")
	if r.Allowed || r.Reason != policy.ReasonLoop || r.RetryAfter != 40*time.Second {
		t.Errorf("the third identical request: %+v", r.Decision)
	}
	if r := s.begin("1", "1", "ai:fingerprint", "g"); !r.Allowed {
		t.Errorf("another request: %+v", r.Decision)
	}
	if r := s.begin("1", "1", "ai:fingerprint", "f", "header:x-key", "b"); !r.Allowed {
		t.Errorf("the request of another client: %+v", r.Decision)
	}
	clock.Advance(40_000_000)
	if r := s.begin("1", "1", "ai:fingerprint", "f"); !r.Allowed {
		t.Errorf("after the window: %+v", r.Decision)
	}
}

func TestBreaker_OpensAndCloses(t *testing.T) {
	s, clock := newStream(t, `{"rules": [{"name": "r", "limit_keys": ["header:x-key"], "rate": "100000/1s", "cost_source": "ai:tokens"}],
		"circuit_breaker": {"enabled": true, "spend_rate_threshold_per_minute": 1000, "auto_reset_after_minutes": 5}}`)
	if r := s.begin("500", "400"); !r.Allowed {
		t.Fatalf("below the threshold: %+v", r.Decision)
	}
	if r := s.begin("50", "50"); r.Allowed || r.Reason != policy.ReasonBreaker || r.RetryAfter != 5*time.Minute {
		t.Errorf("the request that reaches the threshold: %+v", r.Decision)
	}
	clock.Advance(240_000_000)
	if r := s.begin("1", "1"); r.Allowed || r.RetryAfter != time.Minute {
		t.Errorf("while the breaker is open: %+v", r.Decision)
	}
	if r := s.begin("1", "1", "header:x-key", "b"); !r.Allowed {
		t.Errorf("another key: %+v", r.Decision)
	}
	clock.Advance(60_000_000)
	if r := s.begin("1", "1"); !r.Allowed {
		t.Errorf("after the reset: %+v", r.Decision)
	}
}

// A cost cannot be tokens and money at once. A usage settles both.
func TestHold_OneUnit(t *testing.T) {
	const prices = `"prices": {"version": "1", "models": {"*": {"input": 100, "output": 100}}}`
	tokens := `{"name": "tokens", "limit_keys": [], "group": "a", "algorithm": "token_bucket_llm", "tokens_per_minute": 100000, "tokens_per_day": 100000}`
	money := `{"name": "money", "limit_keys": [], "group": "b", "rate": "500/1m", "cost_source": "ai:money"}`
	requests := `{"name": "requests", "limit_keys": [], "group": "c", "rate": "500/1m"}`
	for rules, allowed := range map[string]bool{tokens + "," + requests: true, money + "," + requests: true, tokens + "," + requests + "," + money: false} {
		s, _ := newStream(t, `{`+prices+`, "rules": [`+rules+`]}`)
		h, err := s.limiter.Hold(t.Context(), mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "10"}}, mete.HoldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var refused *mete.HoldError
		if _, err = s.limiter.Settle(t.Context(), h.ID, 10); errors.As(err, &refused) == allowed || allowed && err != nil {
			t.Errorf("%s: settle by cost: %v", rules, err)
		}
		if status, err := s.limiter.SettleUsage(t.Context(), h.ID, policy.TokenUsage{Input: 10}, ""); err != nil || status.Settled == allowed {
			t.Errorf("%s: settle by usage: %+v, %v", rules, status, err)
		}
	}
}
