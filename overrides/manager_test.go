// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

func TestPut_EveryAction(t *testing.T) {
	c := newClock()
	n := newNode(t, c, nil, rules)
	n.put(block("b", "bad"))
	if d := n.take("bad"); d.Allowed || d.Reason != mete.ReasonBlocked || d.RetryAfter != time.Hour || d.Override == nil || d.Override.ID != "b" {
		t.Errorf("blocked: %+v, want a denial for an hour", d)
	}
	n.put(policy.Override{ID: "a", Action: policy.ActionAllow, Match: of("vip")})
	n.wantTakes("allow", "vip", true, true, true, true)
	n.put(raise("l", "big"))
	n.wantTakes("limit", "big", true, true, true, true, false)
	n.wantTakes("none", "plain", true, true, false)
	n.put(policy.Override{ID: "s", Action: policy.ActionShadow})
	n.wantTakes("shadow", "plain", true, true)
	n.wantTakes("shadow", "bad", true)
	n.put(policy.Override{ID: "g", Action: policy.ActionBreakGlass})
	if d := n.take("bad"); !d.Allowed || d.Override == nil || d.Override.ID != "g" || len(d.Limits()) > 0 {
		t.Errorf("break glass: %+v, want that nothing is limited", d)
	}
	want := map[policy.Action]int{policy.ActionBlock: 1, policy.ActionAllow: 1, policy.ActionLimit: 1, policy.ActionShadow: 1, policy.ActionBreakGlass: 1}
	if got := n.CountActive(); !maps.Equal(got, want) {
		t.Errorf("in force: %v, want %v", got, want)
	}
	for _, id := range []string{"g", "s"} {
		if err := n.Remove(t.Context(), id, "kim", "over"); err != nil {
			t.Errorf("Remove(%s): %v", id, err)
		}
	}
	n.wantTakes("after all", "bad", false)
	n.wantTakes("after all", "plain", false)
}

// An override holds until the microsecond at which it expires.
func TestPut_Expires(t *testing.T) {
	c := newClock()
	n := newNode(t, c, nil, rules)
	o := block("b", "k")
	o.ExpiresAt = c.now().Add(time.Minute)
	n.put(o)
	c.advance(time.Minute - time.Microsecond)
	if d := n.take("k"); d.Allowed || d.RetryAfter != time.Microsecond {
		t.Errorf("a microsecond before: %+v, want blocked for that", d)
	}
	c.advance(time.Microsecond)
	n.wantTakes("then", "k", true)
	if got := n.states()["b"]; got != overrides.StateExpired {
		t.Errorf("state %q, want %q", got, overrides.StateExpired)
	}
}

func TestPut_Replaces(t *testing.T) {
	c := newClock()
	n := newNode(t, c, nil, rules)
	first := n.put(block("x", "k1"))
	c.advance(time.Second)
	second := n.put(block("x", "k2"))
	n.wantTakes("replaced", "k1", true)
	n.wantTakes("replaced", "k2", false)
	if len(n.List()) != 1 || !second.CreatedAt.Equal(first.CreatedAt.Add(time.Second)) {
		t.Errorf("listed %d, created at %v and %v; want 1, a second later", len(n.List()), first.CreatedAt, second.CreatedAt)
	}
	audit := n.Audit()
	if len(audit) != 2 || audit[0].Before != nil || audit[1].Before == nil || string(audit[1].Before.Match) != string(of("k1")) || string(audit[1].After.Match) != string(of("k2")) {
		t.Errorf("audit %+v, want what was there before and after", audit)
	}
}

func TestPut_MakesIDs(t *testing.T) {
	n := newNode(t, newClock(), nil, rules)
	a, b := n.put(block("", "k1")), n.put(block("", "k2"))
	if a.ID == b.ID || !strings.HasPrefix(a.ID, "block-") || len(n.List()) != 2 {
		t.Errorf("IDs %q and %q, want two that say block", a.ID, b.ID)
	}
}

