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
	// MaxEntries bounds the audit. The oldest entries are dropped first.
	MaxEntries = 1000

	// MaxBytes bounds the overrides of a document, as JSON. The rest of [store.MaxDocumentBytes] is for the audit.
	MaxBytes = 512 << 10

	// version is the version of the document format. A manager does not change documents with a later version.
	version = 1
)

var errVersion = errors.New("the document was written by a newer version of mete")

type document struct {
	Version   int      `json:"version"`
	Overrides []record `json:"overrides"` // in order of creation
	Audit     []Entry  `json:"audit"`     // the latest last
}

type record struct {
	policy.Override
	Expired bool `json:"expired,omitempty"` // an expiration is in the audit
}

// An Entry is an entry of the audit.
type Entry struct {
	ID       string    `json:"id"` // unique
	At       time.Time `json:"at"`
	Kind     EntryKind `json:"what"`
	Override string    `json:"override"` // the override's ID; empty for a bucket
	Author   string    `json:"author"`   // of the change; "mete" for an expiration
	Reason   string    `json:"reason"`   // may be empty for a bucket

	// For an act on a bucket: its key, the tokens that were added or taken, the role of the author, and the
	// client's address. Unknown values are empty. Older versions drop Tokens, Role and From when they change the
	// document.
	Key    string      `json:"key,omitempty"`
	Tokens json.Number `json:"tokens,omitempty"`
	Role   string      `json:"role,omitempty"`
	From   string      `json:"from,omitempty"`

	// For [EntryCleared]: the rule, and the number of removed buckets.
	Rule    string `json:"rule,omitempty"`
	Buckets int64  `json:"buckets,omitempty"`

	// Before and After are the override before and after the change, or nil.
	Before *policy.Override `json:"before,omitempty"`
	After  *policy.Override `json:"after,omitempty"`
}

// An EntryKind is the kind of an entry. [EntryReset], [EntryTaken] and [EntryCleared] are acts on buckets.
type EntryKind string

const (
	EntryMade    EntryKind = "made"    // created, or replaced the override with its ID
	EntryRemoved EntryKind = "removed" // by an admin
	EntryExpired EntryKind = "expired"
)

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
		d.Audit[i].restore()
	}
	return d, nil
}

// encode returns d as JSON that fits a store. It drops old entries that do not fit.
func (d *document) encode() ([]byte, error) {
	list, err := json.Marshal(d.Overrides)
	if err != nil {
		return nil, err
	}
	if len(list) > MaxBytes {
		return nil, fmt.Errorf("%w: they have %d bytes, the maximum is %d", ErrFull, len(list), MaxBytes)
	}
	d.dropActs()
	stored := document{Version: d.Version, Overrides: d.Overrides, Audit: make([]Entry, len(d.Audit))}
	for i := range d.Audit {
		stored.Audit[i] = d.Audit[i].toStored()
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

func (d document) clone() document {
	return document{Version: version, Overrides: slices.Clone(d.Overrides), Audit: slices.Clone(d.Audit)}
}

func (d *document) index(id string) int {
	return slices.IndexFunc(d.Overrides, func(r record) bool { return r.Override.ID == id })
}

func (d *document) isLaterThan(other document) bool {
	n := len(other.Audit)
	return n == 0 || d.hasEntry(other.Audit[n-1].ID)
}

func (d *document) hasEntry(entry string) bool {
	return slices.ContainsFunc(d.Audit, func(e Entry) bool { return e.ID == entry })
}

func (d *document) sameOverrides(other *document) bool {
	return slices.EqualFunc(d.Overrides, other.Overrides, func(a, b record) bool { return reflect.DeepEqual(a, b) })
}

func (d *document) liveOverrides(now time.Time) (list []policy.Override) {
	for i := range d.Overrides {
		if d.Overrides[i].ExpiresAt.After(now) {
			list = append(list, d.Overrides[i].Override)
		}
	}
	return list
}
