// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
)

// attrs are what a log may know of an override: matches and keys can hold secrets.
func attrs(o *policy.Override) []slog.Attr {
	a := []slog.Attr{slog.String("id", o.ID), slog.String("action", string(o.Action))}
	if len(o.Rules) > 0 {
		a = append(a, slog.String("rules", strings.Join(o.Rules, ",")))
	}
	return append(a, slog.Time("expires_at", o.ExpiresAt))
}

// logChanges logs what has been done to overrides since before. The caller holds mu.
func (m *Manager) logChanges(before, after document) {
	known := make(map[string]bool, len(before.Audit))
	for i := range before.Audit {
		known[before.Audit[i].ID] = true
	}
	for i := range after.Audit {
		// One of a kind that a later version has made need not have an override.
		if e := &after.Audit[i]; !known[e.ID] && (e.Before != nil || e.After != nil) {
			m.logEntry(e)
		}
	}
}

func (m *Manager) logEntry(e *Entry) {
	o := e.After
	if o == nil {
		o = e.Before
	}
	level := slog.LevelInfo
	if e.What == WhatMade && o.Action.Kind().Suspends {
		level = slog.LevelWarn // nothing is limited any more
	}
	a := append(attrs(o), slog.String("author", e.Author), slog.String("reason", e.Reason))
	m.config.Logger.LogAttrs(context.Background(), level, "override "+string(e.What), a...)
}

// logInForce logs what is in force when a process begins. The caller holds mu.
func (m *Manager) logInForce() {
	var ids []string
	now := m.now()
	for _, r := range m.document.Overrides {
		if m.status(r.Override, now).State == StateInForce {
			ids = append(ids, r.Override.ID)
		}
	}
	if len(ids) > 0 {
		m.config.Logger.Info("overrides active", "ids", strings.Join(ids, ","))
	}
}

// logFit logs which overrides do not fit the policy any more, and which do again.
// The caller holds mu, and m is as it was before.
func (m *Manager) logFit(d document, unfit map[string]policy.Errors) {
	for i := range d.Overrides {
		o := &d.Overrides[i].Override
		was, is := m.unfit[o.ID], unfit[o.ID]
		switch {
		case is != nil && was == nil:
			reasons := make([]string, len(is))
			for j, e := range is {
				reasons[j] = strings.TrimPrefix(e.Path+": "+e.Reason, ": ") // not its value
			}
			a := append(attrs(o), slog.String("err", strings.Join(reasons, "; ")))
			m.config.Logger.LogAttrs(context.Background(), slog.LevelWarn, "override does not fit the policy, not active", a...)
		case is == nil && was != nil && slices.ContainsFunc(d.live(m.now()), func(l policy.Override) bool { return l.ID == o.ID }):
			m.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "override fits the policy again, active", attrs(o)...)
		}
	}
}
