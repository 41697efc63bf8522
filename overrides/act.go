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

// Acts on one bucket by its key, or on all buckets of a rule: see [Manager.Note].
const (
	WhatReset   What = "reset"   // it was made full
	WhatTaken   What = "taken"   // tokens were taken from it
	WhatCleared What = "cleared" // all buckets of a rule were made full
)

const (
	// MaxActs bounds how much is remembered of what was done to buckets, so that many acts
	// do not push out what was done to overrides. The oldest go first. Where the document
	// is full, as it can be by long keys and reasons, the oldest entry of either goes.
	MaxActs = MaxEntries / 2

	// maxNoteTries bounds how often a note that others come between is written anew. It
	// can wait, and is one that nobody makes again.
	maxNoteTries = 200
)

// Note remembers an act on a bucket or a rule, for all processes that share the document.
// It does nothing to the bucket, and the overrides stay as they are: it is called once
// the act is done. Of the entry, What is [WhatReset] or [WhatTaken]; Key, Tokens and Author are
// required; Reason, Role and From may be empty; ID and At are set, and the rest must be
// zero. [WhatCleared] has Rule and Buckets in place of Key and Tokens. It is returned as it was set, so that one whose note fails can be told apart.
//
// It waits for other notes of this manager, and for as long as others change the
// document at the same moment, but not longer than ctx. What is wrong with the entry is
// a [policy.Errors]. After any other error, it may have been noted or not.
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
		e.At = at // when it was done
		return nil
	})
	if err != nil {
		return e, fmt.Errorf("overrides: note: %w", err)
	}
	return e, nil
}

// checkAct says what is wrong with an act. Its texts are bounded and else as they are:
// it is done already, whatever they say.
func checkAct(e *Entry) (wrong policy.Errors) {
	if !e.act() {
		wrong = append(wrong, policy.Error{Path: "/what", Reason: fmt.Sprintf("what is %q", e.What), Hint: "it is reset, taken or cleared"})
	}
	if e.Override != "" || e.Before != nil || e.After != nil {
		wrong = append(wrong, policy.Error{Path: "/override", Reason: "what was done to a bucket has no override", Hint: "leave override, before and after empty"})
	}
	cleared := e.What == WhatCleared
	switch {
	case cleared && (e.Rule == "" || len(e.Rule) > policy.MaxNameBytes):
		wrong = append(wrong, policy.Error{Path: "/rule", Reason: fmt.Sprintf("rule has %d bytes, must have between 1 and %d", len(e.Rule), policy.MaxNameBytes)})
	case cleared && (e.Tokens != "" || e.Key != ""):
		wrong = append(wrong, policy.Error{Path: "/tokens", Reason: "all buckets of a rule have no tokens and no key"})
	}
	if t, err := bucket.ParseTokens(string(e.Tokens)); !cleared && (err != nil || t <= 0) {
		wrong = append(wrong, policy.Error{Path: "/tokens", Reason: "tokens must be a number above 0", Hint: "what changed nothing is no act"})
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

// act reports whether e is something that was done to buckets.
func (e *Entry) act() bool {
	return e.What == WhatReset || e.What == WhatTaken || e.What == WhatCleared
}

// stored is e as it is in a document. Versions from before acts take it that every
// entry has an override as it was or as it is, and keep of an entry what they know when
// they write the document: so that of an act has one with nothing but the key, which
// they mask as that of any other.
func (e Entry) stored() Entry {
	if e.act() {
		e.Before, e.Key = &policy.Override{Key: e.Key}, ""
	}
	return e
}

// unstored makes of a stored entry what it is.
func (e *Entry) unstored() {
	if e.act() && e.Before != nil {
		e.Key, e.Before = e.Before.Key, nil
	}
}

// forgetActs leaves as many acts as there may be.
func (d *document) forgetActs() {
	n := -MaxActs // too many
	for i := range d.Audit {
		if d.Audit[i].act() {
			n++
		}
	}
	if n <= 0 {
		return
	}
	d.Audit = slices.DeleteFunc(d.Audit, func(e Entry) bool {
		if n == 0 || !e.act() {
			return false
		}
		n--
		return true
	})
}