func TestPut_BadInput(t *testing.T) {
	c := newClock()
	n := newNode(t, c, nil, `{"overrides": [{"id": "filed", "action": "block", "match": {"path": "/x"}, "reason": "r", "author": "a",
		"expires_at": "2099-01-01T00:00:00Z"}], `+rules[1:])
	n.put(block("there", "k"))
	later := c.now().Add(time.Hour)
	for _, tt := range []struct {
		name  string
		o     policy.Override
		paths []string
	}{
		{"nothing", policy.Override{}, []string{"/action", "/reason", "/author", "/expires_at"}},
		{"expired", policy.Override{ID: "x", Action: policy.ActionBlock, Match: of("k"), Reason: "r", Author: "a", ExpiresAt: c.now()}, []string{"/expires_at"}},
		{"no such rule", policy.Override{ID: "x", Action: policy.ActionAllow, Rules: []string{"fre"}, Match: of("k"), Reason: "r", Author: "a", ExpiresAt: later}, []string{"/rules/0"}},
		{"not JSON", policy.Override{ID: "x", Action: policy.ActionAllow, Match: []byte(`{`), Reason: "r", Author: "a", ExpiresAt: later}, []string{""}},
		{"in the file", policy.Override{ID: "filed", Action: policy.ActionBlock, Match: of("k"), Reason: "r", Author: "a", ExpiresAt: later}, []string{"/id"}},
		{"all requests", policy.Override{ID: "x", Action: policy.ActionBlock, Reason: "r", Author: "a", ExpiresAt: later}, []string{""}},
		{"lines", policy.Override{ID: "x\n", Action: policy.ActionBlock, Match: of("k"), Reason: "r\nr", Author: "a\x00", ExpiresAt: later}, []string{"/id", "/reason", "/author"}},
		{"long", policy.Override{ID: "x", Action: policy.ActionBlock, Match: of("k"), Reason: strings.Repeat("r", 257), Author: strings.Repeat("a", 129), ExpiresAt: later}, []string{"/reason", "/author"}},
	} {
		_, err := n.Put(t.Context(), tt.o)
		mistakes, ok := errors.AsType[policy.Errors](err)
		paths := map[string]bool{}
		for _, m := range mistakes {
			paths[m.Path] = true
		}
		for _, p := range tt.paths {
			if !paths[p] {
				ok = false
			}
		}
		if !ok {
			t.Errorf("%s: %v, want mistakes at %q", tt.name, err, tt.paths)
		}
	}
	if got := len(n.List()); got != 2 || len(n.Audit()) != 1 {
		t.Errorf("after mistakes %d overrides and %d entries, want 2 and 1", got, len(n.Audit()))
	}
}

func TestRemove_BadInput(t *testing.T) {
	n := newNode(t, newClock(), nil, `{"overrides": [{"id": "filed", "action": "block", "match": {"path": "/x"}, "reason": "r", "author": "a",
		"expires_at": "2099-01-01T00:00:00Z"}], `+rules[1:])
	if err := n.Remove(t.Context(), "none", "a", "r"); !errors.Is(err, overrides.ErrNotFound) {
		t.Errorf("one that is not there: %v, want %v", err, overrides.ErrNotFound)
	}
	if err := n.Remove(t.Context(), "filed", "a", "r"); !errors.Is(err, overrides.ErrInFile) {
		t.Errorf("one of the file: %v, want %v", err, overrides.ErrInFile)
	}
	for _, tt := range [][2]string{{"", "r"}, {"a", " "}, {"a\n", "r"}, {strings.Repeat("a", 129), "r"}, {"a", strings.Repeat("r", 257)}, {"a", "\xff"}} {
		if err := n.Remove(t.Context(), "none", tt[0], tt[1]); !isMistakes(err) {
			t.Errorf("author %.10q, reason %.10q: %v, want a mistake", tt[0], tt[1], err)
		}
	}
}

func isMistakes(err error) bool {
	_, ok := errors.AsType[policy.Errors](err)
	return ok
}

