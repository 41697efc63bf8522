// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const sharedRules = `"rules": [
	{"name": "writes", "bucket": "api", "limit_keys": ["header:x-user"], "match": {"method": ["POST", "PUT"]}, "rate": "100/1m", "fixed_cost": 5},
	{"name": "uploads", "bucket": "api", "match": {"method": "PATCH"}, "cost_source": "header:content-length", "default_cost": 2, "min_cost": 1, "max_cost": 50},
	{"name": "reads", "bucket": "api"},
	{"name": "address", "limit_keys": ["ip:address"], "rate": "10/1s"}]`

func request(method string) policy.Map {
	return policy.Map{"header:x-user": "k", "method": method, "ip:address": "192.0.2.1", "header:content-length": "7"}
}

// describeMatches writes the limits that apply to a request.
func describeMatches(m *policy.Matcher, attrs policy.Map, now bucket.Instant) string {
	matches, verdict := m.Match(nil, attrs, 0, now)
	text := ""
	if verdict.Block != nil {
		text += "blocked "
	}
	for _, one := range matches {
		text += fmt.Sprintf("%s/%s %s %v of %v %t; ", one.Rule.Name, one.Limit.Name, one.Key, one.Cost, one.Limit.Bucket.Capacity(), one.Shadow)
	}
	return text
}

// Rules with one bucket charge it, each at its own cost. Only the first that matches applies.
func TestSharedBucket(t *testing.T) {
	m := loadText(t, `{`+sharedRules+`}`)
	const address = "address/address address:ip=192.0.2.1 1 of 10 false; "
	for method, want := range map[string]string{
		"POST":  "writes/api api:x-user=k 5 of 100 false; ",
		"PATCH": "uploads/api api:x-user=k 7 of 100 false; ",
		"GET":   "reads/api api:x-user=k 1 of 100 false; ",
	} {
		if got := describeMatches(m, request(method), 1); got != want+address {
			t.Errorf("%s: got %s, want %s", method, got, want+address)
		}
	}
	for _, rule := range []string{"writes", "reads"} {
		if families, err := m.Families(rule); err != nil || len(families) != 1 || families[0] != "api:" {
			t.Errorf("families of %s: %q, %v", rule, families, err)
		}
	}
	found, _, err := m.Bucket("api:x-user=k", 1)
	if err != nil || found.Rule.Name != "writes" || found.Limit.Name != "api" {
		t.Errorf("bucket: %+v, %v, want of writes", found, err)
	}
}

// The limit may be repeated, and may be several limits.
func TestSharedBucket_Limits(t *testing.T) {
	m := loadText(t, `{"rules": [
		{"name": "a", "bucket": "b", "limit_keys": ["header:x-user"], "match": {"method": "POST"}, "limits": [{"name": "s", "rate": "10/1s"}, {"name": "d", "rate": "100/1d", "fixed_cost": 3}]},
		{"name": "c", "bucket": "b", "limit_keys": ["header:x-user"], "match": {"method": "PUT"}, "limits": [{"name": "s", "rate": "10/1s", "fixed_cost": 2}, {"name": "d", "rate": "100/1d", "burst": 100}]},
		{"name": "e", "bucket": "b", "fixed_cost": 4}]}`)
	for method, want := range map[string]string{
		"POST": "a/b/s b/s:x-user=k 1 of 10 false; a/b/d b/d:x-user=k 3 of 100 false; ",
		"PUT":  "c/b/s b/s:x-user=k 2 of 10 false; c/b/d b/d:x-user=k 1 of 100 false; ",
		"GET":  "e/b/s b/s:x-user=k 4 of 10 false; e/b/d b/d:x-user=k 4 of 100 false; ",
	} {
		if got := describeMatches(m, request(method), 1); got != want {
			t.Errorf("%s: got %s, want %s", method, got, want)
		}
	}
}

// An override of the limit changes the bucket for all its rules. They keep their costs.
func TestSharedBucket_Overrides(t *testing.T) {
	const rest = `, "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z"}`
	now := bucket.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, tt := range []struct{ override, post, get string }{
		{`"action": "limit", "rules": ["reads"], "match": {}, "rate": "7/1m", "fixed_cost": 2`, "writes/api api:x-user=k 5 of 7 false; ", "reads/api api:x-user=k 2 of 7 false; "},
		{`"action": "limit", "rules": ["writes"], "match": {"header:x-user": "k"}, "rate": "7/1m"`, "writes/api api:x-user=k 5 of 7 false; ", "reads/api api:x-user=k 1 of 7 false; "},
		{`"action": "limit", "key": "api:x-user=k", "rate": "7/1m"`, "writes/api api:x-user=k 5 of 7 false; ", "reads/api api:x-user=k 1 of 7 false; "},
		{`"action": "limit", "key": "api:x-user=k", "rate": "7/1m", "fixed_cost": 3`, "writes/api api:x-user=k 3 of 7 false; ", "reads/api api:x-user=k 3 of 7 false; "},
		{`"action": "limit", "key": "api:x-user=other", "rate": "7/1m"`, "writes/api api:x-user=k 5 of 100 false; ", "reads/api api:x-user=k 1 of 100 false; "},
		{`"action": "allow", "rules": ["reads"], "match": {"header:x-user": "k"}`, "writes/api api:x-user=k 5 of 100 false; ", ""},
		{`"action": "allow", "key": "api:x-user=k"`, "", ""},
		{`"action": "block", "key": "api:x-user=k"`, "blocked ", "blocked "},
	} {
		m := loadText(t, `{`+sharedRules+`, "overrides": [{"id": "o", `+tt.override+rest+`]}`)
		for method, want := range map[string]string{"POST": tt.post, "GET": tt.get} {
			attrs := request(method)
			delete(attrs, "ip:address")
			if got := describeMatches(m, attrs, now); got != want {
				t.Errorf("%s %s: got %s, want %s", tt.override, method, got, want)
			}
		}
	}
	m := loadText(t, `{`+sharedRules+`, "overrides": [{"id": "o", "action": "allow", "rules": ["writes"], "match": {"header:x-user": "k"}`+rest+`]}`)
	if _, v, err := m.Bucket("api:x-user=k", now); v.Allow != nil || err != nil {
		t.Errorf("one of the rules is exempt: verdict %+v, %v, want none for the bucket", v, err)
	}
}

// A mode for a share of the keys is the same for all rules of a bucket.
func TestSharedBucket_Mode(t *testing.T) {
	m := loadText(t, `{"mode": "50%", `+sharedRules+`}`)
	shadows := 0
	for i := range 100 {
		var modes [2]bool
		for k, method := range []string{"POST", "GET"} {
			attrs := request(method)
			attrs["header:x-user"] = fmt.Sprint(i)
			matches, _ := m.Match(nil, attrs, 0, 1)
			modes[k] = matches[0].Shadow
		}
		if modes[0] != modes[1] {
			t.Fatalf("key %d: shadow is %v", i, modes)
		}
		if modes[0] {
			shadows++
		}
	}
	if shadows == 0 || shadows == 100 {
		t.Errorf("%d of 100 keys are in shadow", shadows)
	}
	loadText(t, `{"rules": [{"name": "a", "bucket": "b", "limit_keys": [], "match": {"method": "POST"}, "rate": "1/1s"}, {"name": "c", "bucket": "b", "mode": "off"}]}`)
}

// on_full belongs to the bucket.
func TestSharedBucket_OnFull(t *testing.T) {
	m := loadText(t, `{"rules": [{"name": "a", "bucket": "b", "limit_keys": [], "match": {"method": "POST"}, "rate": "1/1s", "on_full": "closed"}, {"name": "c", "bucket": "b"}]}`)
	if got := m.Rules()[1].OnFull; got != store.OnFullClosed {
		t.Errorf("on_full %v, want closed as the first rule", got)
	}
	_, err := policy.Load([]byte(`{"rules": [{"name": "a", "bucket": "b", "limit_keys": [], "match": {"method": "POST"}, "rate": "1/1s", "on_full": "closed"}, {"name": "c", "bucket": "b", "on_full": "open"}]}`), policy.Options{})
	if err == nil || !strings.Contains(err.Error(), `on_full differs from rule "a"`) {
		t.Errorf("error %v, want a difference", err)
	}
}

// A penalty belongs to the bucket: every rule obeys and starts it.
func TestSharedBucket_Penalty(t *testing.T) {
	const first = `{"name": "a", "bucket": "b", "limit_keys": [], "match": {"method": "POST"}, "rate": "5/1s", "penalty": "10m"}`
	for _, second := range []string{`"fixed_cost": 2`, `"rate": "5/1s"`, `"rate": "5/1s", "penalty": "10m"`, `"limits": [{"rate": "5/1s", "penalty": "10m"}]`, `"penalty": "10m"`} {
		m := loadText(t, `{"rules": [`+first+`, {"name": "c", "bucket": "b", `+second+`}]}`)
		if p := m.Rules()[1].Limits[0].Penalty; !p.Equal(m.Rules()[0].Limits[0].Penalty) {
			t.Errorf("%s: penalty %+v, want the penalty of the first rule", second, p)
		}
	}
	for _, tt := range [][2]string{
		{first, `"penalty": "5m"`},
		{first, `"rate": "5/1s", "penalty": "5m"`},
		{first, `"limits": [{"rate": "5/1s", "penalty": "5m"}]`},
		{strings.Replace(first, `, "penalty": "10m"`, "", 1), `"penalty": "5m"`},
	} {
		_, err := policy.Load([]byte(`{"rules": [`+tt[0]+`, {"name": "c", "bucket": "b", `+tt[1]+`}]}`), policy.Options{})
		if err == nil || !strings.Contains(err.Error(), `the penalty differs from rule "a"`) {
			t.Errorf("%v: error %v, want another penalty", tt, err)
		}
	}
}

// An override of the limit leaves each rule its charge_on.
func TestSharedBucket_OverrideKeepsChargeOn(t *testing.T) {
	m := loadText(t, `{"rules": [
		{"name": "login", "bucket": "b", "limit_keys": ["header:x-user"], "match": {"path": "/login"}, "rate": "5/1m", "charge_on": {"status": [401]}},
		{"name": "rest", "bucket": "b"}], "overrides": [
		{"id": "o", "action": "limit", "rules": ["login"], "match": {"header:x-user": "k"}, "rate": "9/1m", "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z"}]}`)
	for path, want := range map[string]bool{"/login": true, "/": false} {
		matches, _ := m.Match(nil, policy.Map{"path": path, "header:x-user": "k"}, 0, 1)
		if len(matches) != 1 || matches[0].Limit.Override == nil || matches[0].Limit.AwaitsResponse() != want {
			t.Errorf("%s: %+v, want the override's limit that awaits a response: %t", path, matches, want)
		}
	}
}
