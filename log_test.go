// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/storetest"
)

func newLogger(level slog.Level) (*slog.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	return slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	})), &out
}

func TestLogDecisions(t *testing.T) {
	logger, out := newLogger(slog.LevelDebug)
	const rules = `{"rules": [
		{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/10s", "burst": 3}},
		{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rps": 1, "burst": 1}}]}`
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, rules), mete.Config{OnDecision: mete.LogDecisions(logger)})
	if err != nil {
		t.Fatal(err)
	}
	req := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}}
	for range 2 {
		l.Take(t.Context(), req)
	}
	l.Take(t.Context(), mete.Request{Attributes: req.Attributes, Cost: 2})
	l.Take(t.Context(), mete.Request{Attributes: req.Attributes, Cost: 20})
	l.Peek(t.Context(), req)
	want := `level=DEBUG msg="request allowed" allowed=true rule=user taken=1
level=INFO msg="request would be denied" allowed=true rule=user taken=1 shadow_rule=trial shadow_reason=token_bucket_exceeded
level=INFO msg="request denied" allowed=false rule=user reason=token_bucket_exceeded retry_after=10s
level=INFO msg="request denied" allowed=false rule=user reason=token_bucket_exceeded retry_after=never
`
	if out.String() != want {
		t.Errorf("logged:\n%swant:\n%s", out, want)
	}
}

func TestLogDecisions_NilIsTheDefault(t *testing.T) {
	logger, out := newLogger(slog.LevelDebug)
	before := slog.Default()
	slog.SetDefault(logger)
	defer slog.SetDefault(before)
	mete.LogDecisions(nil)(t.Context(), &mete.Decision{Allowed: true})
	if got, want := out.String(), "level=DEBUG msg=\"request allowed\" allowed=true\n"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestLogDecisions_Degraded(t *testing.T) {
	logger, out := newLogger(slog.LevelWarn)
	l, err := mete.New(brokenStore{errors.New("gone")}, nil, mete.Config{OnDecision: mete.LogDecisions(logger)})
	if err != nil {
		t.Fatal(err)
	}
	l.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "secret-key", Limit: limit(t, 1, "1/1s"), Cost: 1}}})
	if got, want := out.String(), "level=WARN msg=\"request decided without the store\" allowed=true taken=1 degraded=true failure=error error=gone\n"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// G12: logs contain no keys, regardless of how a decision is logged.
func TestDecision_LogsNoKeys(t *testing.T) {
	logger, out := newLogger(slog.LevelDebug)
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, nested), mete.Config{OnDecision: mete.LogDecisions(logger)})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		d, err := l.Take(t.Context(), mete.Request{
			Attributes: mete.Attrs{"header:x-user": "alice"},
			Charges:    []mete.Charge{{Key: "secret-key", Limit: limit(t, 2, "1/1s"), Cost: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("decided", "decision", d)
	}
	if text := out.String(); strings.Contains(text, "alice") || strings.Contains(text, "secret-key") {
		t.Errorf("a key was logged:\n%s", text)
	} else if !strings.Contains(text, "decision.allowed=true") {
		t.Errorf("a decision is not logged as a group:\n%s", text)
	}
}
