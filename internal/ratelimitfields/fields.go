// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// maxInteger is the largest integer of a structured field: RFC 9651, 3.3.1.
const maxInteger = 999_999_999_999_999

// An item is what of a limit's fields is always the same.
type item struct {
	policy string // `"free";q=20;w=2`
	limit  string // `"free";r=`
}

// maxItems bounds the items that are kept. They are those of the policy in
// force, and of those before it until the bound is reached; then all go.
const maxItems = 8192

// item returns l's item.
func (w *Writer) item(l *policy.Limit) *item {
	if kept, ok := w.items.Load(l); ok {
		return kept.(*item)
	}
	var s sheet
	name := `"` + quoteEscaper.Replace(l.Name) + `"`
	s.text(name + paramQuota)
	s.int(min(l.Bucket.Capacity().Whole(), maxInteger))
	if fill := l.Bucket.TimeFor(l.Bucket.Capacity()); fill != bucket.Never {
		s.text(paramWindow)
		s.int(seconds(fill))
	}
	made := &item{policy: string(s.buf), limit: name + paramAvailable}
	if w.itemCount.Add(1) > maxItems {
		w.items.Clear()
		w.itemCount.Store(1)
	}
	w.items.Store(l, made)
	return made
}

// quoteEscaper escapes a name for a structured-field string: RFC 9651, 4.1.6.
// What no such string can carry is in no name: the policy refuses it.
var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// writeDraft writes the two fields of the draft, with an item for each limit.
func (w *Writer) writeDraft(s *sheet, d *mete.Decision) {
	s.begin(draftPolicy)
	for i := range d.Limits {
		s.item()
		s.text(w.item(d.Limits[i].Limit).policy)
	}
	s.begin(draftLimit)
	for i := range d.Limits {
		available, effective := quota(&d.Limits[i])
		s.item()
		s.text(w.item(d.Limits[i].Limit).limit)
		s.int(available)
		if effective != never {
			s.text(paramEffective)
			s.int(effective)
		}
	}
}

// writeTrios writes the fields of the dialects that show one limit: the one
// that decided. retry is what Retry-After says.
func (w *Writer) writeTrios(s *sheet, d *mete.Decision, retry int64) {
	decider := d.Decider()
	if decider == nil {
		return
	}
	available, reset := quota(decider)
	if !d.Allowed {
		reset = retry
	}
	capacity := decider.Limit.Bucket.Capacity().Whole()
	if w.legacy {
		writeTrio(s, legacyLimit, capacity, available, reset)
	}
	if w.x {
		if reset != never {
			reset = unix(w.now(), reset)
		}
		writeTrio(s, xLimit, capacity, available, reset)
	}
}

// writeTrio writes the three fields of which first is the first.
func writeTrio(s *sheet, first field, capacity, available, reset int64) {
	s.intField(first, capacity)
	s.intField(first+1, available)
	if reset != never {
		s.intField(first+2, reset)
	}
}

// quota returns a limit's available quota in whole tokens, and its effective
// window in seconds: [never] where it has none.
func quota(s *mete.Status) (available, effective int64) {
	if !s.Allowed {
		if s.RetryAfter == bucket.Never {
			return 0, never
		}
		return 0, seconds(s.RetryAfter)
	}
	available = min(s.Remaining().Whole(), maxInteger)
	return available, window(s, available)
}

// window returns the effective window of an admitting limit.
func window(s *mete.Status, available int64) int64 {
	limit := s.Snapshot.Limit
	var d time.Duration
	if available > 0 {
		d = limit.TimeFor(s.Remaining())
	} else {
		// Until the first whole token is there. What is owed comes before it.
		d = s.FullAfter() - limit.TimeFor(limit.Capacity()-bucket.Token)
	}
	if d == bucket.Never {
		return never
	}
	return seconds(d)
}
