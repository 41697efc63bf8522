// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"slices"
	"time"
)

// Keep is how long an override is listed after it has expired.
const Keep = 24 * time.Hour

// expirer is the author of entries that say that an override expired.
const expirer = "mete"

// due reports whether expire would change d.
func (d *document) due(now time.Time) bool {
	return slices.ContainsFunc(d.Overrides, func(r record) bool {
		return !r.ExpiresAt.After(now) && !r.Expired || r.old(now)
	})
}

// old reports whether it has been listed long enough.
func (r *record) old(now time.Time) bool { return r.Expired && !r.ExpiresAt.Add(Keep).After(now) }

// expire remembers what has expired by now, and removes what did long ago.
func (d *document) expire(now time.Time) {
	for i := range d.Overrides {
		r := &d.Overrides[i]
		if r.Expired || r.ExpiresAt.After(now) {
			continue
		}
		r.Expired = true
		d.Audit = append(d.Audit, Entry{
			ID: newEntryID(), At: r.ExpiresAt, What: WhatExpired, Override: r.Override.ID, Author: expirer,
			Reason: "its time was over", Before: copyOf(r.Override),
		})
	}
	d.Overrides = slices.DeleteFunc(d.Overrides, func(r record) bool { return r.old(now) })
}
