// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/storetest"
)

// Overrides in a file that block for an hour, allow, and replace a limit.
const overridden = `{"rules": [{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/10s", "burst": 3}}],
	"overrides": [
	{"id": "b", "action": "block", "match": {"header:x-user": "bad"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T01:00:00Z"},
	{"id": "a", "action": "allow", "match": {"header:x-user": "vip"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T01:00:00Z"},
	{"id": "l", "action": "limit", "rules": ["user"], "match": {"header:x-user": "big"}, "algorithm_config": {"rate": "1/10s", "burst": 5},
	 "reason": "r", "author": "a", "expires_at": "2100-01-01T01:00:00Z"}]}`

func user(name string) mete.Request {
	return mete.Request{Attributes: mete.Attrs{"header:x-user": name}}
}

// Every method applies overrides and calls the hooks.
func TestOverrides(t *testing.T) {
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	logger, out := newLogger(slog.LevelDebug)
	var denied []string
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, overridden), mete.Config{
		Now: func() bucket.Instant { return bucket.At(now) }, OnDecision: mete.LogDecisions(logger),
		OnDenial: func(_ context.Context, d *mete.Denial) { denied = append(denied, d.Reason) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(context.Context, mete.Request) (mete.Decision, error){
		"take": l.Take, "peek": l.Peek, "take up to": l.TakeUpTo, "charge": l.Charge,
	} {
		d, err := ask(t.Context(), user("bad"))
		if err != nil || d.Allowed || d.Reason != mete.ReasonBlocked || d.RetryAfter != time.Hour || d.Override == nil || d.Override.ID != "b" || d.Decider() != nil {
			t.Errorf("%s of who is blocked: %+v, %v; want blocked by b for an hour", name, d, err)
		}
		d, err = ask(t.Context(), user("vip"))
		if err != nil || !d.Allowed || d.Override == nil || d.Override.ID != "a" || len(d.Limits()) != 0 {
			t.Errorf("%s of who passes: %+v, %v; want allowed by a, under no limit", name, d, err)
		}
	}
	if _, err := l.Wait(t.Context(), user("bad")); !errors.Is(err, mete.ErrRefused) {
		t.Errorf("Wait of who is blocked: %v, want %v", err, mete.ErrRefused)
	}
	if _, err := l.Wait(t.Context(), user("vip")); err != nil {
		t.Errorf("Wait of who passes: %v", err)
	}
	if r, err := l.Reserve(t.Context(), user("bad")); err != nil || r.Allowed || r.Reason != mete.ReasonBlocked {
		t.Errorf("Reserve of who is blocked: %+v, %v", r, err)
	}
	d, err := l.Take(t.Context(), user("big"))
	if err != nil || d.Override != nil || len(d.Limits()) != 1 || d.Limits()[0].Limit.Override == nil || d.Limits()[0].Limit.Override.ID != "l" || d.Limits()[0].Room() != 4*bucket.Token {
		t.Errorf("take of who has another limit: %+v, %v; want 4 of 5 left", d, err)
	}
	if len(denied) != 5 {
		t.Errorf("denials %q, want 5: a peek is none", denied)
	}
	out.Reset()
	l.Take(t.Context(), user("bad"))
	l.Take(t.Context(), user("vip"))
	want := `level=INFO msg="request denied" allowed=false reason=blocked override=b retry_after=1h0m0s
level=DEBUG msg="request allowed" allowed=true override=a
`
	if out.String() != want {
		t.Errorf("logged:\n%swant:\n%s", out, want)
	}

	now = now.Add(time.Hour)
	if d, err := l.Take(t.Context(), user("bad")); err != nil || !d.Allowed || d.Override != nil {
		t.Errorf("an hour later: %+v, %v; want allowed", d, err)
	}
}
