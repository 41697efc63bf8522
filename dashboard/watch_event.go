// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/seconds"
	"github.com/metehq/mete/policy"
)

// A watchedBucket is what is told of a bucket. Amounts are in tokens, exact to a
// thousandth; durations are in seconds, and null is for ever.
type watchedBucket struct {
	At        json.Number `json:"at"` // Unix seconds
	Known     bool        `json:"known"`
	Rule      string      `json:"rule"`
	Limit     string      `json:"limit"`
	Mode      string      `json:"mode"`
	Shadow    bool        `json:"shadow"`
	Algorithm string      `json:"algorithm"`
	Words     string      `json:"words"`

	Capacity  json.Number `json:"capacity"`
	Remaining json.Number `json:"remaining"`
	Owed      json.Number `json:"owed"`
	Rate      watchedRate `json:"rate"`
	Refill    string      `json:"refill"`
	Anchor    string      `json:"anchor"`
	Queue     json.Number `json:"queue"`

	Cost       json.Number     `json:"cost"`
	RetryAfter json.RawMessage `json:"retry_after"`
	FullAfter  json.RawMessage `json:"full_after"`

	// The IDs of overrides; empty for none.
	Override  string `json:"override"`
	BlockedBy string `json:"blocked_by"`
	AllowedBy string `json:"allowed_by"`
}

type watchedRate struct {
	Tokens json.Number     `json:"tokens"`
	Per    json.RawMessage `json:"per"`
}

// bucketEvent is b, seen at that time.
func bucketEvent(b *mete.Bucket, at time.Time) watchedBucket {
	l := b.Snapshot.Limit
	rate, capacity, queue := l.Rate(), l.Capacity(), bucket.Tokens(0)
	if l.Queued() {
		queue = l.MaxReserved()
		capacity += queue
	}
	return watchedBucket{
		At: json.Number(appendTime(nil, at)), Known: true, Rule: b.Rule.Name, Limit: b.Limit.Name, Mode: b.Rule.Mode.String(), Shadow: b.Shadow,
		Algorithm: prose.Algorithm(b.Limit), Words: l.String(),
		Capacity: amount(capacity), Remaining: amount(b.Room()), Owed: amount(b.Owed()),
		Rate: watchedRate{amount(rate.Tokens), seconds.AppendDuration(nil, rate.Per)}, Refill: prose.Refill(l), Anchor: prose.Anchor(b.Limit.Bucket), Queue: amount(queue),
		Cost: amount(b.Cost), RetryAfter: seconds.AppendDuration(nil, b.RetryAfter), FullAfter: seconds.AppendDuration(nil, b.FullAfter()),
		Override: overrideID(b.Limit.Override), BlockedBy: overrideID(b.Block), AllowedBy: overrideID(b.Allow),
	}
}

func amount(t bucket.Tokens) json.Number { return json.Number(t.String()) }

func overrideID(o *policy.Override) string {
	if o == nil {
		return ""
	}
	return o.ID
}

// appendTime appends Unix seconds, exact to a microsecond.
func appendTime(b []byte, at time.Time) []byte {
	const million = 1_000_000
	us := at.UnixMicro()
	b = append(strconv.AppendInt(b, us/million, 10), '.')
	return append(b, strconv.FormatInt(million+us%million, 10)[1:]...)
}

// maxDecisions bounds the decisions in one list. Those beyond it are counted.
const maxDecisions = 500

// decisions are those about one bucket that are yet to be told. It is safe for
// concurrent use.
type decisions struct {
	mu      sync.Mutex // guards the fields below
	list    []decision
	dropped int
}

// A decision is one about a bucket that is watched.
type decision struct {
	at              time.Time
	allowed         bool
	cost, remaining bucket.Tokens
	retry, wait     time.Duration
	shadow          bool
	degraded        bool
}

func newDecisions() *decisions { return &decisions{list: make([]decision, 0, maxDecisions)} }

// add notes a decision. What a limit in shadow says is its own: the request happens
// all the same.
func (s *decisions) add(_ context.Context, d *mete.Decision, status *mete.Status) {
	one := decision{
		at: time.Now(), allowed: d.Allowed, cost: status.Cost, remaining: status.Room(), retry: status.RetryAfter, wait: d.Wait, degraded: d.Degraded,
	}
	for i := range d.Shadow {
		if status == &d.Shadow[i] {
			one.shadow, one.allowed = true, status.Allowed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == cap(s.list) {
		s.dropped++
		return
	}
	s.list = append(s.list, one)
}

// frame is that of all decisions that are yet to be told; nil for none.
func (s *decisions) frame() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 && s.dropped == 0 {
		return nil
	}
	b := append(make([]byte, 0, 64*(len(s.list)+2)), "event: decisions\ndata: {\"list\":["...)
	for i := range s.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.list[i].append(b)
	}
	b = append(b, `],"dropped":`...)
	b = append(strconv.AppendInt(b, int64(s.dropped), 10), "}\n\n"...)
	s.list, s.dropped = s.list[:0], 0
	return b
}

// append appends d as JSON: a list of when, whether it was allowed, its cost, what is
// left, how long to wait before another attempt and before its work, and whether that
// was in shadow, and without the store.
func (d *decision) append(b []byte) []byte {
	b = appendTime(append(b, '['), d.at)
	b = appendFlag(b, d.allowed)
	b = append(append(b, ','), d.cost.String()...)
	b = append(append(b, ','), d.remaining.String()...)
	b = seconds.AppendDuration(append(b, ','), d.retry)
	b = seconds.AppendDuration(append(b, ','), d.wait)
	b = appendFlag(b, d.shadow)
	return append(appendFlag(b, d.degraded), ']')
}

func appendFlag(b []byte, flag bool) []byte {
	if flag {
		return append(b, ",1"...)
	}
	return append(b, ",0"...)
}
