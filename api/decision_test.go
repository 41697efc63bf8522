// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
)

var decisions = []api.Decision{
	{Allowed: true, Limits: []api.Limit{}},
	{Rule: "per-key", Reason: "token_bucket_exceeded", RetryAfter: api.Seconds(500 * time.Millisecond), Limits: []api.Limit{
		{Rule: "per-key", Limit: "per-key/burst", Remaining: 4, RetryAfter: api.Seconds(bucket.Never), FullAfter: api.Seconds(time.Second)},
		{Rule: `a "quoted" <rule> ü`, Limit: "x", Owed: 250, Override: "o1", Stage: "80%"},
	}},
	{Allowed: true, Wait: api.Seconds(time.Second), Degraded: true, Failure: "timeout", Override: "o2", Limits: []api.Limit{{}},
		UnknownAttributes: []string{"header:a", "header:b"}},
}

// Append writes what encoding/json writes.
func TestDecisionAppend(t *testing.T) {
	for _, d := range decisions {
		want, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Append([]byte("x"))
		if string(got) != "x"+string(want) {
			t.Errorf("Append:\n%s\nencoding/json:\n%s", got[1:], want)
		}
		var back api.Decision
		if err := json.Unmarshal(got[1:], &back); err != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("got %+v and error %v back, want %+v", back, err, d)
		}
	}
}

func TestDecisionAppend_AllocatesNothing(t *testing.T) {
	b := make([]byte, 0, 1<<10)
	d := api.Decision{Rule: "per-key", RetryAfter: api.Seconds(bucket.Never), Limits: []api.Limit{{Rule: "per-key", FullAfter: 12345678}}}
	if n := testing.AllocsPerRun(100, func() { b = d.Append(b[:0]) }); n > 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func BenchmarkDecision_Append(b *testing.B) {
	plain := api.Decision{Rule: "per-key", RetryAfter: api.Seconds(time.Second), Limits: []api.Limit{{Rule: "per-key", Limit: "per-key", FullAfter: 12345678}}}
	for name, d := range map[string]api.Decision{"plain": plain, "escaped": decisions[1]} {
		b.Run(name, func(b *testing.B) {
			text := make([]byte, 0, 1<<10)
			b.ReportAllocs()
			for b.Loop() {
				text = d.Append(text[:0])
			}
		})
	}
}
