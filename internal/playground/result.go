// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
)

// A Result is what became of an [Input].
type Result struct {
	Seconds  api.Seconds  `json:"seconds"`  // how long the traffic lasts
	Requests int          `json:"requests"` // that came, not counting those that came back
	Lanes    []LaneResult `json:"lanes"`
}

// A LaneResult is what one limit did.
type LaneResult struct {
	Name      string      `json:"name"`
	Algorithm string      `json:"algorithm"`
	Rule      string      `json:"rule"`
	Limit     string      `json:"limit"`    // in words
	Capacity  api.Amount  `json:"capacity"` // the highest level
	Owes      api.Amount  `json:"owes"`     // how far below 0 the level can be
	PerSecond float64     `json:"per_second"`
	Window    api.Seconds `json:"window"` // what tokens come in
	Policy    string      `json:"policy"` // a policy file
	Warnings  []string    `json:"warnings"`

	Totals      Totals       `json:"totals"`
	FirstDenial *FirstDenial `json:"first_denial"` // null for none
	Words       []string     `json:"words"`

	Decisions []Decision `json:"decisions"` // in order of time
	Levels    []Level    `json:"levels"`

	Trace string `json:"trace,omitempty"` // JSON lines, where they were asked for
}

// Totals sum a lane up.
type Totals struct {
	Sent    int        `json:"sent"` // those that came back included
	Allowed int        `json:"allowed"`
	Denied  int        `json:"denied"`
	Delayed int        `json:"delayed"` // allowed, to start later
	Share   float64    `json:"share"`   // allowed of sent; 1 where none was sent
	Rate    float64    `json:"rate"`    // allowed a second, over the whole time
	Spent   api.Amount `json:"spent"`   // tokens

	LongestWait  api.Seconds `json:"longest_wait"`  // of those that were delayed
	LongestRetry api.Seconds `json:"longest_retry"` // of those that were denied, without those that no wait helps
	Never        int         `json:"never"`         // denied that no wait helps
	Unserved     int         `json:"unserved"`      // that were to come back after the end
	Crowd        int         `json:"crowd"`         // the most that came at one instant

	// Peak is the most tokens whose requests began within one Window, and when that was.
	Peak   api.Amount  `json:"peak"`
	PeakAt api.Seconds `json:"peak_at"`
}

// FirstDenial is the first request that was denied.
type FirstDenial struct {
	Request    int         `json:"request"` // the first is 1
	At         api.Seconds `json:"at"`
	RetryAfter api.Seconds `json:"retry_after"` // null for never
	Before     int         `json:"before"`      // requests that were allowed before it
}

// A Decision is one request and its answer. In JSON it is [at, allowed (0 or 1),
// retry_after (null for never), remaining (whole tokens), wait, level, cost, client,
// try].
type Decision struct {
	At         bucket.Instant // from the beginning
	Allowed    bool
	RetryAfter time.Duration
	Remaining  int64 // whole tokens that would still be admitted
	Wait       time.Duration
	Level      bucket.Tokens // afterwards; below 0 where tokens are owed
	Cost       bucket.Tokens
	Client     int // the number of who came, from 0 on
	Try        int // 1 for who came first

	asked bucket.Tokens // the cost that the request brought, 0 for none
}

// MarshalJSON implements [encoding/json.Marshaler].
func (d Decision) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 64), '[')
	b = api.AppendMicros(b, int64(d.At))
	b = append(b, ",0,"...)
	if d.Allowed {
		b[len(b)-2] = '1'
	}
	b = append(api.Seconds(d.RetryAfter).Append(b), ',')
	b = append(strconv.AppendInt(b, d.Remaining, 10), ',')
	b = append(api.Seconds(d.Wait).Append(b), ',')
	b = append(append(b, d.Level.String()...), ',')
	b = append(append(b, d.Cost.String()...), ',')
	b = append(strconv.AppendInt(b, int64(d.Client), 10), ',')
	return append(strconv.AppendInt(b, int64(d.Try), 10), ']'), nil
}

// A Level is what a bucket held at an instant, before the requests of that. In JSON it
// is [at, tokens].
type Level struct {
	At     bucket.Instant
	Tokens bucket.Tokens
}

