// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/metehq/mete/policy"
)

const (
	// MaxLocal bounds the local overrides of a process, and MaxLocalTime their lifetime.
	MaxLocal     = 100
	MaxLocalTime = time.Hour
)

// PutLocal creates an override that is active only in this process, or replaces the local override with the same ID. It
// uses no store, so it works while the store is down. The override ends with the process, and after [MaxLocalTime]
// at the latest. It is logged, but not in the shared audit. A shared override with the same ID replaces it.
//
// PutLocal calls may before it replaces a local override, as in [Manager.PutIf]. If the override is invalid, the
// error is a [policy.Errors]; above [MaxLocal], it is [ErrFull].
func (m *Manager) PutLocal(o policy.Override, may func(before policy.Override) error) (Status, error) {
	s, err := m.putLocal(o, may)
	if err != nil {
		return Status{}, fmt.Errorf("overrides: put local: %w", err)
	}
	return s, nil
}

func (m *Manager) putLocal(o policy.Override, may func(before policy.Override) error) (Status, error) {
	if o.ID == "" {
		o.ID = newID(o.Action)
	}
	m.changing.Lock() // until the override is active, so that no other local change gets in between
	defer m.changing.Unlock()
	now := m.now()
	o.CreatedAt = now.UTC().Truncate(time.Microsecond)
	if err := m.endSooner(now); err != nil {
		return Status{}, err
	}
	m.mu.Lock()
	d, local := m.document.clone(), slices.Clone(m.local)
	m.mu.Unlock()
	if d.index(o.ID) >= 0 {
		return Status{}, policy.Errors{{Path: "/id", Reason: "a shared override has this ID", Hint: "use another ID for the local override, or none"}}
	}
	at := slices.IndexFunc(local, func(l policy.Override) bool { return l.ID == o.ID })
	if at >= 0 {
		if err := may(local[at]); err != nil {
			return Status{}, err
		}
	} else if len(local) >= MaxLocal {
		return Status{}, ErrFull
	}
	for _, l := range local {
		d.Overrides = append(d.Overrides, record{Override: l})
	}
	if err := m.checkLocal(&d, o, now); err != nil {
		return Status{}, err
	}
	if at >= 0 {
		local[at] = o
	} else {
		local = append(local, o)
	}
	if err := m.useLocal(local); err != nil {
		return Status{}, err
	}
	m.logLocal("local override made", &o, o.Author, o.Reason)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.status(o, now)
	s.Source = SourceLocal
	return s, nil
}

func (m *Manager) checkLocal(d *document, o policy.Override, now time.Time) error {
	err := m.check(d, o, now)
	wrong, ok := errors.AsType[policy.Errors](err)
	switch {
	case err != nil && !ok:
		return err
	case o.ExpiresAt.After(now.Add(MaxLocalTime)):
		return append(wrong, policy.Error{Path: "/expires_at", Reason: "expires_at is too late: a local override lasts at most one hour", Hint: "renew it, or create a shared override"})
	}
	return err
}

func (m *Manager) removeLocal(id, author, reason string, may func(before policy.Override) error) (found bool, err error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	local, shared := slices.Clone(m.local), m.document.index(id) >= 0
	m.mu.Unlock()
	at := slices.IndexFunc(local, func(l policy.Override) bool { return l.ID == id })
	if at < 0 || shared {
		return false, nil
	}
	before := local[at]
	if err := may(before); err != nil {
		return true, err
	}
	if err := m.useLocal(slices.Delete(local, at, at+1)); err != nil {
		return true, err
	}
	m.logLocal("local override removed", &before, author, reason)
	return true, nil
}

// expireLocal removes local overrides that have expired or that a shared override replaces. They no longer have an
// effect.
func (m *Manager) expireLocal() {
	m.changing.Lock()
	defer m.changing.Unlock()
	now := m.now()
	if m.endSooner(now) != nil {
		return
	}
	m.mu.Lock()
	before, d := m.local, m.document
	m.mu.Unlock()
	var left, expired, replaced []policy.Override
	for _, l := range before {
		switch {
		case !l.ExpiresAt.After(now):
			expired = append(expired, l)
		case d.index(l.ID) >= 0:
			replaced = append(replaced, l)
		default:
			left = append(left, l)
		}
	}
	if len(left) == len(before) || m.useLocal(left) != nil {
		return
	}
	for i := range expired {
		m.logLocal("local override expired", &expired[i], expirer, "it expired")
	}
	for i := range replaced {
		m.logLocal("local override replaced", &replaced[i], expirer, "a shared override has its ID")
	}
}

// endSooner corrects the ends of local overrides after the clock has stepped back, so that they do not outlast
// [MaxLocalTime]. The caller holds changing.
func (m *Manager) endSooner(now time.Time) error {
	back := m.checkedAt.Sub(now)
	if back > 0 && len(m.local) > 0 { // only holders of changing write local
		local := slices.Clone(m.local)
		for i := range local {
			local[i].ExpiresAt = local[i].ExpiresAt.Add(-back)
		}
		if err := m.useLocal(local); err != nil {
			return err
		}
		m.config.Logger.Warn("clock stepped back, expiry of local overrides adjusted", "by", back)
	}
	m.checkedAt = now
	return nil
}

// useLocal activates local as the local overrides. The caller holds changing.
func (m *Manager) useLocal(local []policy.Override) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.local
	m.local = local
	if err := m.activate(m.base, m.document); err != nil {
		m.local = before
		return err
	}
	return nil
}

// logLocal logs a change of a local override, without its match and key, which can contain secrets.
func (m *Manager) logLocal(event string, o *policy.Override, author, reason string) {
	level := slog.LevelInfo
	if o.Action.Kind().Suspends {
		level = slog.LevelWarn
	}
	a := append(logAttrs(o), slog.String("author", author), slog.String("reason", reason))
	m.config.Logger.LogAttrs(context.Background(), level, event, a...)
}
