// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy/lint"
)

func (p *play) buildResult(export bool) api.PlayLaneResult {
	l := p.limit.Bucket
	n, per := l.Refill()
	r := api.PlayLaneResult{
		Name: p.Name, Algorithm: p.Algorithm, Rule: p.rule, Limit: p.describeLimit(), Capacity: api.Amount(l.Capacity()),
		Window: api.Seconds(p.per), Policy: p.text, Warnings: []string{},
		Totals: p.sumTotals(), FirstDenial: p.findFirstDenial(), Decisions: make([]api.PlayDecision, len(p.decisions)), Levels: p.levels,
	}
	if p.Algorithm != concurrency {
		r.PerSecond = float64(n) / float64(per) * 1000
	}
	for i := range p.decisions {
		r.Decisions[i] = p.decisions[i].PlayDecision
	}
	if l.Queued() {
		r.Owes = api.Amount(l.MaxReserved())
	}
	for _, w := range lint.Check(p.matcher, time.Now()) {
		if strings.HasPrefix(w.Path, "/rules/0/algorithm_config") {
			r.Warnings = append(r.Warnings, w.Reason)
		}
	}
	r.Words = p.describe(&r)
	if export {
		r.Trace = p.formatTrace()
	}
	return r
}

func (p *play) sumTotals() api.PlayTotals {
	t := api.PlayTotals{Sent: len(p.decisions), Share: 1, Never: p.neverAllowed, Unserved: p.lateRetries}
	crowd := 0
	for i := range p.decisions {
		d := &p.decisions[i]
		if crowd++; i > 0 && d.At != p.decisions[i-1].At {
			crowd = 1
		}
		t.MaxAtOnce = max(t.MaxAtOnce, crowd)
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
	if p.Algorithm != concurrency {
		t.Peak, t.PeakAt = p.findPeak()
	}
	return t
}

// findPeak returns the most tokens that were spent within any half-open window of the lane's period, and the start of
// that window. A request that waits spends its tokens when it starts.
func (p *play) findPeak() (most api.Amount, at api.Seconds) {
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
			most, at = sum, secondsAt(all[first].at)
		}
	}
	return most, at
}

func (p *play) findFirstDenial() *api.PlayFirstDenial {
	i := slices.IndexFunc(p.decisions, func(d decision) bool { return !d.Allowed })
	if i < 0 {
		return nil
	}
	d := &p.decisions[i]
	return &api.PlayFirstDenial{Request: i + 1, At: secondsAt(d.At), RetryAfter: api.Seconds(d.RetryAfter), Before: i}
}

func (p *play) formatTrace() string {
	var b []byte
	for i := range p.decisions {
		d := &p.decisions[i]
		b = api.AppendMicros(append(b, `{"at":`...), int64(d.At))
		b = append(b, `,"ip":"`+Client+`"`...)
		if d.requestCost > 0 {
			b = append(append(b, `,"cost":`...), d.requestCost.String()...)
		}
		if p.Algorithm == concurrency {
			b = api.AppendMicros(append(b, `,"duration":`...), p.per.Microseconds())
		}
		b = append(b, "}\n"...)
	}
	return string(b)
}
