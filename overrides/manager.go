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
	// DefaultName is the default name of the document.
	DefaultName = "overrides"

	// DefaultPoll is the default interval between polls.
	DefaultPoll = time.Second

	// timeout bounds each read or write of the store.
	timeout = 5 * time.Second
)

// Config are the settings of a [Manager].
type Config struct {
	// Apply activates a policy in one step, like [mete.Limiter.SetPolicy]. It is required. The manager makes no
	// concurrent calls.
	Apply func(*policy.Matcher) error

	// Documents stores the overrides. If it is nil, or does not support documents, overrides end with this process.
	Documents store.Documents

	// Cleared, if set, is called with each rule that another manager noted as cleared: see [EntryCleared].
	// Use it to call [mete.Limiter.DropRule].
	Cleared func(rule string)

	// Name is the name of the document. Managers with the same name share overrides. "" means [DefaultName].
	Name string

	// Poll is the interval at which Follow polls the store. 0 means [DefaultPoll].
	Poll time.Duration

	// Now is the clock that expires overrides. It should be the limiter's clock. Nil means the wall clock.
	Now func() bucket.Instant

	// Logger logs every change of an override and every failure, without matches and keys. Nil means [slog.Default].
	Logger *slog.Logger
}

// A Manager manages the overrides of a policy. It is safe for concurrent use and starts no goroutine. [New] makes
// one.
type Manager struct {
	config Config
	noting chan struct{} // held by the writer of a note

	changing  sync.Mutex // held while local overrides change; locked before mu
	checkedAt time.Time  // the last check of their ends; guarded by changing

	mu         sync.Mutex // guards the fields below; held while a policy is activated
	store      store.Documents
	persistent bool // store is shared or persistent
	base       *policy.Matcher
	document   document          // as last read; never modified in place
	local      []policy.Override // never modified in place
	revision   int64
	loaded     bool                     // the document has been read
	unfit      map[string]policy.Errors // by ID: why an override is inactive
}

func (m *Manager) now() time.Time { return m.config.Now().Time() }

// New returns a manager for the overrides of base, the active policy. base is required. The manager has no
// overrides until [Manager.Load] or [Manager.Follow].
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
	m := &Manager{config: config, noting: make(chan struct{}, 1), base: base, store: config.Documents, persistent: config.Documents != nil}
	if m.store == nil {
		m.store = new(memory)
	}
	return m, nil
}

// Load reads the document and activates its overrides. If the read fails, nothing changes.
func (m *Manager) Load(ctx context.Context) error {
	if err := m.refresh(ctx); err != nil {
		return fmt.Errorf("overrides: load: %w", err)
	}
	return nil
}

// SetBase replaces the active policy and keeps the overrides that fit it. Overrides that do not fit are not an error.
// If Apply fails, nothing changes.
func (m *Manager) SetBase(base *policy.Matcher) error {
	if base == nil {
		return errors.New("overrides: base: policy is required")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.activate(base, m.document); err != nil {
		return fmt.Errorf("overrides: base: %w", err)
	}
	return nil
}

// activate applies a document and the local overrides that fit base. The caller holds mu.
func (m *Manager) activate(base *policy.Matcher, d document) error {
	now := m.now()
	live := d.liveOverrides(now)
	for _, o := range m.local {
		if o.ExpiresAt.After(now) && d.index(o.ID) < 0 { // a shared override with this ID replaces it
			live = append(live, o)
		}
	}
	next, unfit := addFitting(base, live, now)
	if err := m.config.Apply(next); err != nil {
		return err
	}
	m.logFit(d, unfit)
	m.base, m.document, m.unfit = base, d, unfit
	return nil
}

// IsPersistent reports whether overrides outlive the process.
func (m *Manager) IsPersistent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.persistent
}
