// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
)

func TestNamesClients(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "all", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "route", "limit_keys": ["path", "tenant"], "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "plan", "limit_keys": ["header:x-plan", "ip:address"], "match": {"path": "/p"}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "agent", "limit_keys": ["header:accept", "header:user"], "match": {"path": "/a"}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "page", "limit_keys": ["path"], "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "far", "limit_keys": ["ip:address/24"], "match": {"path": "/far"}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "ip", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for match, want := range map[string]bool{
		`{"header:x-api-key":"k1"}`:                              true,
		`{"header:x-api-key":["k1","k2"]}`:                       true,
		`{"tenant":"acme","path":"/*"}`:                          true,
		`{"ip:address":"192.0.2.1"}`:                             true,
		`{"ip:address":["10.1.0.0/17","10.1.128.0/17"]}`:         true,
		`{"ip:address":"2001:db8::/32"}`:                         true,
		`{"ip:address":"2001:db8::1"}`:                           true,
		`{"jwt:sub":"kim"}`:                                      true,
		`{"header:x-api-key":"k1","method":{"not":"GET"}}`:       true,
		`{"ip:address":["10.1.0.0/16","192.0.2.1"]}`:             false,
		`{"ip:address":"10.0.0.0/15"}`:                           false,
		`{"ip:address":"0.0.0.0/0"}`:                             false,
		`{"ip:address":["0.0.0.0/1","128.0.0.0/1"]}`:             false,
		`{"ip:address":"2001:db8::/31"}`:                         false,
		`{"ip:address":["2001:db8::/32","2001:db9::/32"]}`:       false,
		`{"ip:address":"::/0"}`:                                  false,
		`{"ip:address":["::/1","8000::/1"]}`:                     false,
		`{"ip:address":"*"}`:                                     false,
		`{"ip:address":{"not":"192.0.2.1"}}`:                     false,
		`{"header:x-api-key":{"not":"k1"}}`:                      false,
		`{"header:x-api-key":"*"}`:                               false,
		`{"header:x-api-key":"k*"}`:                              false,
		`{"header:x-api-key":["k1","k*"]}`:                       false,
		`{"header:x-api-key":""}`:                                false,
		`{"header:x-nobody":{"not":"x"}}`:                        false,
		`{"header:user-agent":"curl/8"}`:                         false, // which is no limit key
		`{"jwt:iss":"https://id.example"}`:                       false,
		`{"header:x-plan":"free"}`:                               false, // one limit key of two
		`{"header:accept":"a","header:x-plan":["free","pro"]}`:   false,
		`{"header:accept":"text/html"}`:                          false,
		`{"header:accept":"text/html","header:user":"kim"}`:      true,
		`{"header:x-plan":"free","ip:address":"192.0.2.1"}`:      true,
		`{"method":"GET"}`:                                       false,
		`{"path":"/v1/x"}`:                                       false, // a limit key, and yet shared
		`{"host":"example.com","path":"/*","method":"*"}`:        false,
		`{"header:x-api-key":{"not":"k1"},"ip:address":"::/16"}`: false,
	} {
		for _, action := range []policy.Action{policy.ActionBlock, policy.ActionAllow} {
			wantNames(t, m, policy.Override{Action: action, Match: json.RawMessage(match)}, want)
		}
		wantNames(t, m, policy.Override{Action: policy.ActionAllow, Match: json.RawMessage(match), Rules: []string{"free", "all"}}, want)
	}
	for key, want := range map[string]bool{
		"free:x-api-key=~_F9FYculp30hRZvEw8dtSw": true,
		"route:path=/a|tenant=acme":              true,
		"ip:ip=192.0.2.1":                        true,
		"ip:ip=2001:db8::/64":                    true,
		"plan:x-plan=free|ip=192.0.2.1":          true,
		"agent:accept=text|user=kim":             true,
		"agent:accept=text|user=":                false,
		"free:x-api-key=":                        false, // of all clients without a key
		"route:path=/a|tenant=":                  false,
		"page:path=/a":                           false,
		"all:":                                   false,
	} {
		wantNames(t, m, policy.Override{Action: policy.ActionBlock, Key: key}, want)
	}
	burst := func(o policy.Override) policy.Override {
		o.Action, o.Algorithm, o.Config = policy.ActionLimit, "token_bucket", json.RawMessage(`{"rps": 9, "burst": 9}`)
		return o
	}
	wantNames(t, m, burst(policy.Override{Rules: []string{"free"}, Match: json.RawMessage(`{"header:x-api-key":"k1"}`)}), true)
	wantNames(t, m, burst(policy.Override{Rules: []string{"free"}, Match: json.RawMessage(`{}`)}), false)
	wantNames(t, m, burst(policy.Override{Rules: []string{"all"}}), false)
	wantNames(t, m, burst(policy.Override{Key: "all:"}), false)
	wantNames(t, m, policy.Override{Action: policy.ActionBreakGlass}, false)
	wantNames(t, m, policy.Override{Action: policy.ActionShadow}, false)
}

func wantNames(t *testing.T, m *policy.Matcher, o policy.Override, want bool) {
	t.Helper()
	o.Reason, o.Author, o.ExpiresAt = "r", "kim", time.Now().Add(time.Hour)
	got, err := m.NamesClients(o)
	if err != nil || got != want {
		t.Errorf("%s of %s%s names clients: %v, %v, want %v", o.Action, o.Match, o.Key, got, err, want)
	}
}

func TestNamesClients_ReportsMistakes(t *testing.T) {
	m, err := policy.Load([]byte(`{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 1, "burst": 1}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range []string{`{"heder:x":"k1"}`, `{"ip:address":"192.0.2.0/33"}`, `{"ip:address":"::ffff:0.0.0.0/96"}`, `[]`} {
		o := policy.Override{Action: policy.ActionBlock, Match: json.RawMessage(match), Reason: "r", Author: "kim", ExpiresAt: time.Now().Add(time.Hour)}
		if ok, err := m.NamesClients(o); err == nil || ok {
			t.Errorf("%s: %v, %v, want an error", match, ok, err)
		}
	}
}
