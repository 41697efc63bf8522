// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
)

// A Report contains the results of a run. Times are in seconds.
type Report struct {
	Target      string  `json:"target"` // without passwords
	Concurrency int     `json:"concurrency"`
	Keys        int     `json:"keys"`
	Rate        float64 `json:"rate,omitempty"` // of an open loop
	Seconds     float64 `json:"seconds"`

	Decisions int64        `json:"decisions"` // without errors
	Allowed   int64        `json:"allowed"`
	Denied    int64        `json:"denied"`
	Errors    []ErrorCount `json:"errors"`
	PerSecond float64      `json:"per_second"` // decisions

	// Late counts the decisions of an open loop that were due but not started.
	Late int64 `json:"late,omitempty"`

	Latency   Latency `json:"latency"`
	Histogram []Bar   `json:"histogram"`
}

// Latency describes the latency of decisions.
type Latency struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// A Bar counts the decisions that took less than UpTo, excluding earlier bars.
type Bar struct {
	UpTo  float64 `json:"up_to"`
	Count int64   `json:"count"`
}

// An ErrorCount counts errors of one kind.
type ErrorCount struct {
	Kind    string `json:"kind"`
	Count   int64  `json:"count"`
	Example string `json:"example"` // the text of one of them
}

func (l *load) report() Report {
	h := l.counts.latencies
	seconds := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	r := Report{
		Target: l.options.shown(), Concurrency: l.options.Concurrency, Keys: l.options.Keys, Rate: l.options.Rate,
		Seconds: l.elapsed.Seconds(), Allowed: l.counts.allowed, Denied: l.counts.denied, Errors: []ErrorCount{},
		Latency: Latency{
			Min: seconds(h.Min()), Mean: h.Mean() / float64(time.Second), P50: seconds(h.ValueAtQuantile(50)), P90: seconds(h.ValueAtQuantile(90)),
			P99: seconds(h.ValueAtQuantile(99)), P999: seconds(h.ValueAtQuantile(99.9)), Max: seconds(h.Max()),
		},
	}
	if h.TotalCount() == 0 {
		r.Latency = Latency{}
	}
	r.Decisions = r.Allowed + r.Denied
	if r.Seconds > 0 {
		r.PerSecond = float64(r.Decisions) / r.Seconds
	}
	var failed int64
	for _, e := range l.counts.errors {
		r.Errors = append(r.Errors, *e)
		failed += e.Count
	}
	slices.SortFunc(r.Errors, func(a, b ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	r.Late = max(l.due-r.Decisions-failed, 0)
	r.Histogram = bars(h.Distribution())
	return r
}

// bars merges the bars of a histogram. Each result is twice as wide as the one before.
func bars(fine []hdrhistogram.Bar) []Bar {
	all := []Bar{}
	upTo := int64(time.Microsecond)
	for _, f := range fine {
		for f.From >= upTo {
			upTo *= 2
			if len(all) > 0 {
				all = append(all, Bar{UpTo: time.Duration(upTo).Seconds()})
			}
		}
		switch {
		case f.Count == 0:
		case len(all) == 0:
			all = append(all, Bar{time.Duration(upTo).Seconds(), f.Count})
		default:
			all[len(all)-1].Count += f.Count
		}
	}
	for len(all) > 0 && all[len(all)-1].Count == 0 {
		all = all[:len(all)-1]
	}
	return all
}

// shown returns the target without passwords.
func (o *Options) shown() string {
	if u, err := url.Parse(o.Target); err == nil && strings.HasPrefix(u.Scheme, "http") {
		u.User = nil
		return u.String()
	}
	return storeurl.Shown(o.Target)
}

// WriteJSON writes the report as JSON on one line.
func (r Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteText writes the report as text.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "target     %s, %s at a time, %s", r.Target, prose.Count(r.Concurrency, "call"), prose.Count(r.Keys, "key"))
	if r.Rate > 0 {
		fmt.Fprintf(&b, ", %g due per second", r.Rate)
	}
	fmt.Fprintf(&b, "\ndecisions  %d in %s: %.0f per second\n", r.Decisions, duration(r.Seconds), r.PerSecond)
	if r.Decisions > 0 {
		fmt.Fprintf(&b, "allowed    %d, %.2f%%\n", r.Allowed, 100*float64(r.Allowed)/float64(r.Decisions))
		fmt.Fprintf(&b, "denied     %d, %.2f%%\n", r.Denied, 100*float64(r.Denied)/float64(r.Decisions))
	}
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "errors     %d %s, for example: %s\n", e.Count, e.Kind, visible.Text(e.Example))
	}
	if r.Late > 0 {
		fmt.Fprintf(&b, "late       %s due but not started: the target is slower than the rate, or needs more --concurrency\n", prose.Count(r.Late, "decision was", "decisions were"))
	}
	r.writeLatency(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeLatency writes the quantiles and the histogram.
func (r *Report) writeLatency(b *strings.Builder) {
	if r.Decisions == 0 {
		return
	}
	l := r.Latency
	fmt.Fprintf(b, "latency    p50 %s, p90 %s, p99 %s, p99.9 %s, max %s\n\n",
		duration(l.P50), duration(l.P90), duration(l.P99), duration(l.P999), duration(l.Max))
	most := int64(1)
	for _, bar := range r.Histogram {
		most = max(most, bar.Count)
	}
	for _, bar := range r.Histogram {
		width := int((bar.Count*2*barWidth + most - 1) / most)
		line := fmt.Sprintf("  < %-8s %10d  %s", duration(bar.UpTo), bar.Count, strings.Repeat("█", width))
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
}

// duration formats seconds.
func duration(seconds float64) string {
	return prose.Duration(time.Duration(seconds * float64(time.Second)))
}
