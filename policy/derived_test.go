// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
)

// lookUpFacts knows one address and one crawler.
func lookUpFacts(a policy.Attribute, from string) (string, bool) {
	switch {
	case a.String() == "ip:country" && from == "192.0.2.1":
		return "DE", true
	case a.String() == "ip:asn" && from == "192.0.2.1":
		return "64500", true
	case a.String() == "ip:tor":
		return map[bool]string{true: "true", false: "false"}[from == "192.0.2.9"], true
	case a.String() == "ua:bot":
		return map[bool]string{true: "true", false: "false"}[strings.Contains(from, "bot")], true
	}
	return "", false
}

// A rule reads facts that follow from other attributes in its match and in its key.
func TestFacts(t *testing.T) {
	const text = `{"rules": [
		{"name": "tor", "limit_keys": [], "match": {"ip:tor": true}, "algorithm_config": {"rps": 1, "burst": 5}},
		{"name": "country", "limit_keys": ["ip:country"], "group": "country", "algorithm_config": {"rps": 1, "burst": 5}},
		{"name": "net", "limit_keys": ["ip:asn"], "match": {"ip:asn": ["AS64500", 64501], "ip:country": "de"}, "algorithm_config": {"rps": 1, "burst": 5}},
		{"name": "people", "limit_keys": ["ip:address"], "match": {"ua:bot": {"not": true}}, "algorithm_config": {"rps": 1, "burst": 5}}
	]}`
	known := policy.Facts{Find: lookUpFacts}
	for _, tc := range []struct {
		name    string
		facts   policy.Facts
		request policy.Map
		want    string
	}{
		{"address of the database", known, policy.Map{"ip:address": "192.0.2.1"}, "country:country=DE net:asn=64500 people:ip=192.0.2.1"},
		{"Tor exit", known, policy.Map{"ip:address": "192.0.2.9"}, "tor: people:ip=192.0.2.9"},
		{"address without an entry", known, policy.Map{"ip:address": "192.0.2.2"}, "people:ip=192.0.2.2"},
		{"mapped address", known, policy.Map{"ip:address": "::ffff:192.0.2.1"}, "country:country=DE net:asn=64500 people:ip=192.0.2.1"},
		{"invalid address", known, policy.Map{"ip:address": "192.0.2"}, ""},
		{"no address", known, nil, ""},
		{"crawler", known, policy.Map{"ip:address": "192.0.2.2", "header:user-agent": "examplebot/1"}, ""},
		{"browser", known, policy.Map{"ip:address": "192.0.2.2", "header:user-agent": "Firefox"}, "people:ip=192.0.2.2"},
		{"the request's own facts win", known, policy.Map{"ip:address": "192.0.2.1", "ip:country": "FR"}, "country:country=FR people:ip=192.0.2.1"},
		{"without a source", policy.Facts{}, policy.Map{"ip:address": "192.0.2.1"}, "people:ip=192.0.2.1"},
	} {
		m, err := policy.Load([]byte(text), policy.Options{Facts: tc.facts})
		if err != nil {
			t.Fatal(err)
		}
		later, err := m.WithOverrides(nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*policy.Matcher{m, later, m.WithHashKey([]byte("key"))} {
			found, _ := m.Match(nil, tc.request, 0, 0)
			explained := m.Explain(tc.request, 0, 0).Matches
			if got := joinKeys(found); got != tc.want || joinKeys(explained) != got {
				t.Errorf("%s: matches %q, explained as %q; want %q", tc.name, got, joinKeys(explained), tc.want)
			}
		}
	}
}

func joinKeys(matches []policy.Match) string {
	var keys []string
	for _, m := range matches {
		keys = append(keys, m.Key)
	}
	return strings.Join(keys, " ")
}

// A rule that reads a fact also reads the attribute that the fact follows from. Adapters reject requests in which
// that attribute is ambiguous.
func TestFacts_EnforceTheirOrigin(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "bots", "limit_keys": [], "match": {"ua:bot": true}, "algorithm_config": {"rps": 1, "burst": 5}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := policy.ParseAttribute("header:user-agent")
	if err != nil {
		t.Fatal(err)
	}
	if !m.Enforces(agent, 0) || !m.Uses(policy.SourceHeader) {
		t.Error("a policy with ua:bot does not read header:user-agent")
	}
}

func TestFacts_InvalidValues(t *testing.T) {
	for clause, want := range map[string]string{
		`"ip:country": "DEU"`:          "a country code of two letters",
		`"ip:country": "D1"`:           "a country code of two letters",
		`"ip:country": "D*"`:           "ip:country has no prefixes",
		`"ip:asn": "AS"`:               "the number of an autonomous system",
		`"ip:asn": 0`:                  "the number of an autonomous system",
		`"ip:asn": "064500"`:           "the number of an autonomous system",
		`"ip:asn": 4294967296`:         "the number of an autonomous system",
		`"ip:tor": "yes"`:              "ip:tor is either true or false",
		`"ua:bot": {"not": "maybe"}`:   "ua:bot is either true or false",
		`"ua:bot": ["true", "false*"]`: "ua:bot has no prefixes",
	} {
		text := `{"rules": [{"name": "r", "limit_keys": [], "match": {` + clause + `}, "algorithm_config": {"rps": 1, "burst": 5}}]}`
		if got := mistakesIn([]byte(text)); len(got) != 1 || !strings.Contains(got[0].Reason, want) || !strings.HasPrefix(got[0].Path, "/rules/0/match/") {
			t.Errorf("%s: %v, want one error with %q", clause, got, want)
		}
	}
}

// A fact without data is an error where a policy or an override reads it.
func TestFacts_WithoutData(t *testing.T) {
	opts := policy.Options{Facts: policy.Facts{Find: lookUpFacts, Check: func(a policy.Attribute) error {
		if a.Source == policy.SourceNetwork {
			return errors.New("set geoip")
		}
		return nil
	}}}
	_, err := policy.Load([]byte(`{"rules": [
		{"name": "key", "limit_keys": ["ip:country"], "algorithm_config": {"rps": 1, "burst": 5}},
		{"name": "match", "limit_keys": [], "match": {"ip:tor": true, "ua:bot": true}, "algorithm_config": {"rps": 1, "burst": 5}},
		{"name": "cost", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 5, "cost_source": "attribute:ip:asn"}}
	]}`), opts)
	const want = "policy: /rules/0/limit_keys/0: ip:country has no data; set geoip\n" +
		"policy: /rules/1/match/ip:tor: ip:tor has no data; set geoip\n" +
		"policy: /rules/2/algorithm_config/cost_source: ip:asn has no data; set geoip"
	if err == nil || err.Error() != want {
		t.Errorf("Load: %v\nwant %s", err, want)
	}
	m, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 5}}]}`), opts)
	if err != nil {
		t.Fatal(err)
	}
	override := policy.Override{ID: "o", Action: policy.ActionBlock, Match: []byte(`{"ip:country": "DE"}`), Reason: "r", Author: "a", ExpiresAt: time.Now().Add(time.Hour)}
	if _, err := m.WithOverrides([]policy.Override{override}, time.Now()); err == nil || !strings.Contains(err.Error(), "ip:country has no data; set geoip") {
		t.Errorf("WithOverrides: %v, want an error", err)
	}
}
