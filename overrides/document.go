// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const (
	// MaxEntries bounds what is remembered of what was done. The oldest go first.
	MaxEntries = 1000

	// MaxBytes bounds the overrides of a document, as JSON. One more is refused. The
	// rest of [store.MaxDocumentBytes] is for what is remembered.
	MaxBytes = 512 << 10

	// version is that of the document's form. A program does not touch a later one.
	version = 1
)

var errVersion = errors.New("the document was written by a newer version of mete")

// A document is all that there is. As JSON it is in a store.
type document struct {
	Version   int      `json:"version"`
	Overrides []record `json:"overrides"` // in the order in which they were made
	Audit     []Entry  `json:"audit"`     // the latest last
}

// A record is an override of a document.
type record struct {
	policy.Override
	Expired bool `json:"expired,omitempty"` // which the audit says
}

// An Entry says that something was done.
type Entry struct {
	ID       string    `json:"id"` // tells it apart from all others
	At       time.Time `json:"at"`
	What     What      `json:"what"`
	Override string    `json:"override"` // its ID; empty for a bucket
	Author   string    `json:"author"`   // who did it; mete itself that it expired
	Reason   string    `json:"reason"`   // may be empty for a bucket

	// Of what was done to a bucket: its key; how many tokens it was given by a reset, or
	// that were taken; the author's role, and from where. What is not known is empty:
	// a version from before these fields drops Tokens, Role and From when it changes
	// the document.
	Key    string      `json:"key,omitempty"`
	Tokens json.Number `json:"tokens,omitempty"`
	Role   string      `json:"role,omitempty"`
	From   string      `json:"from,omitempty"`

	// Of [WhatCleared]: the rule, and how many buckets were removed.
	Rule    string `json:"rule,omitempty"`
	Buckets int64  `json:"buckets,omitempty"`

	// Before and After are the override as it was and as it is. Nil is not there.
	Before *policy.Override `json:"before,omitempty"`
	After  *policy.Override `json:"after,omitempty"`
}

// A What is the kind of an entry. [WhatReset], [WhatTaken] and [WhatCleared] concern buckets.
type What string

const (
	WhatMade    What = "made"    // also in the place of one with the same ID
	WhatRemoved What = "removed" // by hand
	WhatExpired What = "expired"
)

// decode reads a document.
func decode(data []byte) (d document, err error) {
	if err := json.Unmarshal(data, &d); err != nil {
		return document{}, fmt.Errorf("the document cannot be read: %w", err)
	}
	switch {
	case d.Version > version:
		return document{}, errVersion
	case d.Version != version:
		return document{}, fmt.Errorf("the document cannot be read: its version is %d", d.Version)
	}
	for i := range d.Audit {
		d.Audit[i].unstored()
	}
	return d, nil
}

// encode returns d as JSON that fits a store, and forgets what of the audit does not.
func (d *document) encode() ([]byte, error) {
	list, err := json.Marshal(d.Overrides)
	if err != nil {
		return nil, err
	}
	if len(list) > MaxBytes {
		return nil, fmt.Errorf("%w: they have %d bytes, the most is %d", ErrFull, len(list), MaxBytes)
	}
	d.forgetActs()
	stored := document{Version: d.Version, Overrides: d.Overrides, Audit: make([]Entry, len(d.Audit))}
	for i := range d.Audit {
		stored.Audit[i] = d.Audit[i].stored()
	}
	const frame = 100
	left := store.MaxDocumentBytes - len(list) - frame
	first := max(len(d.Audit)-MaxEntries, 0)
	for i := len(d.Audit) - 1; i >= first; i-- {
		entry, err := json.Marshal(&stored.Audit[i])
		if err != nil {
			return nil, err
		}
		if left -= len(entry) + 1; left < 0 {
			first = i + 1
		}
	}
	d.Audit, stored.Audit = d.Audit[first:], stored.Audit[first:]
	return json.Marshal(stored)
}

// clone returns a copy that can be changed.
func (d document) clone() document {
	return document{Version: version, Overrides: slices.Clone(d.Overrides), Audit: slices.Clone(d.Audit)}
}

// index is where an override is, -1 for nowhere.
func (d *document) index(id string) int {
	return slices.IndexFunc(d.Overrides, func(r record) bool { return r.Override.ID == id })
}

// follows reports whether d was made of other.
func (d *document) follows(other document) bool {
	n := len(other.Audit)
	return n == 0 || d.knows(other.Audit[n-1].ID)
}

// knows reports whether an entry is there.
func (d *document) knows(entry string) bool {
	return slices.ContainsFunc(d.Audit, func(e Entry) bool { return e.ID == entry })
}

// same reports whether d has the overrides of other, whatever was done meanwhile.
func (d *document) same(other *document) bool {
	return slices.EqualFunc(d.Overrides, other.Overrides, func(a, b record) bool { return reflect.DeepEqual(a, b) })
}

// live are the overrides that have not expired by now.
func (d *document) live(now time.Time) (list []policy.Override) {
	for i := range d.Overrides {
		if d.Overrides[i].ExpiresAt.After(now) {
			list = append(list, d.Overrides[i].Override)
		}
	}
	return list
}
