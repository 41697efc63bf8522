// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"slices"
	"time"
)

// Keep is the time for which an expired override stays in the list.
const Keep = 24 * time.Hour

// expirer is the author of entries about expirations.
const expirer = "mete"

// isDue reports whether expire would change d.
func (d *document) isDue(now time.Time) bool {
	return slices.ContainsFunc(d.Overrides, func(r record) bool {
		return !r.ExpiresAt.After(now) && !r.Expired || r.isOld(now)
	})
}

// isOld reports whether the override expired more than Keep ago.
func (r *record) isOld(now time.Time) bool { return r.Expired && !r.ExpiresAt.Add(Keep).After(now) }

// expire records overrides that have expired by now, and removes old ones.
func (d *document) expire(now time.Time) {
	for i := range d.Overrides {
		r := &d.Overrides[i]
		if r.Expired || r.ExpiresAt.After(now) {
			continue
		}
		r.Expired = true
		d.Audit = append(d.Audit, Entry{
			ID: newEntryID(), At: r.ExpiresAt, What: WhatExpired, Override: r.Override.ID, Author: expirer,
			Reason: "it expired", Before: copyOf(r.Override),
		})
	}
	d.Overrides = slices.DeleteFunc(d.Overrides, func(r record) bool { return r.isOld(now) })
}
