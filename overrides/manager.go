// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const (
	// DefaultName is the name of the document.
	DefaultName = "overrides"

	// DefaultPoll is how often a manager looks for changes of others.
	DefaultPoll = time.Second

	// timeout is how long one look or one step of a change waits for the store.
	timeout = 5 * time.Second
)

// Config are the settings of a [Manager].
type Config struct {
	// Apply puts a policy in force, in one step: [mete.Limiter.SetPolicy] does. It
	// is required, and is not called again before it returns.
	Apply func(*policy.Matcher) error

	// Documents is where the overrides are. Nil, and a store that keeps none, is in
	// this process alone: they end with it.
	Documents store.Documents

	// Cleared, if set, is called with each rule whose buckets another manager noted as
	// cleared: see [WhatCleared]. [mete.Limiter.ForgetRule] is for that.
	Cleared func(rule string)

	// Name is that of the document. Managers that share overrides have the same
	// one. Empty is [DefaultName].
	Name string

	// Poll is how often Follow looks for changes of others. 0 is [DefaultPoll].
	Poll time.Duration

	// Now is the clock by which overrides expire. It should be the one of the
	// Limiter. Nil is the wall clock.
	Now func() bucket.Instant

	// Logger is told of every change of an override, and of what goes wrong. It is never told
	// matches and keys. Nil is [slog.Default].
	Logger *slog.Logger
}

// A Manager keeps the overrides of a policy. It is made by [New], is safe for
// concurrent use, and starts no goroutine.
type Manager struct {
	config Config
	noting chan struct{} // taken by who writes a note

	changing sync.Mutex // held while local overrides change, before mu
	looked   time.Time  // when their ends were last looked at; guarded by changing

	mu       sync.Mutex // guards the fields below; held while a policy is put in force
	store    store.Documents
	lasting  bool // store is not in this process alone
	base     *policy.Matcher
	document document          // as it was last read; never changed in place
	local    []policy.Override // never changed in place
	revision int64
	loaded   bool                     // it has been looked for
	unfit    map[string]policy.Errors // by ID: why an override is not in force
}

// now is the time by the manager's clock.
func (m *Manager) now() time.Time { return m.config.Now().Time() }

// New returns a manager of the overrides of base, the policy in force, which is
// required. It knows of none before it is told to Load or Follow.
func New(base *policy.Matcher, config Config) (*Manager, error) {
	switch {
	case base == nil:
		return nil, errors.New("overrides: new: policy is required")
	case config.Apply == nil:
		return nil, errors.New("overrides: new: Apply is required")
	case config.Poll < 0:
		return nil, fmt.Errorf("overrides: new: poll %v: must not be below 0", config.Poll)
	}
	if config.Name == "" {
		config.Name = DefaultName
	}
	if err := store.CheckDocument(config.Name, nil); err != nil {
		return nil, fmt.Errorf("overrides: new: %w", err)
	}
	if config.Poll == 0 {
		config.Poll = DefaultPoll
	}
	if config.Now == nil {
		config.Now = func() bucket.Instant { return bucket.At(time.Now()) }
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	m := &Manager{config: config, noting: make(chan struct{}, 1), base: base, store: config.Documents, lasting: config.Documents != nil}
	if m.store == nil {
		m.store = new(memory)
	}
	return m, nil
}

// Load reads the document and puts in force what is in it. Where it cannot be read,
// nothing changes.
func (m *Manager) Load(ctx context.Context) error {
	if err := m.refresh(ctx); err != nil {
		return fmt.Errorf("overrides: load: %w", err)
	}
	return nil
}

// Base puts a new policy in force, with all overrides that fit it. None of them is a
// reason for an error: that is of Apply, and then everything stays as it was.
func (m *Manager) Base(base *policy.Matcher) error {
	if base == nil {
		return errors.New("overrides: base: policy is required")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.put(base, m.document); err != nil {
		return fmt.Errorf("overrides: base: %w", err)
	}
	return nil
}

// put puts in force what of a document and of the local overrides fits a policy. The caller holds mu.
func (m *Manager) put(base *policy.Matcher, d document) error {
	now := m.now()
	live := d.live(now)
	for _, o := range m.local {
		if o.ExpiresAt.After(now) && d.index(o.ID) < 0 { // a shared one of this ID replaces it
			live = append(live, o)
		}
	}
	next, unfit := fit(base, live, now)
	if err := m.config.Apply(next); err != nil {
		return err
	}
	m.logFit(d, unfit)
	m.base, m.document, m.unfit = base, d, unfit
	return nil
}

// Persistent reports whether overrides outlive the process.
func (m *Manager) Persistent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lasting
}
