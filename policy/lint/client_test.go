// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

// Checks of attributes that clients can choose, spell differently, or wait for too long.
func TestLint_Clients(t *testing.T) {
	const (
		strict = `"algorithm_config": {"rps": 10, "burst": 20}`
		loose  = `"algorithm_config": {"rps": 1000, "burst": 2000}`
		user   = `"limit_keys": ["jwt:sub"]`
		key    = `"limit_keys": ["header:authorization"], "on_missing": "deny"`
		until  = `"reason": "r", "author": "a", "expires_at": "2026-04-01T00:00:00Z"`
	)
	all := `{"name": "all", "limit_keys": ["ip:address"], ` + loose + `}`
	for name, tc := range map[string]struct {
		rules string
		want  string // "code: part of the reason"; empty for none
	}{
		"a stricter rule on paths behind one on methods": {`{"name": "reads", ` + user + `, "match": {"method": ["GET", "HEAD"]}, ` + loose + `}, {"name": "api", ` + user + `, "match": {"path": "/api/*"}, ` + strict + `}`,
			`hidden-tier: rule "reads" takes some requests of the stricter rule "api", for example method=GET jwt:sub=x path=/api/`},
		"behind a plan":           {`{"name": "pro", ` + user + `, "match": {"jwt:plan": "pro"}, ` + loose + `}, {"name": "export", ` + user + `, "match": {"path": "/export/*"}, ` + strict + `}`, `hidden-tier: rule "pro" takes`},
		"the stricter first":      {`{"name": "api", ` + user + `, "match": {"path": "/api/*"}, ` + strict + `}, {"name": "reads", ` + user + `, "match": {"method": ["GET", "HEAD"]}, ` + loose + `}`, ""},
		"in groups of their own":  {`{"name": "reads", "group": "r", ` + user + `, "match": {"method": ["GET", "HEAD"]}, ` + loose + `}, {"name": "api", "group": "a", ` + user + `, "match": {"path": "/api/*"}, ` + strict + `}`, ""},
		"a narrower tier first":   {`{"name": "search", ` + user + `, "match": {"path": "/api/search*"}, ` + loose + `}, {"name": "api", ` + user + `, "match": {"path": "/api/*"}, ` + strict + `}`, ""},
		"apart":                   {`{"name": "reads", ` + user + `, "match": {"method": ["GET", "HEAD"]}, ` + loose + `}, {"name": "writes", ` + user + `, "match": {"method": "POST"}, ` + strict + `}`, ""},
		"the broader in shadow":   {`{"name": "reads", ` + user + `, "mode": "shadow", "match": {"method": ["GET", "HEAD"]}, ` + loose + `}, {"name": "api", ` + user + `, "match": {"path": "/api/*"}, ` + strict + `}`, ""},
		"tiers by verified plans": {`{"name": "pro", ` + user + `, "match": {"jwt:plan": "pro"}, ` + loose + `}, {"name": "free", ` + user + `, ` + strict + `}`, ""},

		"a plan in a header": {`{"name": "pro", ` + user + `, "match": {"header:x-plan": "pro"}, ` + loose + `}, {"name": "free", ` + user + `, ` + strict + `}`,
			`client-tier: clients can send header:x-plan and choose rule "pro" with it, which allows more than "free"`},
		"a stricter tier by a header": {`{"name": "bots", ` + user + `, "match": {"header:x-bot": "1"}, ` + strict + `}, {"name": "free", ` + user + `, ` + loose + `}`, ""},
		"a header and an address":     {`{"name": "pro", ` + user + `, "match": {"header:x-plan": "pro", "ip:address": "10.0.0.0/8"}, ` + loose + `}, {"name": "free", ` + user + `, ` + strict + `}`, ""},

		"a token as the only key":          {`{"name": "r", ` + key + `, ` + strict + `}`, `unverified-key: mete does not verify header:authorization`},
		"a token, and addresses beside it": {`{"name": "r", ` + key + `, ` + strict + `}, ` + all, ""},
		"a token, and addresses for those without": {`{"name": "r", "limit_keys": ["header:x-api-key"], ` + strict + `}, {"name": "anonymous", "limit_keys": ["ip:address"], "match": {"header:x-api-key": {"not": "*"}}, ` + strict + `}`,
			`unverified-key: mete does not verify header:x-api-key`},
		"a token and an address":  {`{"name": "r", "limit_keys": ["header:x-api-key", "ip:address"], "on_missing": "deny", ` + strict + `}`, ""},
		"tokens by name":          {`{"name": "r", "limit_keys": ["header:x-api-key"], "on_missing": "deny", "match": {"header:x-api-key": ["k1", "k2"]}, ` + strict + `}`, ""},
		"a token that is checked": {`{"name": "r", ` + key + `, "match": {"jwt:sub": "*"}, ` + strict + `}`, ""},
		"a customer":              {`{"name": "r", "limit_keys": ["header:x-customer"], "on_missing": "deny", ` + strict + `}`, ""},

		"a queue of 100 minutes":   {`{"name": "r", ` + user + `, "algorithm": "leaky_bucket", "algorithm_config": {"rate": "1/1m", "queue": 100}}`, `long-queue: the last request in the queue of limit "r" waits for 100m`},
		"a queue of half a minute": {`{"name": "r", ` + user + `, "algorithm": "leaky_bucket", "algorithm_config": {"rps": 1, "queue": 30}}`, ""},

		"a penalty of an hour":       {`{"name": "r", ` + user + `, "penalty": "1h", "algorithm_config": {"rate": "1/1m", "burst": 5}}`, ""},
		"a penalty below the refill": {`{"name": "r", ` + user + `, "penalty": {"first": "1s", "factor": 2, "most": "1h"}, "algorithm_config": {"rate": "1/1m", "burst": 5}}`, `short-penalty: the penalty of limit "r" can last 1s, but a client can wait 1m for a token`},
		"a penalty below the window": {`{"name": "r", ` + user + `, "algorithm": "sliding_log", "algorithm_config": {"tokens": 5, "window": "15m", "penalty": "10m"}}`, `short-penalty: the penalty of limit "r" can last 10m`},
		"a penalty of two days":      {`{"name": "r", ` + user + `, "penalty": "2d", "algorithm_config": {"rps": 1, "burst": 5}}`, `long-penalty: the penalty of limit "r" can last 2d`},

		"nothing to take at once": {`{"name": "r", ` + user + `, "algorithm_config": {"rps": 1, "burst": 0, "max_reserved": 5}}`, `reservations-only: limit "r" has a burst of 0`},

		"GET alone":                    {`{"name": "r", ` + user + `, "match": {"method": "GET"}, ` + strict + `}`, `head-bypass: rule "r" matches GET but not HEAD`},
		"GET alone, beside a cap":      {`{"name": "r", ` + user + `, "match": {"method": "GET"}, ` + strict + `}, ` + all, `head-bypass: rule "r"`},
		"GET alone, HEAD elsewhere":    {`{"name": "r", ` + user + `, "match": {"method": "GET"}, ` + strict + `}, {"name": "h", ` + user + `, "match": {"method": "HEAD"}, ` + strict + `}`, ""},
		"all but HEAD":                 {`{"name": "r", ` + user + `, "match": {"method": {"not": "HEAD"}}, ` + strict + `}`, ""},
		"GET alone, in a selector":     {`{"selector": {"methods": ["GET", "POST"]}, "rules": [{"name": "r", ` + user + `, ` + strict + `}, {"name": "s", "limit_keys": [], ` + loose + `}]}`, `head-bypass: rule "r"`},
		"a login":                      {`{"name": "r", ` + user + `, "match": {"path": "/login"}, ` + strict + `}, ` + all, `slash-bypass: rule "r" matches /login but not /login/`},
		"a login with a slash":         {`{"name": "r", ` + user + `, "match": {"path": "/login/"}, ` + strict + `}`, `slash-bypass: rule "r" matches /login/ but not /login`},
		"both logins":                  {`{"name": "r", ` + user + `, "match": {"path": ["/login", "/login/"]}, ` + strict + `}`, ""},
		"all that begins like a login": {`{"name": "r", ` + user + `, "match": {"path": "/login*"}, ` + strict + `}`, ""},
		"a file":                       {`{"name": "r", ` + user + `, "match": {"path": ["/robots.txt", "/"]}, ` + strict + `}`, ""},
		"all but a path":               {`{"name": "r", ` + user + `, "match": {"path": {"not": "/health"}}, ` + strict + `}`, ""},
		"a login in shadow":            {`{"name": "r", "mode": "shadow", ` + user + `, "match": {"path": "/login"}, ` + strict + `}`, ""},

		"no limit for a header": {`{"rules": [` + all + `], "overrides": [{"id": "o", "action": "allow", "match": {"header:x-internal": "yes"}, ` + until + `}]}`,
			"client-allow: any client that sends header:x-internal has no limit"},
		"no limit for a header on a path": {`{"rules": [` + all + `], "overrides": [{"id": "o", "action": "allow", "match": {"header:x-internal": "yes", "path": "/x"}, ` + until + `}]}`, "client-allow"},
		"no limit for a secret":           {`{"rules": [` + all + `], "overrides": [{"id": "o", "action": "allow", "match": {"header:x-api-key": "k1"}, ` + until + `}]}`, ""},
		"no limit for an address":         {`{"rules": [` + all + `], "overrides": [{"id": "o", "action": "allow", "match": {"header:x-internal": "yes", "ip:address": "10.0.0.0/8"}, ` + until + `}]}`, ""},
		"no limit for a path":             {`{"rules": [` + all + `], "overrides": [{"id": "o", "action": "allow", "match": {"path": "/health"}, ` + until + `}]}`, ""},
		"a block of a header":             {`{"rules": [` + all + `], "overrides": [{"id": "o", "action": "block", "match": {"header:x-internal": "yes"}, ` + until + `}]}`, ""},
	} {
		text := tc.rules
		if !strings.Contains(text, `"rules"`) {
			text = `{"rules": [` + text + `]}`
		}
		m, err := policy.Load([]byte(text), policy.Options{Now: lintNow})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := slices.DeleteFunc(lint.Check(m, lintNow), func(w policy.Warning) bool { return w.Code == "missing-bypass" })
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].Code+": "+got[0].Reason, tc.want)) {
			t.Errorf("%s: warnings\n%v\nwant\n%v", name, got, tc.want)
		}
	}
}

// The hint for a cap on all requests does not remove the cap. In one group with the others, it would count only
// the remaining requests.
func TestLint_HintAtACap(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "pro", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "pro"}, "algorithm_config": {"rps": 1000, "burst": 2000}},
		{"name": "cap", "limit_keys": [], "algorithm_config": {"rps": 100, "burst": 200}}]}`), policy.Options{Now: lintNow})
	if err != nil {
		t.Fatal(err)
	}
	if got := lint.Check(m, lintNow); len(got) != 1 || got[0].Code != "catch-all-tier" || strings.Contains(got[0].Hint, "group") || !strings.Contains(got[0].Hint, "raise it") {
		t.Errorf("warnings %v, want a catch-all-tier with a hint that keeps the cap", got)
	}
}
