// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

// A rule inherits the denial of its policy, and of its bundle. Its own denial replaces all of it.
func TestDenial_Inherited(t *testing.T) {
	m := loadText(t, `{"denial": {"format": "openai", "status": 430}, "policies": [
		{"id": "a", "spec": {"rules": [{"name": "a1", "rate": "1/1m", "limit_keys": []}]}},
		{"id": "b", "spec": {"denial": {"format": "anthropic"}, "rules": [
			{"name": "b1", "rate": "1/1m", "limit_keys": []},
			{"name": "b2", "rate": "1/1m", "limit_keys": ["path"], "denial": {"body": "wait {{retry_after}} s", "status": 503}},
			{"name": "b3", "rate": "1/1m", "limit_keys": ["host"], "denial": {"format": "problem"}}],
			"fallback_limit": {"rate": "1/1m", "denial": {"status": 403}}}}]}`)
	want := map[string]string{"a1": "430, openai", "b1": "anthropic", "b2": `503, text/plain; charset=utf-8 "wait {{retry_after}} s"`, "b3": "problem", "b/fallback": "403, problem"}
	for _, r := range m.Rules() {
		got := ""
		for _, f := range r.Facts() {
			if f.Field == "denial" {
				got = f.Value
			}
		}
		if got != want[r.Name] {
			t.Errorf("%s: %s, want %s", r.Name, got, want[r.Name])
		}
	}
}

// Two long bodies that differ only at their ends are different.
func TestDenial_Diff(t *testing.T) {
	file := func(end string) *policy.Matcher {
		return loadText(t, `{"name": "r", "limit_keys": [], "rate": "1/1m", "denial": {"body": "`+strings.Repeat("x", 100)+end+`"}}`)
	}
	if found := diff.Compare(file("a"), file("b"), time.Now()); len(found) != 1 || found[0].Changes[0].Field != "denial" {
		t.Errorf("differences %+v, want one of denial", found)
	}
	if found := diff.Compare(file("a"), file("a"), time.Now()); len(found) != 0 {
		t.Errorf("differences %+v of equal policies", found)
	}
}

func TestDenial_Bound(t *testing.T) {
	for size, want := range map[int]bool{8 << 10: true, 8<<10 + 1: false} {
		_, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "rate": "1/1m", "denial": {"body": "`+strings.Repeat("x", size)+`"}}`), policy.Options{})
		if (err == nil) != want {
			t.Errorf("a body of %d bytes: %v", size, err)
		}
	}
}
