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

// maxInteger is the largest integer of a structured field (RFC 9651, section 3.3.1).
const maxInteger = 999_999_999_999_999

type item struct {
	policy string // `"free";q=20;w=2`
	limit  string // `"free";r=`
}

// maxItems bounds the cached items. They include items of earlier policies. At the bound, all are dropped.
const maxItems = 8192

func (w *Writer) item(l *policy.Limit) *item {
	if kept, ok := w.items.Load(l); ok {
		return kept.(*item)
	}
	var s fieldBuilder
	name := `"` + quoteEscaper.Replace(l.Name) + `"`
	s.text(name + paramQuota)
	s.int(min(maxQuota(l.Bucket).Whole(), maxInteger))
	if fill := l.Bucket.TimeFor(maxQuota(l.Bucket)); fill != bucket.Never && !l.HoldsSlot() {
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

// quoteEscaper escapes a name for a structured-field string (RFC 9651, section 4.1.6). The policy rejects names
// with characters that such strings cannot contain.
var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// writeDraft writes the two fields of the draft, with an item per limit. retry is the value of Retry-After; the
// denied limit with the longest wait uses the same value.
func (w *Writer) writeDraft(s *fieldBuilder, d *mete.Decision, first *mete.Status, retry int64) {
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

func (w *Writer) writeWarning(s *fieldBuilder, d *mete.Decision) {
	begun := false
	for i := range d.Limits() {
		status := &d.Limits()[i]
		if len(status.Limit.Stages) == 0 {
			continue
		}
		stage := status.Stage()
		if stage == nil || status.Limit.Reason != policy.ReasonLoop && !w.shows(status, anyDialect) {
			continue
		}
		if !begun {
			s.begin(warning)
			begun = true
		}
		s.item()
		s.text(`"` + quoteEscaper.Replace(status.Limit.Name))
		if status.Limit.Reason == policy.ReasonLoop {
			s.text(`";count=`)
			s.int((status.Snapshot.Limit.Capacity() - status.Room()).Whole())
			continue
		}
		s.text(`";used=` + strings.TrimSuffix(stage.Share, "%"))
	}
}

// sinceDecided is the assumed age of the decision. Without it, the end of a window, which is usually a whole
// second, would be rounded up to the next second.
const sinceDecided = 10 * time.Millisecond

// writeTrios writes the dialects that show only the deciding limit. retry is the value of Retry-After.
func (w *Writer) writeTrios(s *fieldBuilder, d *mete.Decision, first *mete.Status, retry int64) {
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

// resetAt returns the Unix time at which the decider's bucket is full; for a denial, not before Retry-After has
// passed. For a sliding window or log, it is the end of the effective window. It returns [never] if no wait helps
// or the bucket never fills.
func (w *Writer) resetAt(d *mete.Decision, decider *mete.Status, effective time.Duration, retry int64) int64 {
	after := effective
	if decider.Snapshot.Limit.Algorithm() < bucket.AlgorithmSlidingWindow {
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

func writeTrio(s *fieldBuilder, first field, decider *mete.Status, available, reset int64) {
	s.intField(first, maxQuota(decider.Limit.Bucket).Whole())
	s.intField(first+1, available)
	if reset != never {
		s.intField(first+2, reset)
	}
}

// quota returns a limit's available whole tokens, and its effective window or [bucket.Never].
func quota(s *mete.Status) (available int64, effective time.Duration) {
	if !s.Allowed {
		return 0, s.RetryAfter
	}
	available = min(s.Room().Whole(), maxInteger)
	return available, window(s, available)
}

// maxQuota returns the most tokens that a limit can allow, including the queue of a leaky bucket.
func maxQuota(l bucket.Limit) bucket.Tokens {
	if l.Queued() {
		return l.Capacity() + l.MaxReserved()
	}
	return l.Capacity()
}

func window(s *mete.Status, available int64) time.Duration {
	limit := s.Snapshot.Limit
	whole := maxQuota(limit)
	if limit.Algorithm() == bucket.AlgorithmConcurrency {
		if next := s.NextAfter(); next > 0 {
			return next
		}
		return bucket.Never
	}
	if room := s.Room(); available > 0 && (limit.Algorithm() == bucket.AlgorithmContinuous || room == whole) {
		return limit.TimeFor(room)
	}
	// The time until the next whole token, which comes after any debt.
	return s.RoomAfter(min(bucket.Tokens(available+1)*bucket.Token, whole))
}
