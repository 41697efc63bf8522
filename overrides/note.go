// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// The kinds of acts on one bucket, or on all buckets of a rule: see [Manager.Note].
const (
	EntryReset   EntryKind = "reset"   // it was refilled
	EntryTaken   EntryKind = "taken"   // tokens were taken from it
	EntryCleared EntryKind = "cleared" // all buckets of a rule were refilled
)

const (
	// MaxActs bounds the recorded acts on buckets, so that many acts do not displace changes of overrides. The
	// oldest are dropped first. If the document is full because of long keys and reasons, the oldest entry of
	// either kind is dropped.
	MaxActs = MaxEntries / 2

	// maxNoteTries bounds the retries of a note when other changes get in between. There are many retries,
	// because no other process would repeat the note.
	maxNoteTries = 200
)

// Note records an act on a bucket or a rule for all processes that share the document. It changes neither the
// bucket nor the overrides; call it after the act.
//
// For [EntryReset] and [EntryTaken], the entry requires Key, Tokens and Author. [EntryCleared] requires Rule and
// Author instead, and may have Buckets. Reason, Role and From may be empty. Note sets ID and At; all other fields
// must be zero. Note returns the entry with these fields, even after an error.
//
// Note waits for other notes of this manager and for concurrent changes of the document, until ctx ends. If the
// entry is invalid, the error is a [policy.Errors]. After any other error, the entry may or may not have been
// recorded.
func (m *Manager) Note(ctx context.Context, e Entry) (Entry, error) {
	e.ID, e.At = newEntryID(), m.now().UTC().Truncate(time.Microsecond)
	if wrong := checkAct(&e); wrong != nil {
		return e, fmt.Errorf("overrides: note: %w", wrong)
	}
	select {
	case m.noting <- struct{}{}:
		defer func() { <-m.noting }()
	case <-ctx.Done():
		return e, fmt.Errorf("overrides: note: %w", ctx.Err())
	}
	at := e.At
	err := m.change(ctx, &e, maxNoteTries, func(_ *document, e *Entry) error {
		e.At = at // the time of the act
		return nil
	})
	if err != nil {
		return e, fmt.Errorf("overrides: note: %w", err)
	}
	return e, nil
}

// checkAct returns the errors of an act. It bounds the texts but accepts any content, because the act has already
// happened.
func checkAct(e *Entry) (wrong policy.Errors) {
	if !e.isAct() {
		wrong = append(wrong, policy.Error{Path: "/what", Reason: fmt.Sprintf("invalid what %q", e.Kind), Hint: "use reset, taken or cleared"})
	}
	if e.Override != "" || e.Before != nil || e.After != nil {
		wrong = append(wrong, policy.Error{Path: "/override", Reason: "an act on a bucket has no override", Hint: "leave override, before and after empty"})
	}
	cleared := e.Kind == EntryCleared
	switch {
	case cleared && (e.Rule == "" || len(e.Rule) > policy.MaxNameBytes):
		wrong = append(wrong, policy.Error{Path: "/rule", Reason: fmt.Sprintf("rule has %d bytes, must have between 1 and %d", len(e.Rule), policy.MaxNameBytes)})
	case cleared && (e.Tokens != "" || e.Key != ""):
		wrong = append(wrong, policy.Error{Path: "/tokens", Reason: "an act on all buckets of a rule has no tokens and no key"})
	}
	if t, err := bucket.ParseTokens(string(e.Tokens)); !cleared && (err != nil || t <= 0) {
		wrong = append(wrong, policy.Error{Path: "/tokens", Reason: "tokens must be a number above 0", Hint: "an act must change the bucket"})
	}
	for _, text := range []struct {
		name, text  string
		least, most int
	}{
		{"key", e.Key, 1, policy.MaxKeyBytes}, {"author", e.Author, 1, maxAuthorSize}, {"reason", e.Reason, 0, maxReasonSize},
		{"role", e.Role, 0, maxAuthorSize}, {"from", e.From, 0, maxAuthorSize},
	} {
		if n := len(text.text); n < text.least && !(cleared && text.name == "key") || n > text.most {
			wrong = append(wrong, policy.Error{Path: "/" + text.name, Reason: fmt.Sprintf("%s has %d bytes, must have between %d and %d", text.name, n, text.least, text.most)})
		}
	}
	return wrong
}

func (e *Entry) isAct() bool {
	return e.Kind == EntryReset || e.Kind == EntryTaken || e.Kind == EntryCleared
}

// toStored returns the form of e in a document. Older versions expect that every entry has an override before or
// after the change, and keep only fields that they know. An act therefore has an override with only the key, which
// older versions mask like any other key.
func (e Entry) toStored() Entry {
	if e.isAct() {
		e.Before, e.Key = &policy.Override{Key: e.Key}, ""
	}
	return e
}

func (e *Entry) restore() {
	if e.isAct() && e.Before != nil {
		e.Key, e.Before = e.Before.Key, nil
	}
}

func (d *document) dropActs() {
	n := -MaxActs // the excess
	for i := range d.Audit {
		if d.Audit[i].isAct() {
			n++
		}
	}
	if n <= 0 {
		return
	}
	d.Audit = slices.DeleteFunc(d.Audit, func(e Entry) bool {
		if n == 0 || !e.isAct() {
			return false
		}
		n--
		return true
	})
}
