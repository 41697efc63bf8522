// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
)

// These constants repeat examples/nginx-upstream/policy.yaml. Rates are in tokens per second.
const (
	downloadBurst = 50
	pageBurst     = 20
	pageRate      = 5
	siteBurst     = 400
	siteRate      = 10
)

// checkBucket checks that the answers fit a bucket that was full at first. The bucket's level is the least
// level that it could have if it was full at one of the earlier requests. The time of a decision is only
// known to be between request and answer.
func checkBucket(t *testing.T, name string, answers []answer, capacity, rate float64) {
	t.Helper()
	for i, a := range answers {
		low, high := capacity, capacity
		spent := 0.0
		for j := i - 1; j >= 0; j-- {
			if answers[j].allowed {
				spent++
			}
			low = min(low, capacity-spent+rate*a.sent.Sub(answers[j].got).Seconds())
			high = min(high, capacity-spent+rate*a.got.Sub(answers[j].sent).Seconds())
		}
		if a.allowed && high < 1 || !a.allowed && low >= 1 {
			t.Errorf("%s: request %d has allowed %v while the bucket held %.3f to %.3f tokens", name, i+1, a.allowed, low, high)
			return
		}
	}
}

// checkRefill looks at requests that followed one another, from the first
// denied one to the last. At both the bucket held less than a token, so between
// them it gave out what it was refilled with, to the token.
func checkRefill(t *testing.T, name string, answers []answer, rate float64) {
	t.Helper()
	first, last := -1, -1
	allowed, between := 0, 0 // since the first denial; and until the last
	for i, a := range answers {
		switch {
		case a.allowed:
			allowed++
		case first < 0:
			first, allowed = i, 0
		default:
			last, between = i, allowed
		}
	}
	if last < 0 {
		t.Errorf("%s: of %d requests fewer than two are denied", name, len(answers))
		return
	}
	shortest := answers[last].sent.Sub(answers[first].got).Seconds()
	longest := answers[last].got.Sub(answers[first].sent).Seconds()
	if n := float64(between); n <= rate*shortest-1 || n >= rate*longest+1 {
		t.Errorf("%s: %d allowed between two denials %.4f to %.4f s apart, want the refill of %v a second within a token",
			name, between, shortest, longest, rate)
	}
}

// checkBound wants all that was allowed to stay below capacity + rate·t.
func checkBound(t *testing.T, name string, tr *traffic, capacity, rate float64) {
	t.Helper()
	allowed := 0
	for _, c := range tr.byAddress() {
		allowed += c.allowed
	}
	d := tr.ended.Sub(tr.begun)
	if bound := capacity + rate*d.Seconds(); float64(allowed) > bound {
		t.Errorf("%s: %d allowed within %v, want at most %.3f", name, allowed, d, bound)
	}
}

// A logEntry is a line of nginx's access log.
type logEntry struct {
	addr   string
	at     time.Time // to the second
	path   string
	status string
}

var combinedLine = regexp.MustCompile(`^(\S+) - - \[([^\]]+)\] "GET (\S+) HTTP/1\.1" (\d{3}) \d+ "[^"]*" "[^"]*"$`)

func parseLog(t *testing.T, text string) []logEntry {
	t.Helper()
	var entries []logEntry
	for line := range strings.Lines(text) {
		m := combinedLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("nginx logged %q", line)
		}
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, logEntry{addr: m[1], at: at, path: m[3], status: m[4]})
	}
	return entries
}

func countByAddress(log []logEntry) map[string]int {
	by := map[string]int{}
	for _, e := range log {
		by[e.addr]++
	}
	return by
}

func sum(by map[string]int) int {
	n := 0
	for _, c := range by {
		n += c
	}
	return n
}

// An oracle is the example policy in rational numbers, written for this test.
type oracle struct {
	site             *ratBucket
	downloads, pages map[string]*ratBucket
}

type ratBucket struct {
	capacity, rate, level *big.Rat
	at                    time.Time
}

func newOracle() *oracle {
	return &oracle{
		site:      newRatBucket(siteBurst, big.NewRat(siteRate, 1)),
		downloads: map[string]*ratBucket{},
		pages:     map[string]*ratBucket{},
	}
}

// take decides a request and charges both of its buckets or none.
func (o *oracle) take(e logEntry) bool {
	buckets, capacity, rate := o.pages, int64(pageBurst), big.NewRat(pageRate, 1)
	if strings.HasPrefix(e.path, "/downloads/") {
		buckets, capacity, rate = o.downloads, downloadBurst, big.NewRat(1, 60)
	}
	if buckets[e.addr] == nil {
		buckets[e.addr] = newRatBucket(capacity, rate)
	}
	own := buckets[e.addr]
	own.refill(e.at)
	o.site.refill(e.at)
	one := big.NewRat(1, 1)
	if own.level.Cmp(one) < 0 || o.site.level.Cmp(one) < 0 {
		return false
	}
	own.level.Sub(own.level, one)
	o.site.level.Sub(o.site.level, one)
	return true
}

func newRatBucket(capacity int64, rate *big.Rat) *ratBucket {
	c := big.NewRat(capacity, 1)
	return &ratBucket{capacity: c, rate: rate, level: new(big.Rat).Set(c)}
}

func (b *ratBucket) refill(now time.Time) {
	if !b.at.IsZero() && now.After(b.at) {
		elapsed := big.NewRat(now.Sub(b.at).Nanoseconds(), int64(time.Second))
		b.level.Add(b.level, elapsed.Mul(elapsed, b.rate))
		if b.level.Cmp(b.capacity) > 0 {
			b.level.Set(b.capacity)
		}
	}
	if now.After(b.at) {
		b.at = now
	}
}
