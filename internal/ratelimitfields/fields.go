// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/dialect"
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
	s.int(min(most(l.Bucket).Whole(), maxInteger))
	if fill := l.Bucket.TimeFor(most(l.Bucket)); fill != bucket.Never {
		s.text(paramWindow)
		s.int(wholeSeconds(fill))
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

// writeDraft writes the two fields of the draft, with an item for each limit that is
// in them. retry is the value of Retry-After: the denied limit with the longest wait
// has the same.
func (w *Writer) writeDraft(s *sheet, d *mete.Decision, first *mete.Status, retry int64) {
	s.begin(draftPolicy)
	for i := range d.Limits() {
		if w.shows(&d.Limits()[i], dialect.Draft11) {
			made := w.item(d.Limits()[i].Limit)
			s.items = append(s.items, made)
			s.item()
			s.text(made.policy)
		}
	}
	longest := bucket.Never
	if decider := w.decider(d, first, dialect.Draft11); !d.Allowed && decider != nil && retry != never {
		longest = decider.RetryAfter
	}
	s.begin(draftLimit)
	shown := s.items
	for i := range d.Limits() {
		if !w.shows(&d.Limits()[i], dialect.Draft11) {
			continue
		}
		available, effective := s.quota(&d.Limits()[i], first)
		s.item()
		s.text(shown[0].limit)
		shown = shown[1:]
		s.int(available)
		switch {
		case effective == bucket.Never:
		case !d.Limits()[i].Allowed && effective == longest:
			s.text(paramEffective)
			s.int(retry)
		default:
			s.text(paramEffective)
			s.int(wholeSeconds(effective))
		}
	}
}

// writeWarning writes an item for each limit that warns.
func (w *Writer) writeWarning(s *sheet, d *mete.Decision) {
	begun := false
	for i := range d.Limits() {
		status := &d.Limits()[i]
		if len(status.Limit.Stages) == 0 {
			continue
		}
		stage := status.Stage()
		if stage == nil || !w.shows(status, dialect.Draft11|dialect.Legacy|dialect.X) {
			continue
		}
		if !begun {
			s.begin(warning)
			begun = true
		}
		s.item()
		s.text(`"` + quoteEscaper.Replace(status.Limit.Name) + `";used=` + strings.TrimSuffix(stage.Share, "%"))
	}
}

// sinceDecided is how long ago the decision may have been made. What is counted
// from now ends so much too late, and the end of a window at a whole second, as
// most are, would be rounded up to the next one.
const sinceDecided = 10 * time.Millisecond

// writeTrios writes the fields of the dialects that show one limit: the one
// that decided. retry is the value of Retry-After.
func (w *Writer) writeTrios(s *sheet, d *mete.Decision, first *mete.Status, retry int64) {
	if decider := w.decider(d, first, dialect.Legacy); decider != nil {
		available, effective := s.quota(decider, first)
		reset := retry
		if d.Allowed {
			if reset = never; effective != bucket.Never {
				reset = wholeSeconds(effective)
			}
		}
		writeTrio(s, legacyLimit, decider, available, reset)
	}
	if decider := w.decider(d, first, dialect.X); decider != nil {
		available, effective := s.quota(decider, first)
		writeTrio(s, xLimit, decider, available, w.resetAt(d, decider, effective, retry))
	}
}

// resetAt returns the Unix time at which the decider's bucket is full; of a denial, not
// before Retry-After has passed. A sliding window or log is no bucket: the time is the end
// of its effective window. resetAt returns [never] where no wait helps, or where the bucket
// never fills.
func (w *Writer) resetAt(d *mete.Decision, decider *mete.Status, effective time.Duration, retry int64) int64 {
	after := effective
	if decider.Snapshot.Limit.Algorithm() < bucket.SlidingWindow {
		after = decider.FullAfter()
	}
	if after == bucket.Never || retry == never {
		return never
	}
	now := w.now()
	at := unix(now.Add(after - min(after, sinceDecided)))
	if !d.Allowed {
		at = max(at, unix(now.Add(time.Duration(retry)*time.Second)))
	}
	return at
}

// writeTrio writes the three fields of which first is the first.
func writeTrio(s *sheet, first field, decider *mete.Status, available, reset int64) {
	s.intField(first, most(decider.Limit.Bucket).Whole())
	s.intField(first+1, available)
	if reset != never {
		s.intField(first+2, reset)
	}
}

// quota returns a limit's available quota in whole tokens, and its effective
// window: [bucket.Never] where it has none.
func quota(s *mete.Status) (available int64, effective time.Duration) {
	if !s.Allowed {
		return 0, s.RetryAfter
	}
	available = min(s.Room().Whole(), maxInteger)
	return available, window(s, available)
}

// most is what a request can be admitted for: of a leaky bucket, what can wait
// as well.
func most(l bucket.Limit) bucket.Tokens {
	if l.Queued() {
		return l.Capacity() + l.MaxReserved()
	}
	return l.Capacity()
}

// window returns the effective window of an admitting limit.
func window(s *mete.Status, available int64) time.Duration {
	limit := s.Snapshot.Limit
	whole := most(limit)
	if room := s.Room(); available > 0 && (limit.Algorithm() == bucket.Continuous || room == whole) {
		return limit.TimeFor(room)
	}
	// Until there is another whole token. What is owed comes before it.
	return s.RoomAfter(min(bucket.Tokens(available+1)*bucket.Token, whole))
}
