// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

var (
	// ErrNotFound reports that no override made at run time has the ID.
	ErrNotFound = errors.New("overrides: override not found")

	// ErrInFile reports that an override is in the policy file. To remove it, edit the file.
	ErrInFile = errors.New("overrides: the override is in the policy file")

	// ErrFull reports that the document has no space for another override.
	ErrFull = errors.New("overrides: no space for more overrides")
)

const (
	maxAttempts   = 10 // of a change that conflicts with other changes
	betweenTries  = 20 * time.Millisecond
	maxAuthorSize = 128 // of the author, also for removals
	maxReasonSize = 256
)

// Put creates an override, or replaces the override with the same ID. If the ID is empty, Put generates one. Put sets
// the creation time. The override is active in this process when Put returns, and in other processes soon after.
//
// If the override is invalid, the error is a [policy.Errors] with paths such as "/match". An error that wraps
// [store.ErrRevision] means repeated conflicts with other changes. After any other error of a store, the override
// may or may not have been created.
func (m *Manager) Put(ctx context.Context, o policy.Override) (Status, error) {
	return m.PutIf(ctx, o, func(policy.Override) error { return nil })
}

// PutIf is like Put, but calls may before it replaces an override that was made at run time. If may returns an
// error, PutIf changes nothing and returns an error that wraps it. PutIf reads the store, so may sees recent
// changes of other processes. It calls may again after a conflict.
func (m *Manager) PutIf(ctx context.Context, o policy.Override, may func(before policy.Override) error) (Status, error) {
	if o.ID == "" {
		o.ID = newID(o.Action)
	}
	entry := Entry{ID: newEntryID(), Kind: EntryMade, Override: o.ID, Author: o.Author, Reason: o.Reason}
	err := m.change(ctx, &entry, maxAttempts, func(d *document, e *Entry) error {
		o.CreatedAt = e.At
		at := d.index(o.ID)
		if at >= 0 {
			if err := may(d.Overrides[at].Override); err != nil {
				return err
			}
		}
		if err := m.check(d, o, e.At); err != nil {
			return err
		}
		if at < 0 {
			d.Overrides = append(d.Overrides, record{Override: o})
		} else {
			e.Before = copyOf(d.Overrides[at].Override)
			d.Overrides[at] = record{Override: o}
		}
		e.After = copyOf(o)
		return nil
	})
	if err != nil {
		return Status{}, fmt.Errorf("overrides: put: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.persistent {
		m.config.Logger.Warn("override is not persistent, it ends with this process", "id", o.ID)
	}
	return m.status(o, m.now()), nil
}

func newID(a policy.Action) string {
	word := "override"
	if a.Kind().Label != "" {
		word = string(a)
	}
	return word + "-" + strings.ToLower(rand.Text()[:8])
}

func newEntryID() string { return rand.Text() }

func copyOf(o policy.Override) *policy.Override { return &o }

// check returns the errors of o, together with the other overrides that fit the policy.
func (m *Manager) check(d *document, o policy.Override, now time.Time) error {
	m.mu.Lock()
	base := m.base
	m.mu.Unlock()
	var others []policy.Override
	for _, other := range d.liveOverrides(now) {
		if other.ID != o.ID {
			others = append(others, other)
		}
	}
	_, unfit := addFitting(base, others, now)
	list := make([]policy.Override, 0, len(others)+1)
	for _, other := range others {
		if unfit[other.ID] == nil {
			list = append(list, other)
		}
	}
	var wrong policy.Errors
	if _, err := base.WithOverrides(append(list, o), now); err != nil {
		wrong = splitErrors(err, len(list)+1)[len(list)]
	}
	for _, e := range append(checkText("reason", o.Reason, maxReasonSize), checkText("author", o.Author, maxAuthorSize)...) {
		if !slices.ContainsFunc(wrong, func(w policy.Error) bool { return w.Path == e.Path }) {
			wrong = append(wrong, e) // a file may have it on several lines
		}
	}
	switch {
	case o.ExpiresAt.IsZero():
		wrong = append(wrong, policy.Error{Path: "/expires_at", Reason: "expires_at is required", Hint: "write a permanent exception as a rule"})
	case !o.ExpiresAt.After(now):
		wrong = append(wrong, policy.Error{Path: "/expires_at", Reason: "expires_at must be in the future", Hint: "it is " + now.Format(time.RFC3339) + " now"})
	}
	if wrong == nil {
		return nil
	}
	return wrong
}

// Remove ends an override that was made at run time. The author and the reason are required; if they are invalid,
// the error is a [policy.Errors]. Other errors are [ErrNotFound], [ErrInFile], and the errors of Put.
func (m *Manager) Remove(ctx context.Context, id, author, reason string) error {
	return m.RemoveIf(ctx, id, author, reason, func(policy.Override) error { return nil })
}

// RemoveIf is like Remove, but calls may first: see [Manager.PutIf].
func (m *Manager) RemoveIf(ctx context.Context, id, author, reason string, may func(before policy.Override) error) error {
	if wrong := append(checkText("author", author, maxAuthorSize), checkText("reason", reason, maxReasonSize)...); wrong != nil {
		return fmt.Errorf("overrides: remove: %w", wrong)
	}
	if found, err := m.removeLocal(id, author, reason, may); found {
		if err != nil {
			return fmt.Errorf("overrides: remove: %w", err)
		}
		return nil
	}
	entry := Entry{ID: newEntryID(), Kind: EntryRemoved, Override: id, Author: author, Reason: reason}
	err := m.change(ctx, &entry, maxAttempts, func(d *document, e *Entry) error {
		at := d.index(id)
		if at < 0 {
			return m.notFoundError(id)
		}
		if err := may(d.Overrides[at].Override); err != nil {
			return err
		}
		e.Before = copyOf(d.Overrides[at].Override)
		d.Overrides = append(d.Overrides[:at], d.Overrides[at+1:]...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("overrides: remove: %w", err)
	}
	return nil
}

func (m *Manager) notFoundError(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.base.Overrides() {
		if o.ID == id {
			return ErrInFile
		}
	}
	return ErrNotFound
}

func checkText(name, text string, most int) policy.Errors {
	switch {
	case strings.TrimSpace(text) == "":
		return policy.Errors{{Path: "/" + name, Reason: name + " is required", Hint: "the audit records it"}}
	case len(text) > most:
		return policy.Errors{{Path: "/" + name, Reason: fmt.Sprintf("%s has %d bytes, the maximum is %d", name, len(text), most)}}
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return policy.Errors{{Path: "/" + name, Reason: name + " must be text on one line"}}
	}
	return nil
}

// change edits the document and adds e to the audit in one step, on top of changes by other processes. It may call
// edit up to most times.
func (m *Manager) change(ctx context.Context, e *Entry, most int, edit func(*document, *Entry) error) error {
	for attempt := 1; ; attempt++ {
		sent, err := m.try(ctx, e, edit)
		overtaken := errors.Is(err, store.ErrRevision)
		if err == nil || attempt == most || !overtaken && (!sent || attempt > 1) {
			return err
		}
		// If the result of a write is unknown, the next attempt checks it.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(betweenTries):
		}
	}
}

// try makes one attempt at a change. It reports whether it tried to write.
func (m *Manager) try(ctx context.Context, e *Entry, edit func(*document, *Entry) error) (sent bool, err error) {
	r, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	if r.document.hasEntry(e.ID) { // an earlier attempt succeeded although the store returned an error
		return false, m.adopt(r.document, r.revision, r.known)
	}
	d := r.document.clone()
	e.At = m.now().UTC().Truncate(time.Microsecond)
	if err := edit(&d, e); err != nil {
		return false, err
	}
	d.Audit = append(d.Audit, *e)
	data, err := d.encode()
	if err != nil {
		return false, err
	}
	next, err := m.write(ctx, data, r.revision)
	if err != nil {
		return true, err
	}
	return true, m.adopt(d, next, r.known)
}
