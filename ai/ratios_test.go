// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/metehq/mete/ai"
)

func newRatios(t *testing.T, models int) *ai.Ratios {
	t.Helper()
	rs, err := ai.NewRatios(models)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func textOf(n int64) ai.Text { return ai.Text{Bytes: n, Chars: n} }

func TestRatios(t *testing.T) {
	rs := newRatios(t, 10)
	if got := rs.Tokens("m", ai.CompletionSide, textOf(401)); got != 101 {
		t.Errorf("without a ratio: got %d tokens, want 101", got)
	}
	for range 100 {
		rs.Observe("m", ai.CompletionSide, textOf(300), 100)
	}
	if got := rs.Tokens("m", ai.CompletionSide, textOf(900)); got < 300 || got > 301 {
		t.Errorf("got %d tokens, want 300", got)
	}
	if got := rs.Estimate(&ai.Request{Model: "m", Text: textOf(400), Media: 2}); got != 100+2*ai.MediaTokens {
		t.Errorf("a request: got %d tokens, want %d", got, 100+2*ai.MediaTokens)
	}
	if got := rs.Tokens("m", ai.PromptSide, textOf(400)); got != 100 {
		t.Errorf("the other side: got %d tokens, want 100", got)
	}
	// The first estimate was 75 instead of 100.
	if all := rs.All(); len(all) != 1 || all[0].Requests != 100 || all[0].Error <= 0 || all[0].Error > 0.1 || math.Abs(all[0].PerByte-1.0/3) > 1e-9 {
		t.Errorf("got %+v", all)
	}
	for range 3000 { // the model changes its tokens
		rs.Observe("m", ai.CompletionSide, textOf(1000), 200)
	}
	if got := rs.Tokens("m", ai.CompletionSide, textOf(1000)); got < 200 || got > 210 {
		t.Errorf("after a change: got %d tokens, want 200 or a bit more", got)
	}
}

// TestRatios_Bounds checks that strange numbers change no ratio beyond its bounds.
func TestRatios_Bounds(t *testing.T) {
	rs := newRatios(t, 10)
	for _, tokens := range []int64{0, -5, ai.MaxUsage + 1, math.MaxInt64, math.MinInt64} {
		rs.Observe("m", ai.PromptSide, textOf(100), tokens)
	}
	rs.Observe("m", ai.PromptSide, ai.Text{}, 5)
	if all := rs.All(); len(all) != 0 {
		t.Errorf("got %+v, want nothing", all)
	}
	rs.Observe("high", ai.PromptSide, textOf(1), ai.MaxUsage)
	rs.Observe("low", ai.PromptSide, textOf(1<<40), 1)
	if got := rs.Tokens("high", ai.PromptSide, textOf(100)); got != 75 {
		t.Errorf("high: got %d, want 75", got)
	}
	if got := rs.Tokens("low", ai.PromptSide, textOf(1600)); got != 200 {
		t.Errorf("low: got %d, want 200", got)
	}
	for _, r := range rs.All() {
		if r.Error < 0 || r.Error > 100 || math.Abs(r.Bias) > 100 {
			t.Errorf("got %+v", r)
		}
	}
}

// A client that sends texts with few tokens, or with many, changes the estimates of all clients of its model within bounds.
func TestRatios_StrangeTexts(t *testing.T) {
	english, chinese := textOf(4000), ai.Text{Bytes: 3000, Chars: 1000} // simple_word estimates 1,000 tokens for each
	for _, tt := range []struct {
		what             string
		tokens           int64 // of a MiB
		english, chinese int64 // the estimates in the end
	}{
		{"spaces, 114 bytes in a token", 9_198, 500, 500},
		{"base64, 1.4 bytes in a token", 748_983, 2_857, 2_143},
		{"a byte in a token", 1 << 20, 3_000, 2_250},
	} {
		rs := newRatios(t, 10)
		for range 100 {
			rs.Observe("m", ai.PromptSide, english, 1000)
		}
		last := int64(1000)
		for range 50 {
			rs.Observe("m", ai.PromptSide, textOf(1<<20), tt.tokens)
			got := rs.Tokens("m", ai.PromptSide, english)
			if got < 500 || got > 3000 || got > last != (tt.english > 1000) && got != last {
				t.Errorf("%s: the estimate goes from %d to %d", tt.what, last, got)
			}
			last = got
		}
		if got := rs.Tokens("m", ai.PromptSide, chinese); last < tt.english || last > tt.english+1 || got < tt.chinese || got > tt.chinese+1 {
			t.Errorf("%s: estimates %d and %d, want %d and %d", tt.what, last, got, tt.english, tt.chinese)
		}
		for range 64 { // as many bytes as a ratio remembers
			rs.Observe("m", ai.PromptSide, english, 1000)
		}
		if got := rs.Tokens("m", ai.PromptSide, english); (got-1000)*(last-1000) < 0 || float64(got-1000)/float64(last-1000) > 0.7 {
			t.Errorf("%s: the estimate goes from %d to %d after usual texts, want a third less of the error", tt.what, last, got)
		}
	}
}

func TestRatios_ManyModels(t *testing.T) {
	rs := newRatios(t, 3)
	for i := range 100 {
		rs.Observe(fmt.Sprint(i), ai.PromptSide, textOf(200), 100)
	}
	if got := len(rs.All()); got > 8 {
		t.Errorf("got %d ratios of 3 models and the others", got)
	}
	if got := rs.Tokens("99", ai.PromptSide, textOf(200)); got != 100 {
		t.Errorf("another model: got %d tokens, want 100", got)
	}
	if _, err := ai.NewRatios(0); err == nil {
		t.Error("0 models: got no error")
	}
}

func TestRatios_Concurrent(t *testing.T) {
	rs := newRatios(t, 4)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				rs.Observe(fmt.Sprint(i), ai.PromptSide, textOf(400), 100)
				rs.Tokens("1", ai.PromptSide, textOf(400))
				rs.All()
			}
		})
	}
	wg.Wait()
	requests := int64(0)
	for _, r := range rs.All() {
		requests += r.Requests
	}
	if requests != 800 {
		t.Errorf("got %d requests, want 800", requests)
	}
}
