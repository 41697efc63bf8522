// SPDX-License-Identifier: Apache-2.0

package denials_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// clientPolicy denies all but the first request of a client.
const clientPolicy = `{"rules": [
	{"name": "client", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1d", "burst": 1}},
	{"name": "trial", "mode": "shadow", "limit_keys": ["query:trial"], "algorithm_config": {"rate": "1/1d", "burst": 1}}]}`

// A loggedLimiter is a limiter with a denial log.
type loggedLimiter struct {
	t   *testing.T
	log *denials.Log
	lim *mete.Limiter

	mu  sync.Mutex // guards out
	out bytes.Buffer
}

func (d *loggedLimiter) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out.Write(p)
}

func newLoggedLimiter(t *testing.T, text string, c denials.Config) *loggedLimiter {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{HashKey: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := &loggedLimiter{t: t}
	c.Logger = slog.New(slog.NewJSONHandler(d, nil))
	if c.Key == nil {
		c.Key = []byte("secret")
	}
	d.log = denials.New(c)
	if d.lim, err = mete.New(store, m, mete.Config{OnDenial: d.log.Record}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *loggedLimiter) take(attrs mete.Attrs) {
	d.t.Helper()
	if _, err := d.lim.Take(d.t.Context(), mete.Request{Attributes: attrs}); err != nil {
		d.t.Fatal(err)
	}
}

// run runs the log in the background; what it returns ends it.
func (d *loggedLimiter) run() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.log.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// A line has the fields that tests check.
type line struct {
	Message string `json:"msg"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Key     string `json:"key"`
	Client  string `json:"client"`
	Times   uint64 `json:"times"`
}

func (d *loggedLimiter) lines() (lines []line) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for text := range strings.Lines(d.out.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			d.t.Fatalf("%v in %q", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestLog_OneLineForEachBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoggedLimiter(t, clientPolicy, denials.Config{Interval: time.Minute, PerSecond: 10})
		end := d.run()
		alice := mete.Attrs{"header:x-api-key": "alice", "ip:address": "192.0.2.77"}
		for range 11 { // one is admitted
			d.take(alice)
		}
		if lines := d.lines(); len(lines) != 1 || lines[0].Times != 1 {
			t.Errorf("got %+v, want a line at once, for the first denial", lines)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		lines := d.lines()
		if len(lines) != 2 || lines[1].Times != 9 {
			t.Fatalf("got %+v, want a second line a minute later, for the other 9", lines)
		}
		for _, l := range lines {
			if l.Message != "denied" || l.Rule != "client" || l.Reason != "token_bucket_exceeded" || l.Client != "192.0.2.0/24" || !strings.HasPrefix(l.Key, "~") {
				t.Errorf("got %+v, want the rule, the reason, a hashed key and a network", l)
			}
		}
		if lines[0].Key != lines[1].Key {
			t.Errorf("one key has the hashes %s and %s", lines[0].Key, lines[1].Key)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := d.log.Stats(); s != (denials.Stats{Denials: 10, Lines: 2}) {
			t.Errorf("got %+v, want 10 denials in 2 lines, and the burst forgotten", s)
		}
		d.take(alice)
		if lines := d.lines(); len(lines) != 3 || lines[2].Times != 1 {
			t.Errorf("got %+v, want a line at once again", lines[2:])
		}
		end()
	})
}

func TestLog_ShadowRulesWouldDeny(t *testing.T) {
	d := newLoggedLimiter(t, clientPolicy, denials.Config{Interval: time.Minute, PerSecond: 10})
	for range 3 {
		d.take(mete.Attrs{"query:trial": "a"})
	}
	if lines := d.lines(); len(lines) != 1 || lines[0].Message != "would be denied" || lines[0].Rule != "trial" {
		t.Errorf("got %+v, want one line of the shadow rule", lines)
	}
}

// Every denial is in a line or counted as unlogged. There are never more lines in a second
// than the bound allows.
func TestLog_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoggedLimiter(t, clientPolicy, denials.Config{Interval: 10 * time.Second, PerSecond: 50})
		end := d.run()
		const keys = 3 * denials.MaxBursts
		for i := range keys {
			key := mete.Attrs{"header:x-api-key": fmt.Sprintf("key-%d", i)}
			d.take(key)
			d.take(key)
		}
		if s := d.log.Stats(); s.Lines > 50 || s.Bursts > denials.MaxBursts || s.Denials != keys {
			t.Errorf("got %+v, want at most 50 lines of %d denials and %d bursts", s, keys, denials.MaxBursts)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		s := d.log.Stats()
		logged, others := uint64(0), uint64(0)
		for _, l := range d.lines() {
			if l.Rule == "" {
				others += l.Times
			} else {
				logged += l.Times
			}
		}
		if logged+others != keys || others != s.Unlogged || s.Bursts != 0 {
			t.Errorf("%d denials in lines of keys, %d in lines of others, %+v: want all %d accounted for", logged, others, s, keys)
		}
		end()
	})
}

func TestLog_EndsWithWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLoggedLimiter(t, clientPolicy, denials.Config{Interval: time.Hour, PerSecond: 10})
		end := d.run()
		for range 8 {
			d.take(mete.Attrs{"header:x-api-key": "k"})
		}
		end()
		if lines := d.lines(); len(lines) != 2 || lines[1].Times != 6 {
			t.Errorf("got %+v, want what was left of the burst, 6", lines)
		}
	})
}

// Values from clients cannot forge a line, and appear in one only with raw.
func TestLog_HidesAndQuotes(t *testing.T) {
	forged := "k\"}\n{\"msg\":\"denied\",\"rule\":\"forged\"}\x1b[31m\r" + strings.Repeat("x", 10_000)
	for _, raw := range []bool{false, true} {
		d := newLoggedLimiter(t, clientPolicy, denials.Config{Interval: time.Minute, PerSecond: 10, Raw: raw})
		for range 2 {
			d.take(mete.Attrs{"header:x-api-key": forged, "ip:address": "2001:db8:1:2:3:4:5:6"})
			d.take(mete.Attrs{"query:trial": forged, "ip:address": "not an address, but canary"})
		}
		text := d.out.String()
		lines := d.lines()
		if len(lines) != 2 || lines[0].Rule != "client" || lines[1].Rule != "trial" {
			t.Errorf("raw %t: got %+v, want one line of each rule", raw, lines)
		}
		if len(text) > 2000 || strings.ContainsAny(text, "\x1b\r") {
			t.Errorf("raw %t: the log has %d bytes, or control characters", raw, len(text))
		}
		want := map[bool]string{false: "2001:db8:1::/48", true: "2001:db8:1:2:3:4:5:6"}[raw]
		if lines[0].Client != want || lines[1].Client != "" {
			t.Errorf("raw %t: got clients %q and %q, want %q and none", raw, lines[0].Client, lines[1].Client, want)
		}
		if strings.Contains(text, "canary") || !raw && strings.Contains(text, "forged") {
			t.Errorf("raw %t: the log shows what a client sent:\n%s", raw, text)
		}
	}
}

// A store that fails is no denial of anybody.
func TestLog_IsNotOfFailures(t *testing.T) {
	var out bytes.Buffer
	l := denials.New(denials.Config{Logger: slog.New(slog.NewTextHandler(&out, nil)), Interval: time.Minute, PerSecond: 10})
	l.Record(t.Context(), &mete.Denial{Decision: mete.Decision{Reason: mete.ReasonStoreError, Degraded: true}, Attributes: mete.Attrs{}})
	if s := l.Stats(); s != (denials.Stats{}) || out.Len() > 0 {
		t.Errorf("got %+v and %q, want nothing", s, out.String())
	}
}

func TestLog_ConcurrentUse(t *testing.T) {
	d := newLoggedLimiter(t, clientPolicy, denials.Config{Interval: time.Millisecond, PerSecond: 1_000_000})
	end := d.run()
	var asking sync.WaitGroup
	const workers, requests = 4, 500
	for n := range workers {
		asking.Go(func() {
			for i := range requests {
				d.take(mete.Attrs{"header:x-api-key": fmt.Sprint("k", (n+i)%7)})
			}
		})
	}
	asking.Wait()
	end()
	logged := uint64(0)
	for _, l := range d.lines() {
		logged += l.Times
	}
	if want := uint64(workers*requests - 7); logged != want {
		t.Errorf("%d denials are in lines, want %d", logged, want)
	}
}

func BenchmarkRecord(b *testing.B) {
	m, err := policy.Load([]byte(clientPolicy), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l := denials.New(denials.Config{Logger: slog.New(slog.DiscardHandler), Interval: time.Hour, PerSecond: 10})
	rule := m.Rules()[0]
	d := &mete.Denial{
		Decision:   mete.Decision{Rule: "client", Reason: "token_bucket_exceeded"}.WithLimits(mete.Status{Rule: rule, Limit: &rule.Limits[0], Key: "client|alice"}),
		Attributes: mete.Attrs{"ip:address": "192.0.2.1"},
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Record(b.Context(), d)
	}
}
