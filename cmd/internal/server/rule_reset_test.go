// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/policy"
)

// resetRule clears a rule as an administrator with the role configure.
func (r *running) resetRule(rule string) (cleared int64) {
	r.t.Helper()
	for from := ""; ; {
		body, err := json.Marshal(api.RuleChange{Rule: rule, Reason: "the limit was too low", From: from})
		if err != nil {
			r.t.Fatal(err)
		}
		status, text := r.as(ownerToken, "POST", "/v1/rules/reset", string(body))
		var done api.RuleReset
		if status != http.StatusOK || json.Unmarshal([]byte(text), &done) != nil {
			r.t.Fatalf("POST /v1/rules/reset %s: %d %s", body, status, text)
		}
		if cleared += done.Cleared; done.Next == "" {
			return cleared
		}
		from = done.Next
	}
}

// A rule that is reset at one server is reset at all that share its store: the others
// drop the denials that they remember.
func TestRuleReset_TwoServers(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		c := sharing(t, e)
		c.Policy = policyFile(t, burst("2"))
		a, b := start(t, c), start(t, c)
		clients := []string{"192.0.2.1", "192.0.2.2", "2001:db8:1:2::3"}
		for _, client := range clients {
			for range 2 {
				if status := a.take(client); status != http.StatusOK {
					t.Fatalf("%s: %d, want two tokens", client, status)
				}
			}
			for _, s := range []*running{a, b, a, b} {
				if status := s.take(client); status != http.StatusTooManyRequests {
					t.Fatalf("%s with an empty bucket: %d", client, status)
				}
			}
		}
		if cleared := a.resetRule("client"); cleared != int64(len(clients)) {
			t.Errorf("%d buckets were cleared, want %d", cleared, len(clients))
		}
		for _, client := range clients {
			if status := a.take(client); status != http.StatusOK {
				t.Errorf("%s after the reset, at the server that made it: %d", client, status)
			}
		}
		testkit.Until(t, "the other server reads of the reset", func() bool { return b.log.Count(`msg="rule reset" rule=client`) == 1 })
		for _, client := range clients {
			if status := b.take(client); status != http.StatusOK {
				t.Errorf("%s after the reset, at the other server: %d", client, status)
			}
		}
		if cleared := b.resetRule("client"); cleared != int64(len(clients)) {
			t.Errorf("the second reset cleared %d buckets, want %d", cleared, len(clients))
		}
		if cleared := b.resetRule("client"); cleared != 0 {
			t.Errorf("a reset of full buckets cleared %d", cleared)
		}
		testkit.Until(t, "the first server lists the resets", func() bool { return len(a.activity(readerToken)) == 3 })
		for _, act := range a.activity(readerToken) {
			if act.What != "rules/reset" || act.Rule != "client" || act.By != "deploy" || act.Role != "configure" || act.Reason != "the limit was too low" {
				t.Errorf("activity %+v", act)
			}
		}
		want := `what=rules/reset by=deploy role=configure from=127.0.0.1 status=200 rule=client reason="the limit was too low"`
		if !strings.Contains(a.log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, a.log.String())
		}
	})
}

// A rule of a store in memory is cleared; errors and other roles clear nothing.
func TestRuleReset_InMemory(t *testing.T) {
	t.Parallel()
	c := withTokens()
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	s.take("192.0.2.1")
	if cleared := s.resetRule("client"); cleared != 1 {
		t.Errorf("%d buckets were cleared, want 1", cleared)
	}
	if status := s.take("192.0.2.1"); status != http.StatusOK {
		t.Errorf("after the reset: %d", status)
	}
	for _, test := range []struct {
		token, body string
		status      int
		detail      string
	}{
		{ownerToken, `{"rule":"clint","reason":"r"}`, 404, "did you mean client?"},
		{ownerToken, `{"rule":"client"}`, 400, "the reason is missing"},
		{ownerToken, `{"reason":"r"}`, 400, "the rule is missing"},
		{ownerToken, `{"rule":"` + strings.Repeat("x", policy.MaxNameBytes+1) + `","reason":"r"}`, 400, "the rule name is too long"},
		{ownerToken, `{"rule":"client","reason":"r","from":"x"}`, 400, "from is not the next"},
		{operatorToken, `{"rule":"client","reason":"r"}`, 403, "the role configure"},
	} {
		if status, text := s.as(test.token, "POST", "/v1/rules/reset", test.body); status != test.status || !strings.Contains(text, test.detail) {
			t.Errorf("%s: %d %s, want %d and %q", test.body, status, text, test.status, test.detail)
		}
	}
	if list := s.activity(readerToken); !slices.ContainsFunc(list, func(x api.Activity) bool { return x.Rule == "client" && x.Status == http.StatusOK }) {
		t.Errorf("activity %+v", list)
	}
}
