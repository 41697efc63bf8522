// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/metehq/mete/store"
)

// Follow applies changes of other processes and records expirations until ctx ends. It polls every [Config.Poll].
// While the store does not answer, the last known overrides stay active. Follow logs this once.
func (m *Manager) Follow(ctx context.Context) {
	ticker := time.NewTicker(m.config.Poll)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		m.expireLocal()
		err := m.refresh(ctx)
		if err == nil {
			err = m.expire(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && failing:
			m.config.Logger.Info("overrides sync recovered")
		case err != nil && !failing:
			m.config.Logger.Error("overrides sync failed, using last known overrides", "err", err)
		}
		failing = err != nil
	}
}

func (m *Manager) refresh(ctx context.Context) error {
	r, err := m.read(ctx)
	switch {
	case err != nil:
		return err
	case r.lost:
		return m.restore(ctx, r)
	}
	return m.adopt(r.document, r.revision, r.known)
}

type reading struct {
	document document
	revision int64 // in the store
	known    int64 // the revision that was known before the read
	lost     bool  // the store has an older document, or none
}

// read reads the document. If the store has lost it, read returns the known document.
func (m *Manager) read(ctx context.Context) (reading, error) {
	m.mu.Lock()
	store, own, known := m.store, m.document, m.revision
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, revision, err := store.Document(ctx, m.config.Name, known)
	if errors.Is(err, errors.ErrUnsupported) {
		data, revision, err = m.useMemory().Document(ctx, m.config.Name, known)
	}
	r := reading{document: own, revision: revision, known: known}
	switch {
	case err != nil || revision == known:
		return r, err
	case revision == 0:
		r.lost = true
		return r, nil
	}
	d, err := decode(data)
	// A lower revision is an older document, unless the clock of the store has also gone back. In that
	// case, the document begins with the known audit.
	if err != nil || revision > known || d.isLaterThan(own) {
		r.document = d
		return r, err
	}
	r.lost = true
	return r, nil
}

func (m *Manager) restore(ctx context.Context, r reading) error {
	d := r.document.clone()
	data, err := d.encode()
	if err != nil {
		return err
	}
	next, err := m.write(ctx, data, r.revision)
	if errors.Is(err, store.ErrRevision) {
		return nil // another process was faster; the next read gets its document
	}
	if err != nil {
		return err
	}
	m.config.Logger.Warn("store lost the overrides, written back", "overrides", len(d.Overrides))
	return m.adopt(d, next, r.known)
}

// useMemory switches to memory if the store does not support documents.
func (m *Manager) useMemory() store.Documents {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.persistent {
		m.store, m.persistent = new(memory), false
	}
	return m.store
}

func (m *Manager) write(ctx context.Context, data []byte, revision int64) (int64, error) {
	m.mu.Lock()
	store := m.store
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return store.SetDocument(ctx, m.config.Name, data, revision)
}

// adopt activates a document unless a later one was activated since it was read.
func (m *Manager) adopt(d document, revision, since int64) error {
	cleared, err := m.adoptLocked(d, revision, since)
	for _, rule := range cleared {
		m.config.Cleared(rule)
	}
	return err
}

func (m *Manager) adoptLocked(d document, revision, since int64) (cleared []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revision != since {
		return nil, nil
	}
	if revision != m.revision {
		before := m.document
		if m.loaded && d.sameOverrides(&before) { // a note does not require a new policy
			m.document = d
		} else if err := m.activate(m.base, d); err != nil {
			return nil, err
		}
		if m.loaded {
			m.logChanges(before, d)
			cleared = m.clearedSince(&before, &d)
		} else {
			m.logActive()
		}
	}
	m.revision, m.loaded = revision, true
	return cleared, nil
}

func (m *Manager) clearedSince(before, after *document) (rules []string) {
	if m.config.Cleared == nil {
		return nil
	}
	for i := range after.Audit {
		if e := &after.Audit[i]; e.Kind == EntryCleared && !slices.Contains(rules, e.Rule) && !before.hasEntry(e.ID) {
			rules = append(rules, e.Rule)
		}
	}
	return rules
}

func (m *Manager) expire(ctx context.Context) error {
	m.mu.Lock()
	due := m.document.isDue(m.now())
	m.mu.Unlock()
	if !due {
		return nil
	}
	r, err := m.read(ctx)
	if err != nil {
		return err
	}
	d := r.document.clone()
	d.expire(m.now())
	data, err := d.encode()
	if err != nil {
		return err
	}
	next, err := m.write(ctx, data, r.revision)
	if errors.Is(err, store.ErrRevision) {
		return nil // the next poll tries again
	}
	if err != nil {
		return err
	}
	return m.adopt(d, next, r.known)
}
