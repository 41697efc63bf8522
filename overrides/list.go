// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"slices"
	"time"

	"github.com/metehq/mete/policy"
)

// A State says whether an override holds.
type State string

const (
	StateInForce State = "in_force"
	StateEnded   State = "expired"
	StateUnfit   State = "unfit" // the policy in force has no place for it
)

// A Source is where an override was made.
type Source string

const (
	SourceFile  Source = "file"  // of the policy
	SourceAdmin Source = "admin" // at run time
	SourceLocal Source = "local" // at run time, in this process alone
)

// A Status is an override, and whether it holds.
type Status struct {
	policy.Override
	State    State
	Source   Source
	Mistakes policy.Errors // why it is Unfit
}

// List returns all overrides: first from the policy file, then the shared ones in the order
// in which they were made, then the local ones. The caller must not change what
// they refer to.
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

// status is that of an override of the document. The caller holds mu.
func (m *Manager) status(o policy.Override, now time.Time) Status {
	s := Status{Override: o, State: stateOf(o, now), Source: SourceAdmin}
	if why := m.unfit[o.ID]; why != nil && s.State == StateInForce {
		s.State, s.Mistakes = StateUnfit, why
	}
	return s
}

func stateOf(o policy.Override, now time.Time) State {
	if o.ExpiresAt.After(now) {
		return StateInForce
	}
	return StateEnded
}

// Audit returns what was done, the latest last. The caller must not change what it
// refers to.
func (m *Manager) Audit() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.document.Audit)
}

// Local returns the number of active local overrides.
func (m *Manager) Local() (n int) {
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

// Count returns how many overrides are in force, by their action.
func (m *Manager) Count() map[policy.Action]int {
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
