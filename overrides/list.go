// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"slices"
	"time"

	"github.com/metehq/mete/policy"
)

// A State tells whether an override is active.
type State string

const (
	StateActive  State = "in_force"
	StateExpired State = "expired"
	StateUnfit   State = "unfit" // the active policy has no use for it
)

// A Source is the origin of an override.
type Source string

const (
	SourceFile  Source = "file"  // the policy file
	SourceAdmin Source = "admin" // an admin, at run time
	SourceLocal Source = "local" // an admin, at run time, in this process only
)

// A Status is an override and its state.
type Status struct {
	policy.Override
	State    State
	Source   Source
	Mistakes policy.Errors // the reasons for StateUnfit
}

// List returns all overrides: first from the policy file, then the shared ones in order of creation, then the local
// ones. The caller must not modify their data.
func (m *Manager) List() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var list []Status
	for _, o := range m.base.Overrides() {
		list = append(list, Status{Override: o, State: stateOf(o, now), Source: SourceFile})
	}
	for i := range m.document.Overrides {
		list = append(list, m.status(m.document.Overrides[i].Override, now))
	}
	for _, o := range m.local {
		if m.document.index(o.ID) >= 0 {
			continue
		}
		s := m.status(o, now)
		s.Source = SourceLocal
		list = append(list, s)
	}
	return list
}

func (m *Manager) status(o policy.Override, now time.Time) Status {
	s := Status{Override: o, State: stateOf(o, now), Source: SourceAdmin}
	if why := m.unfit[o.ID]; why != nil && s.State == StateActive {
		s.State, s.Mistakes = StateUnfit, why
	}
	return s
}

func stateOf(o policy.Override, now time.Time) State {
	if o.ExpiresAt.After(now) {
		return StateActive
	}
	return StateExpired
}

// Audit returns the audit, the latest entry last. The caller must not modify the data of entries.
func (m *Manager) Audit() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.document.Audit)
}

// CountLocal returns the number of active local overrides.
func (m *Manager) CountLocal() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for i := range m.local {
		if o := &m.local[i]; o.ExpiresAt.After(now) && m.unfit[o.ID] == nil && m.document.index(o.ID) < 0 {
			n++
		}
	}
	return n
}

// CountActive returns the number of active overrides per action.
func (m *Manager) CountActive() map[policy.Action]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, now := map[policy.Action]int{}, m.now()
	file, made := m.base.Overrides(), m.document.Overrides
	for i := range file {
		if o := &file[i]; o.ExpiresAt.After(now) {
			n[o.Action]++
		}
	}
	for i := range made {
		if o := &made[i].Override; o.ExpiresAt.After(now) && m.unfit[o.ID] == nil {
			n[o.Action]++
		}
	}
	for i := range m.local {
		if o := &m.local[i]; o.ExpiresAt.After(now) && m.unfit[o.ID] == nil && m.document.index(o.ID) < 0 {
			n[o.Action]++
		}
	}
	return n
}
