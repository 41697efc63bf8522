// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Rate formats the refill rate: "10/s", "7/m", "0.5/s".
func Rate(l bucket.Limit) string {
	if c, ok := l.Calendar(); ok {
		n, _ := l.Refill()
		return fmt.Sprintf("%v/%v", n, c.Window)
	}
	n, p := l.Refill()
	for _, unit := range []struct {
		name string
		per  time.Duration
	}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"w", 7 * 24 * time.Hour}} {
		micros := unit.per.Microseconds()
		if p == 0 || micros%p != 0 || micros/p > int64(bucket.MaxTokens)/max(int64(n), 1) {
			continue
		}
		if amount := n * bucket.Tokens(micros/p); amount >= bucket.Token/10 {
			return amount.String() + "/" + unit.name
		}
	}
	return bucket.Rate{Tokens: n, Per: time.Duration(p) * time.Microsecond}.String()
}

// Algorithm returns the algorithm of l in the words of policy files.
func Algorithm(l *policy.Limit) string {
	for _, a := range policy.Algorithms() {
		if a.Reason == l.Reason {
			return a.Name
		}
	}
	return ""
}

// Limit describes l for readers without knowledge of its algorithm.
func Limit(l *policy.Limit) string {
	b := l.Bucket
	n, p := b.Refill()
	every := Duration(time.Duration(p) * time.Microsecond)
	full := Duration(b.TimeFor(b.Capacity()))
	text := strings.ReplaceAll(strings.TrimSuffix(l.Reason, "_exceeded"), "_", " ") + ": "
	switch Algorithm(l) {
	case "sliding_window":
		text += fmt.Sprintf("%v in any %s, about", n, every)
	case "sliding_log":
		text += fmt.Sprintf("%v in any %s, exactly", n, every)
	case "concurrency":
		text += fmt.Sprintf("%v at a time; a slot is free when its request ends, and %s after a crash", n, every)
	case "leaky_bucket":
		text += fmt.Sprintf("%v at once, then %s", b.Capacity(), Rate(b))
		if queue := b.MaxReserved(); queue > 0 {
			text += fmt.Sprintf("; %v may wait, for up to %s", queue, Duration(b.TimeFor(queue)))
		}
	case "fixed_window":
		text += fmt.Sprintf("%v %s", n, intervalStarts(b, every))
		if b.Capacity() > n {
			text += fmt.Sprintf("; unused ones are kept, up to %v", b.Capacity())
		}
	default:
		if b.Algorithm() == bucket.AlgorithmStepped {
			text += fmt.Sprintf("up to %v at once; %v come back %s; full in %s", b.Capacity(), n, intervalStarts(b, every), full)
			break
		}
		if b.Capacity() == 0 {
			text += fmt.Sprintf("none at once, %s; up to %v may wait", Rate(b), b.MaxReserved())
			break
		}
		text += fmt.Sprintf("up to %v at once, then %s; full in %s", b.Capacity(), Rate(b), full)
	}
	if p := l.Penalty; p != nil {
		text += "; a denial lasts at least " + Duration(p.First())
		if p.Most() > p.First() {
			text += ", and then up to " + Duration(p.Most())
		}
	}
	if l.Shards > 1 {
		text += fmt.Sprintf("; in %d shards", l.Shards)
	}
	if l.Leased {
		text += "; leased"
	}
	return text
}

// intervalStarts describes the starts of the intervals of a stepped limit: "at 00:00 UTC, every 1d".
func intervalStarts(l bucket.Limit, every string) string {
	if c, ok := l.Calendar(); ok {
		return calendarStarts(c)
	}
	switch l.Anchor() {
	case bucket.AnchorKey:
		return fmt.Sprintf("every %s, at a time of each key's own", every)
	case bucket.AnchorFirst:
		return fmt.Sprintf("every %s, from the first request on", every)
	}
	_, p := l.Refill()
	first := time.UnixMicro(0).UTC().Add(l.Start())
	switch per := time.Duration(p) * time.Microsecond; {
	case per == 24*time.Hour:
		return fmt.Sprintf("at %s UTC, every 1d", formatClock(first))
	case per == 7*24*time.Hour:
		return fmt.Sprintf("on %s at %s UTC, every 7d", first.Weekday(), formatClock(first))
	case per > 0 && (24*time.Hour)%per == 0 && l.Start() == 0:
		return fmt.Sprintf("every %s from 00:00 UTC", every)
	}
	return fmt.Sprintf("every %s from %s UTC", every, first.Format("2006-01-02 15:04:05.999999"))
}

func formatClock(t time.Time) string {
	if t.Second() == 0 && t.Nanosecond() == 0 {
		return t.Format("15:04")
	}
	return t.Format("15:04:05.999999")
}
