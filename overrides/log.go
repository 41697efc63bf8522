// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
)

// logAttrs returns the log attributes of an override. Its match and key can contain secrets.
func logAttrs(o *policy.Override) []slog.Attr {
	a := []slog.Attr{slog.String("id", o.ID), slog.String("action", string(o.Action))}
	if len(o.Rules) > 0 {
		a = append(a, slog.String("rules", strings.Join(o.Rules, ",")))
	}
	return append(a, slog.Time("expires_at", o.ExpiresAt))
}

// logChanges logs the changes of overrides between before and after. The caller holds mu.
func (m *Manager) logChanges(before, after document) {
	known := make(map[string]bool, len(before.Audit))
	for i := range before.Audit {
		known[before.Audit[i].ID] = true
	}
	for i := range after.Audit {
		// Kinds of entries that later versions add may have no override.
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
	if e.Kind == EntryMade && o.Action.Kind().Suspends {
		level = slog.LevelWarn // it suspends limits
	}
	a := append(logAttrs(o), slog.String("author", e.Author), slog.String("reason", e.Reason))
	m.config.Logger.LogAttrs(context.Background(), level, "override "+string(e.Kind), a...)
}

// logActive logs the active overrides when a process starts. The caller holds mu.
func (m *Manager) logActive() {
	var ids []string
	now := m.now()
	for _, r := range m.document.Overrides {
		if m.status(r.Override, now).State == StateActive {
			ids = append(ids, r.Override.ID)
		}
	}
	if len(ids) > 0 {
		m.config.Logger.Info("overrides active", "ids", strings.Join(ids, ","))
	}
}

// logFit logs overrides that stopped fitting the policy, or fit it again. The caller holds mu, and m has the old
// state.
func (m *Manager) logFit(d document, unfit map[string]policy.Errors) {
	for i := range d.Overrides {
		o := &d.Overrides[i].Override
		was, is := m.unfit[o.ID], unfit[o.ID]
		switch {
		case is != nil && was == nil:
			reasons := make([]string, len(is))
			for j, e := range is { // without the value
				reasons[j] = strings.TrimPrefix(e.Path+": "+e.Reason, ": ") // not its value
			}
			a := append(logAttrs(o), slog.String("err", strings.Join(reasons, "; ")))
			m.config.Logger.LogAttrs(context.Background(), slog.LevelWarn, "override inactive, does not fit the policy", a...)
		case is == nil && was != nil && slices.ContainsFunc(d.liveOverrides(m.now()), func(l policy.Override) bool { return l.ID == o.ID }):
			m.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "override active again, fits the policy", logAttrs(o)...)
		}
	}
}
