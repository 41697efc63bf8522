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
	// ErrNotFound: no override that was made at run time has that ID.
	ErrNotFound = errors.New("overrides: there is no such override")

	// ErrInFile: an override is in the policy file, and goes when it goes from there.
	ErrInFile = errors.New("overrides: the override is in the policy file")

	// ErrFull: the document has no room for another override.
	ErrFull = errors.New("overrides: there is no room for more overrides")
)

const (
	maxAttempts   = 10 // of a change that others come between
	betweenTries  = 20 * time.Millisecond
	maxAuthorSize = 128 // of who removes, as of who makes one
	maxReasonSize = 256
)

// Put makes an override, or puts it in the place of the one with its ID. Without an
// ID it gets one. When it was created is set. It is in force in this process when Put
// returns, and in others soon after.
//
// What is wrong with it is a [policy.Errors], with paths such as "/match". Where the
// error wraps [store.ErrRevision], others were faster again and again. After any
// other error of a store, it may have been made or not.
func (m *Manager) Put(ctx context.Context, o policy.Override) (Status, error) {
	return m.PutIf(ctx, o, func(policy.Override) error { return nil })
}

// PutIf is like Put, but asks whether the override with its ID, where there is one
// that was made at run time, may be replaced: an error of may is the one that PutIf wraps, and
// nothing is changed. It is the store that is looked at, so that what others have just made counts, and
// may is asked again for what comes in between.
func (m *Manager) PutIf(ctx context.Context, o policy.Override, may func(before policy.Override) error) (Status, error) {
	if o.ID == "" {
		o.ID = newID(o.Action)
	}
	entry := Entry{ID: newEntryID(), What: WhatMade, Override: o.ID, Author: o.Author, Reason: o.Reason}
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
	if !m.lasting {
		m.config.Logger.Warn("override kept in this process only, it ends with the process", "id", o.ID)
	}
	return m.status(o, m.now()), nil
}

// newID is an ID for an override that has none.
func newID(a policy.Action) string {
	word := "override"
	if a.Kind().Label != "" {
		word = string(a)
	}
	return word + "-" + strings.ToLower(rand.Text()[:8])
}

// newEntryID tells an entry apart from all others.
func newEntryID() string { return rand.Text() }

func copyOf(o policy.Override) *policy.Override { return &o }

// check says what is wrong with o beside the other overrides that fit.
func (m *Manager) check(d *document, o policy.Override, now time.Time) error {
	m.mu.Lock()
	base := m.base
	m.mu.Unlock()
	var others []policy.Override
	for _, other := range d.live(now) {
		if other.ID != o.ID {
			others = append(others, other)
		}
	}
	_, unfit := fit(base, others, now)
	list := make([]policy.Override, 0, len(others)+1)
	for _, other := range others {
		if unfit[other.ID] == nil {
			list = append(list, other)
		}
	}
	var wrong policy.Errors
	if _, err := base.WithOverrides(append(list, o), now); err != nil {
		wrong = mistakes(err, len(list)+1)[len(list)]
	}
	for _, e := range append(checkText("reason", o.Reason, maxReasonSize), checkText("author", o.Author, maxAuthorSize)...) {
		if !slices.ContainsFunc(wrong, func(w policy.Error) bool { return w.Path == e.Path }) {
			wrong = append(wrong, e) // a file may have it on several lines
		}
	}
	switch {
	case o.ExpiresAt.IsZero():
		wrong = append(wrong, policy.Error{Path: "/expires_at", Reason: "expires_at is required", Hint: "an exception without an end is a rule"})
	case !o.ExpiresAt.After(now):
		wrong = append(wrong, policy.Error{Path: "/expires_at", Reason: "expires_at must be in the future", Hint: "it is " + now.Format(time.RFC3339) + " now"})
	}
	if wrong == nil {
		return nil
	}
	return wrong
}

// Remove ends an override that was made at run time. The reason is required, and so
// is the author: what is wrong with them is a [policy.Errors]. Other errors are
// [ErrNotFound], [ErrInFile], and those of Put.
func (m *Manager) Remove(ctx context.Context, id, author, reason string) error {
	return m.RemoveIf(ctx, id, author, reason, func(policy.Override) error { return nil })
}

// RemoveIf is like Remove, but asks whether the override may be removed: see PutIf.
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
	entry := Entry{ID: newEntryID(), What: WhatRemoved, Override: id, Author: author, Reason: reason}
	err := m.change(ctx, &entry, maxAttempts, func(d *document, e *Entry) error {
		at := d.index(id)
		if at < 0 {
			return m.absent(id)
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

// absent says why there is nothing to remove.
func (m *Manager) absent(id string) error {
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
		return policy.Errors{{Path: "/" + name, Reason: name + " is required", Hint: "people will ask later"}}
	case len(text) > most:
		return policy.Errors{{Path: "/" + name, Reason: fmt.Sprintf("%s has %d bytes, the most is %d", name, len(text), most)}}
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return policy.Errors{{Path: "/" + name, Reason: name + " must be text on one line"}}
	}
	return nil
}

// change edits the document and remembers that: in one step, on top of whatever
// others have made of it. The edit may be made several times, at most so many.
func (m *Manager) change(ctx context.Context, e *Entry, most int, edit func(*document, *Entry) error) error {
	for attempt := 1; ; attempt++ {
		sent, err := m.try(ctx, e, edit)
		overtaken := errors.Is(err, store.ErrRevision)
		if err == nil || attempt == most || !overtaken && (!sent || attempt > 1) {
			return err
		}
		// Where the store has not said what became of it, the next try looks.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(betweenTries):
		}
	}
}

// try is one attempt at a change. It says whether it got so far as to write.
func (m *Manager) try(ctx context.Context, e *Entry, edit func(*document, *Entry) error) (sent bool, err error) {
	r, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	if r.document.knows(e.ID) { // an earlier attempt was successful although the store did not say so
		return false, m.adopt(r.document, r.revision, r.since)
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
	return true, m.adopt(d, next, r.since)
}
