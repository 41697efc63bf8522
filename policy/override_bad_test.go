// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
)

func TestWithOverrides_BadInput(t *testing.T) {
	later := today.Add(time.Minute)
	good := policy.Override{ID: "x", Action: policy.ActionBlock, Match: json.RawMessage(`{"path": "/x"}`), Reason: "r", Author: "a", ExpiresAt: later}
	m := inFile(t, `"action": "block", "match": {"path": "/y"}`)
	change := func(f func(*policy.Override)) policy.Override {
		o := good
		f(&o)
		return o
	}
	ofRule := func(rule, limit string) policy.Override {
		o, err := policy.ParseOverride([]byte(`{"id": "x", "action": "limit", "rules": ["` + rule + `"], "match": {"header:x-user": "ann"}, ` + limit +
			`, "reason": "r", "author": "a", "expires_at": "` + later.Format(time.RFC3339) + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, tt := range []struct {
		name string
		o    policy.Override
		path string
		want string
	}{
		{"the ID of the file's", change(func(o *policy.Override) { o.ID = "o0" }), "/1/id", "already used"},
		{"the ID of another", change(func(o *policy.Override) { o.ID = "first" }), "/1/id", "already used"},
		{"no ID", change(func(o *policy.Override) { o.ID = "" }), "/1/id", ""},
		{"no action", change(func(o *policy.Override) { o.Action = "" }), "/1/action", ""},
		{"rules of a block", change(func(o *policy.Override) { o.Rules = []string{"user"} }), "/1/rules", "all rules"},
		{"no such rule", change(func(o *policy.Override) { o.Action, o.Rules = policy.ActionAllow, []string{"usr"} }), "/1/rules/0", "no rule"},
		{"a match and a key", change(func(o *policy.Override) { o.Key = "user:x-user=ann" }), "/1/match", "not both"},
		{"a key of no rule", change(func(o *policy.Override) { o.Match, o.Key = nil, "other:x=1" }), "/1/key", "no limit"},
		{"a limit without one", change(func(o *policy.Override) { o.Action, o.Rules = policy.ActionLimit, []string{"all"} }), "/1", ""},
		{"break glass for some", change(func(o *policy.Override) { o.Action = policy.ActionBreakGlass }), "/1/match", "all requests"},
		{"a limit of a block", change(func(o *policy.Override) { o.Config = json.RawMessage(`{"rps": 1}`) }), "/1", "no limit"},
		{"no reason", change(func(o *policy.Override) { o.Reason = "" }), "/1/reason", "empty"},
		{"no author", change(func(o *policy.Override) { o.Author = "" }), "/1/author", "empty"},
		{"not JSON", change(func(o *policy.Override) { o.Match = json.RawMessage(`{`) }), "", "as JSON"},
		{"null", change(func(o *policy.Override) { o.Match = json.RawMessage(`null`) }), "/1/match", ""},
		{"a limit of no name", ofRule("net", `"limits": [{"name": "medium", "rps": 1, "burst": 1}]`), "/1", `no limit "net/medium"`},
		{"one limit for two", ofRule("net", `"algorithm_config": {"rps": 1, "burst": 1}`), "/1", `no limit "net"`},
		{"two limits for one", ofRule("user", `"limits": [{"rps": 1, "burst": 1}, {"rps": 1, "burst": 1}]`), "/1", `no limit "user/2"`},
		{"other shards", ofRule("user", `"algorithm_config": {"rps": 10, "burst": 100, "shards": 4}`), "/1", "shards and leases"},
		{"another lease", ofRule("user", `"algorithm_config": {"rps": 10, "burst": 100, "leased": true}`), "/1", "shards and leases"},
		{"half a bucket", policy.Override{ID: "x", Action: policy.ActionLimit, Rules: []string{"user"}, Match: json.RawMessage(`{"path": "/x"}`),
			Config: json.RawMessage(`{"rps": 1, "burst": 1}`), Reason: "r", Author: "a", ExpiresAt: later}, "/1", "share the bucket"},
	} {
		first := good
		first.ID = "first"
		_, err := m.WithOverrides([]policy.Override{first, tt.o}, today)
		es, ok := errors.AsType[policy.Errors](err)
		if !ok || !slices.ContainsFunc(es, func(e policy.Error) bool { return e.Path == tt.path && strings.Contains(e.Reason, tt.want) }) {
			t.Errorf("%s: %v, want a mistake at %q with %q", tt.name, err, tt.path, tt.want)
		}
	}
	many := make([]policy.Override, policy.MaxOverrides)
	for i := range many {
		many[i] = good
		many[i].ID = fmt.Sprint("m", i)
	}
	if _, err := m.WithOverrides(many, today); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("%d beside one of the file: %v, want too many", len(many), err)
	}
	if _, err := m.WithOverrides(many[1:], today); err != nil {
		t.Errorf("%d beside one of the file: %v", len(many)-1, err)
	}
	expired := good
	expired.ExpiresAt = today.Add(-time.Hour)
	if with, err := m.WithOverrides([]policy.Override{expired}, today); err != nil || outcome(with, policy.Map{"path": "/x"}, today) != "all:1000" {
		t.Errorf("one that has expired: %v, want none in force and no mistake", err)
	}
}

// Impossible keys are rejected, because such an override would silently have no effect.
func TestOverride_BadKeys(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "net", "limit_keys": ["ip:address/48", "header:x-user"], "algorithm_config": {"rps": 1, "burst": 10}},
		{"name": "key", "group": "key", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 1, "burst": 10}},
		{"name": "all", "group": "all", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 10}}]}`), policy.Options{Now: today})
	if err != nil {
		t.Fatal(err)
	}
	const hash = "AAAAAAAAAAAAAAAAAAAAAA" // 128 bits
	for key, want := range map[string]string{
		"net:ip=192.0.2.1|x-user=ann":              "",
		"net:ip=2001:db8::/48|x-user=a%20b":        "",
		"net:ip=|x-user=":                          "",
		"{tag}net:ip=192.0.2.1|x-user=~" + hash:    "",
		"key:x-api-key=~" + hash:                   "",
		"key:x-api-key=~AAAA":                      "not in the form that keys use",
		"net:ip=192.0.2.1|x-user=~" + hash[1:]:     "not in the form that keys use",
		"net:ip=192.0.2.1|x-user=%2f":              "not in the form that keys use",
		"net:ip=192.0.2.1|x-user=%41":              "not in the form that keys use",
		"all:":                                     "",
		"all":                                      "",
		"net:ip=192.0.2.1":                         "a different number of attributes",
		"net:ip=192.0.2.1|x-user=a|x-user=b":       "a different number of attributes",
		"net:x-user=ann|ip=192.0.2.1":              "other attributes",
		"net:ip:address=192.0.2.1|header:x-user=a": "other attributes",
		"net:ip=192.0.2|x-user=ann":                "address",
		"net:ip=2001:db8::1|x-user=ann":            "address",
		"net:ip=2001:db8::/64|x-user=ann":          "address",
		"net:ip=2001:DB8::/48|x-user=ann":          "address",
		"net:ip=::ffff:192.0.2.1|x-user=ann":       "address",
		"net:ip=192.0.2.1|x-user=a b":              "not in the form that keys use",
		"net:ip=192.0.2.1|x-user=100%":             "not in the form that keys use",
		"net:ip=192.0.2.1|x-user=%2g":              "not in the form that keys use",
		"key:x-api-key=k1":                         "contain a hash",
		"all:x-user=ann":                           "a different number of attributes",
		"net":                                      "contains no attribute",
		"other:x=1":                                "no limit has keys",
		"#12345":                                   "does not identify a bucket",
		"":                                         "",
	} {
		o := policy.Override{ID: "x", Action: policy.ActionBlock, Key: key, Reason: "r", Author: "a", ExpiresAt: today.Add(time.Minute)}
		if key == "" {
			o.Match = json.RawMessage(`{"path": "/x"}`)
		}
		_, err := m.WithOverrides([]policy.Override{o}, today)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("key %q: %v, want %q", key, err, want)
		}
	}
}

// Invalid JSON is not an override.
func TestParseOverride(t *testing.T) {
	const good = `{"id":"x","action":"limit","rules":["user"],"match":{"header:x-user":["ann",{"not":"b"}]},"algorithm":"token_bucket",` +
		`"algorithm_config":{"rps":0.10,"burst":3},"reason":"r","author":"a","expires_at":"2026-11-21T12:01:00Z"}`
	o, err := policy.ParseOverride([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(o); err != nil || string(text) != good {
		t.Errorf("read and written: %s, %v; want %s", text, err, good)
	}
	for text, want := range map[string]string{
		``:                             "not JSON",
		`{} {}`:                        "not JSON",
		`[]`:                           "must be an object",
		`null`:                         "must be an object",
		`{"idd": "x"}`:                 `did you mean "id"`,
		`{"id": "x", "id": "y"}`:       "given twice",
		`{"id": 1}`:                    "/id: id must be text",
		`{"rules": "user"}`:            "/rules: rules must be a list",
		`{"rules": [1]}`:               "/rules/0: rules must be names",
		`{"expires_at": 1}`:            "/expires_at: expires_at must be a timestamp",
		`{"expires_at": "2026-13-01"}`: "must be a timestamp",
		"{\"id\": \"\xff\"}":           "UTF-8",
		strings.Repeat(`{"match":`, 20) + `1` + strings.Repeat(`}`, 20): "deeper than",
	} {
		if _, err := policy.ParseOverride([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
}
