// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// FuzzTakeAgainstOracle plays two takes, a refund and a peek under one limit, and the last two again under another.
func FuzzTakeAgainstOracle(f *testing.F) {
	f.Add(int64(10_000), int64(1000), int64(1e6), int64(-1), int64(0), int64(10_000), int64(5e5), int64(1000), int64(0), int64(7))
	f.Add(int64(1000), int64(1000), int64(3e6), int64(0), int64(1<<52), int64(1000), int64(-3e6), int64(334), int64(1e6), int64(1))
	f.Add(int64(0), int64(1), int64(1), int64(5), int64(0), int64(5), int64(1), int64(3), int64(math.MaxInt64), int64(0))
	f.Add(int64(100_000), int64(1000), int64(86400e6), int64(-1), int64(1.7e15), int64(99_999), int64(1<<53), int64(100_001), int64(1<<53), int64(3))
	f.Add(int64(math.MaxInt64), int64(-1), int64(0), int64(math.MinInt64), int64(math.MinInt64), int64(-1), int64(math.MinInt64), int64(0), int64(-1), int64(-1))
	f.Fuzz(func(t *testing.T, capacity, tokens, per, maxReserved, at, cost1, later, cost2, maxWait, change int64) {
		if per > math.MaxInt64/1000 || per < math.MinInt64/1000 || at > 1<<60 || later > 1<<60 || maxWait > 1<<53 {
			return // no time.Duration, or past the exact instants by far
		}
		s := bucket.Spec{
			Capacity: bucket.Tokens(capacity),
			Rate:     bucket.Rate{Tokens: bucket.Tokens(tokens), Per: time.Duration(per) * time.Microsecond},
		}
		if most := bucket.Tokens(maxReserved); maxReserved >= 0 {
			s.MaxReserved = &most
		}
		l, _, err := s.Compile()
		if err != nil {
			if !errors.Is(err, bucket.ErrLimit) || l != (bucket.Limit{}) {
				t.Fatalf("%+v: %v, %v: want the zero limit and ErrLimit", s, l, err)
			}
			return
		}
		at, later = max(at, -1<<60), max(later, -1<<60)
		var p pair
		p.ask(t, l, at, cost1, maxWait, true)
		p.ask(t, l, at+later, cost2, maxWait, true)
		p.refund(t, l, at, cost2)
		p.ask(t, l, at+later, cost1, 0, false)
		s.Capacity, s.Rate.Tokens = s.Capacity/2+bucket.Tokens(change&1023), s.Rate.Tokens/3+bucket.Tokens(change&7)
		if l, _, err = s.Compile(); err == nil {
			p.ask(t, l, at, cost2, maxWait, true)
			p.refund(t, l, at+later, cost1)
			p.ask(t, l, at+later, cost1, maxWait, false)
		}
	})
}

// FuzzParseTokens checks a round trip.
func FuzzParseTokens(f *testing.F) {
	for _, s := range []string{"0", "20", "0.5", "1e3", "1E-3", "0.0001", "-1", "nan", "inf", "0x10", "1e400", ".5", "5.", "９", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := bucket.ParseTokens(s)
		if err != nil {
			if !errors.Is(err, bucket.ErrTokens) {
				t.Errorf("ParseTokens(%q): %v does not wrap ErrTokens", s, err)
			}
			return
		}
		if v < 0 || v > bucket.MaxTokens {
			t.Errorf("ParseTokens(%q) = %d: out of bounds", s, int64(v))
		}
		if again, err := bucket.ParseTokens(v.String()); again != v || err != nil {
			t.Errorf("ParseTokens(%q) = %v, which reads as %v, %v", s, v, again, err)
		}
	})
}

// FuzzParseDuration compares with the standard library if that accepts the text.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"10s", "1m30s", "1.5h", ".5h", "7d", "1w2d3h", "1.5ns", "0", "-1s", "1", "292y", "106751d23h47m16.854775807s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := bucket.ParseDuration(s)
		if err != nil {
			if !errors.Is(err, bucket.ErrDuration) || d != 0 {
				t.Errorf("ParseDuration(%q) = %v, %v: want 0 and ErrDuration", s, d, err)
			}
			return
		}
		if std, err := time.ParseDuration(s); err == nil && std != d {
			t.Errorf("ParseDuration(%q) = %v, time.ParseDuration says %v", s, d, std)
		}
		if again, err := bucket.ParseDuration(d.String()); d < 0 || again != d || err != nil {
			t.Errorf("ParseDuration(%q) = %v, which reads as %v, %v", s, d, again, err)
		}
	})
}

// FuzzParseRate checks a round trip.
func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"7/1m", "0.5/10s", "7/m", "7/.5s", " 7 / 1m ", "7", "0/1s", "7/0s", "7/1ns", "/", "7/d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := bucket.ParseRate(s)
		if err != nil {
			if !errors.Is(err, bucket.ErrRate) {
				t.Errorf("ParseRate(%q): %v does not wrap ErrRate", s, err)
			}
			return
		}
		if again, err := bucket.ParseRate(r.String()); again != r || err != nil {
			t.Errorf("ParseRate(%q) = %v, which reads as %v, %v", s, r, again, err)
		}
	})
}
