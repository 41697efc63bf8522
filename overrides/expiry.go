// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"slices"
	"time"
)

// KeepExpired is the time for which an expired override stays in the list.
const KeepExpired = 24 * time.Hour

const expirer = "mete"

func (d *document) isDue(now time.Time) bool {
	return slices.ContainsFunc(d.Overrides, func(r record) bool {
		return !r.ExpiresAt.After(now) && !r.Expired || r.isOld(now)
	})
}

func (r *record) isOld(now time.Time) bool {
	return r.Expired && !r.ExpiresAt.Add(KeepExpired).After(now)
}

func (d *document) expire(now time.Time) {
	for i := range d.Overrides {
		r := &d.Overrides[i]
		if r.Expired || r.ExpiresAt.After(now) {
			continue
		}
		r.Expired = true
		d.Audit = append(d.Audit, Entry{
			ID: newEntryID(), At: r.ExpiresAt, Kind: EntryExpired, Override: r.Override.ID, Author: expirer,
			Reason: "it expired", Before: copyOf(r.Override),
		})
	}
	d.Overrides = slices.DeleteFunc(d.Overrides, func(r record) bool { return r.isOld(now) })
}