// MarshalJSON implements [encoding/json.Marshaler].
func (l Level) MarshalJSON() ([]byte, error) {
	b := api.AppendMicros(append(make([]byte, 0, 32), '['), int64(l.At))
	return append(append(append(b, ','), l.Tokens.String()...), ']'), nil
}

// result sums a play up.
func (p *play) result(export bool) LaneResult {
	l := p.limit.Bucket
	n, per := l.Refill()
	r := LaneResult{
		Name: p.Name, Algorithm: p.Algorithm, Rule: p.rule, Limit: p.limitWords(), Capacity: api.Amount(l.Capacity()),
		PerSecond: float64(n) / float64(per) * 1000, Window: api.Seconds(p.per), Policy: p.text, Warnings: []string{},
		Totals: p.totals(), FirstDenial: p.firstDenial(), Decisions: p.decisions, Levels: p.levels,
	}
	if r.Decisions == nil {
		r.Decisions = []Decision{}
	}
	if l.Queued() {
		r.Owes = api.Amount(l.MaxReserved())
	}
	for _, w := range p.matcher.Warnings() {
		if strings.HasPrefix(w.Path, "/rules/0/algorithm_config") {
			r.Warnings = append(r.Warnings, w.Reason)
		}
	}
	r.Words = p.words(&r)
	if export {
		r.Trace = p.trace()
	}
	return r
}

func (p *play) totals() Totals {
	t := Totals{Sent: len(p.decisions), Share: 1, Never: p.never, Unserved: p.late}
	crowd := 0
	for i := range p.decisions {
		d := &p.decisions[i]
		if crowd++; i > 0 && d.At != p.decisions[i-1].At {
			crowd = 1
		}
		t.Crowd = max(t.Crowd, crowd)
		if !d.Allowed {
			t.Denied++
			if d.RetryAfter != bucket.Never {
				t.LongestRetry = max(t.LongestRetry, api.Seconds(d.RetryAfter))
			}
			continue
		}
		t.Allowed++
		t.Spent += api.Amount(d.Cost)
		if d.Wait > 0 {
			t.Delayed++
			t.LongestWait = max(t.LongestWait, api.Seconds(d.Wait))
		}
	}
	if t.Sent > 0 {
		t.Share = float64(t.Allowed) / float64(t.Sent)
	}
	if p.end > 0 {
		t.Rate = float64(t.Allowed) * float64(second) / float64(p.end)
	}
	t.Peak, t.PeakAt = p.peak()
	return t
}

// peak finds the window in which most tokens were spent: the work of a request begins
// when its wait is over. Windows are half open.
func (p *play) peak() (most api.Amount, at api.Seconds) {
	type spending struct {
		at   bucket.Instant
		cost api.Amount
	}
	var all []spending
	for i := range p.decisions {
		if d := &p.decisions[i]; d.Allowed {
			all = append(all, spending{d.At.Add(d.Wait), api.Amount(d.Cost)})
		}
	}
	slices.SortStableFunc(all, func(a, b spending) int { return int(a.at - b.at) })
	sum, first := api.Amount(0), 0
	for _, s := range all {
		for sum += s.cost; s.at-all[first].at >= bucket.Instant(p.per/time.Microsecond); first++ {
			sum -= all[first].cost
		}
		if sum > most {
			most, at = sum, micros(all[first].at)
		}
	}
	return most, at
}

func (p *play) firstDenial() *FirstDenial {
	i := slices.IndexFunc(p.decisions, func(d Decision) bool { return !d.Allowed })
	if i < 0 {
		return nil
	}
	d := &p.decisions[i]
	return &FirstDenial{Request: i + 1, At: micros(d.At), RetryAfter: api.Seconds(d.RetryAfter), Before: i}
}

// trace writes the requests as mete replay reads them.
func (p *play) trace() string {
	var b []byte
	for i := range p.decisions {
		d := &p.decisions[i]
		b = api.AppendMicros(append(b, `{"at":`...), int64(d.At))
		b = append(b, `,"ip":"`+Client+`"`...)
		if d.asked > 0 {
			b = append(append(b, `,"cost":`...), d.asked.String()...)
		}
		b = append(b, "}\n"...)
	}
	return string(b)
}
