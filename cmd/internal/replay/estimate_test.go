// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
)

const modelRules = `{"prices": {"version": "1", "models": {"small": {"input": 1000, "output": 1000}, "large": {"input": 10000, "output": 10000}}}, "rules": [
	{"name": "chat", "limit_keys": [], "group": "a", "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": 1000, "default_max_completion": 500},
	{"name": "money", "limit_keys": [], "group": "b", "algorithm": "cost_based", "budget": 1000, "period": "day", "timezone": "UTC", "cost_source": "ai:money", "default_max_completion": 500},
	{"name": "requests", "limit_keys": [], "group": "c", "rate": "100/1s", "charge_on": {"status": [200]}}]}`

// Lines have the estimate and the usage of a language model. The report compares them.
func TestRun_UsageOfLanguageModels(t *testing.T) {
	const text = `{"at": 0, "ai": {"model": "small", "prompt_tokens": 400}, "usage": {"input": 400, "output": 100}}
{"at": 0, "ai": {"model": "large", "prompt_tokens": "300", "max_tokens": 200}, "usage": {"input": 100, "cached": 200, "output": 40, "reasoning": 60}}
{"at": 0, "ai": {"model": "small", "prompt_tokens": 600}, "usage": {"input": 600, "output": 1}}
{"at": 1, "duration": 10, "ai": {"model": "small", "prompt_tokens": 80, "max_tokens": 20}, "usage": {"input": 80, "output": 40}}
{"at": 20, "ai": {"model": "small", "prompt_tokens": 80, "max_tokens": 20}, "status": 500}
`
	m := load(t, modelRules)
	stats := replay.NewStats(m)
	var got strings.Builder
	err := replay.Run(t.Context(), replay.Config{
		Policy: m, Trace: trace.NewReader(strings.NewReader(text), trace.FormatJSONL), Store: memory, Settled: stats.Settle,
		Each: func(req *trace.Request, d *mete.Decision) error {
			got.WriteByte(map[bool]byte{true: '+', false: '-'}[d.Allowed])
			return stats.Add(req, d)
		},
	})
	if err != nil || got.String() != "++-++" {
		t.Fatalf("%s (%v), want ++-++", got.String(), err)
	}
	var report strings.Builder
	if _, err := (replay.Report{Policy: "p", Trace: "t", Counts: stats}).WriteTo(&report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"chat/tpm        4      1600     1020  63.75%               1", // 900+500+100+100 reserved; 500+400+120+0 charged
		"money           4         6        4",                         // 0.9+5+0.1+0.1 reserved; 0.5+4+0.12+0 charged
	} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, report.String())
		}
	}
}
