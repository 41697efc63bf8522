// SPDX-License-Identifier: Apache-2.0

package aitokens_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aitokens"
)

var counter = aitokens.New()

// TestCounter_Count has numbers of OpenAI's tiktoken: its README and its cookbook "How to count tokens with tiktoken".
func TestCounter_Count(t *testing.T) {
	for _, tt := range []struct {
		model, text string
		want        int64
	}{
		{"gpt-4", "antidisestablishmentarianism", 6},
		{"gpt-4o", "antidisestablishmentarianism", 6},
		{"gpt-3.5-turbo", "2 + 2 = 4", 7},
		{"openai/gpt-4-turbo", "お誕生日おめでとう", 9},
		{"gpt-4.1", "お誕生日おめでとう", 8},
		{"claude-sonnet", "hello world", 2},
		{"", "", 0},
	} {
		if got := counter.Count(tt.model, tt.text); got != tt.want {
			t.Errorf("%s %q: got %d tokens, want %d", tt.model, tt.text, got, tt.want)
		}
	}
}

// TestCounter_Long checks that parts of a long text give almost the count of the whole.
func TestCounter_Long(t *testing.T) {
	sentence := "The quick brown fox jumps over the lazy dog, and 12 more do the same. Größe und Maß: 日本語. "
	each := counter.Count("gpt-4o", sentence+sentence) - counter.Count("gpt-4o", sentence)
	for _, n := range []int{10, 500, 20_000} {
		got, want := counter.Count("gpt-4o", strings.Repeat(sentence, n)), each*int64(n)
		if got < want*97/100 || got > want*103/100 {
			t.Errorf("%d sentences: got %d tokens, want %d", n, got, want)
		}
	}
}

// TestCounter_LongWord counts words that take the algorithm long: a client must not block the server.
func TestCounter_LongWord(t *testing.T) {
	for _, word := range []string{"a", "ab", "é", " ", "\n", "=", "\x80", "日"} {
		text := strings.Repeat(word, ai.MaxRequestBytes/len(word))
		if got := counter.Count("gpt-4o", text); got < int64(len(text)/2000) || got > int64(len(text)) {
			t.Errorf("%q: got %d tokens for %d bytes", word, got, len(text))
		}
	}
}

func TestCounter_Estimate(t *testing.T) {
	var estimator ai.Estimator = counter.Estimate
	for _, tt := range []struct {
		body string
		want int64
	}{
		{`{"model":"gpt-4o","messages":[{"role":"user","content":"hello world"}]}`, 2},
		{`{"model":"gpt-4o","messages":[{"content":[{"type":"text","text":"hello world"},{"type":"image_url","image_url":{"url":"x"}}]}]}`, 2 + ai.MediaTokens},
		{`{"messages":[]}`, 0},
	} {
		r, err := ai.ReadRequest(ai.OpenAIChat, "", []byte(tt.body), int64(len(tt.body)))
		if err != nil || estimator(r) != tt.want {
			t.Errorf("%s: got %d, %v, want %d", tt.body, estimator(r), err, tt.want)
		}
	}
	prompt := []byte(`{"prompt":[1,2,3,50256]}`)
	if r, err := ai.ReadRequest(ai.OpenAICompletions, "", prompt, int64(len(prompt))); err != nil || counter.Estimate(r) < 4 || counter.Estimate(r) > 5 {
		t.Errorf("token IDs: got %d, %v, want 4 or 5", counter.Estimate(r), err)
	}
	r, err := ai.ReadRequest(ai.OpenAIChat, "", []byte(`{"model":"m`), 40<<20)
	if err != nil || counter.Estimate(r) != 10<<20 {
		t.Errorf("a long request: got %d, %v", counter.Estimate(r), err)
	}
}

func TestCounter_Concurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got := counter.Count("gpt-4o", "antidisestablishmentarianism"); got != 6 {
					t.Errorf("got %d tokens, want 6", got)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCount(b *testing.B) {
	sentence := "The quick brown fox jumps over the lazy dog, and 12 more do the same. "
	for _, size := range []int{1 << 10, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			text := strings.Repeat(sentence, size/len(sentence))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				counter.Count("gpt-4o", text)
			}
		})
	}
	b.Run("one long word", func(b *testing.B) {
		text := strings.Repeat("a", 1<<20)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			counter.Count("gpt-4o", text)
		}
	})
}