// A reload keeps existing overrides, and none of them makes it fail.
func TestBase_KeepsOverrides(t *testing.T) {
	n := newNode(t, newClock(), nil, rules)
	n.put(block("b", "bad"))
	n.put(raise("l", "big"))
	renamed := strings.ReplaceAll(rules, `"free"`, `"gratis"`)
	if err := n.SetBase(load(t, renamed)); err != nil {
		t.Fatal(err)
	}
	if got := n.states(); got["b"] != overrides.StateActive || got["l"] != overrides.StateUnfit {
		t.Errorf("states %v, want that the block holds, and the limit does not fit", got)
	}
	for _, s := range n.List() {
		if s.ID == "l" && (len(s.Mistakes) != 1 || s.Mistakes[0].Path != "/rules/0") {
			t.Errorf("what does not fit: %v, want /rules/0", s.Mistakes)
		}
	}
	n.wantTakes("renamed", "bad", false)
	n.wantTakes("renamed", "big", true, true, false)
	n.put(block("c", "worse"))
	if err := n.SetBase(load(t, rules)); err != nil {
		t.Fatal(err)
	}
	if got := n.states(); got["b"] != overrides.StateActive || got["l"] != overrides.StateActive || got["c"] != overrides.StateActive {
		t.Errorf("states %v, want that all hold again", got)
	}
	n.wantTakes("as before", "big", true, true, true, true, false)
	n.wantTakes("as before", "worse", false)
	for text, want := range map[string]int{"does not fit the policy": 1, "override active again": 1} {
		if got := strings.Count(n.log.String(), text); got != want {
			t.Errorf("the log says %q %d times, want %d:\n%s", text, got, want, n.log)
		}
	}
}

// The new policy brings an override with the ID of one that is there, or so many that
// some have no place.
func TestBase_FileTakesThePlace(t *testing.T) {
	n := newNode(t, newClock(), nil, rules)
	n.put(block("b", "bad"))
	if err := n.SetBase(load(t, `{"overrides": [{"id": "b", "action": "block", "match": {"header:x-api-key": "other"}, "reason": "r", "author": "a",
		"expires_at": "2099-01-01T00:00:00Z"}], `+rules[1:])); err != nil {
		t.Fatal(err)
	}
	n.wantTakes("that of the file", "other", false)
	n.wantTakes("that of the file", "bad", true)
	if list := n.List(); len(list) != 2 || list[0].Source != overrides.SourceFile || list[1].State != overrides.StateUnfit {
		t.Errorf("listed %+v, want both, and that the second does not fit", list)
	}
}

func TestBase_Refused(t *testing.T) {
	n := newNode(t, newClock(), nil, rules)
	n.put(block("b", "bad"))
	before := n.limiter.Policy()
	local := strings.Replace(rules, `"name": "free"`, `"name": "free", "on_store_error": "local"`, 1)
	if err := n.SetBase(load(t, local)); err == nil || n.limiter.Policy() != before {
		t.Errorf("Base that the limiter refuses: %v, want an error and the old policy", err)
	}
	if err := n.SetBase(nil); err == nil {
		t.Error("Base(nil) is no error")
	}
	n.wantTakes("still", "bad", false)
}

func TestNew_BadInput(t *testing.T) {
	base, apply := load(t, rules), func(*policy.Matcher) error { return nil }
	for name, err := range map[string]error{
		"policy": second(overrides.New(nil, overrides.Config{Apply: apply})),
		"Apply":  second(overrides.New(base, overrides.Config{})),
		"poll":   second(overrides.New(base, overrides.Config{Apply: apply, Poll: -1})),
		"name":   second(overrides.New(base, overrides.Config{Apply: apply, Name: "a/b"})),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("New without a proper %s: %v", name, err)
		}
	}
}

func second(_ *overrides.Manager, err error) error { return err }

// Logs never contain a match or a key.
func TestLog_HasNoSecrets(t *testing.T) {
	n := newNode(t, newClock(), nil, rules)
	n.put(block("b", "secret"))
	n.put(raise("l", "secret"))
	n.put(policy.Override{ID: "k", Action: policy.ActionBlock, Key: "free:x-api-key=~secretsecretsecretAAAA"})
	if err := n.SetBase(load(t, strings.ReplaceAll(rules, `"free"`, `"gratis"`))); err != nil {
		t.Fatal(err)
	}
	if err := n.Remove(t.Context(), "b", "kim", "over"); err != nil {
		t.Fatal(err)
	}
	log := n.log.String()
	if strings.Contains(log, "secret") || !strings.Contains(log, "author=kim") || !strings.Contains(log, "reason=test") {
		t.Errorf("the log has secrets, or no author and reason:\n%s", log)
	}
}
