// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/overrides"
)

// follow runs Follow until the test ends.
func (n *node) follow() {
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Follow(ctx)
	}()
	n.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// pass lets time pass, for the manager and for the limiter.
func (n *node) pass(d time.Duration) {
	n.clock.advance(d)
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		store := &faulty{Documents: newStore(t, c)}
		a, b := newNode(t, c, store, rules), newNode(t, c, store, rules)
		b.follow()
		a.put(block("b", "bad"))
		b.pass(overrides.DefaultPoll)
		b.wantTakes("within a second", "bad", false)

		store.fail(errIll, nil, nil)
		b.pass(5 * overrides.DefaultPoll)
		b.wantTakes("while the store is ill", "bad", false)
		store.fail(nil, nil, nil)
		if err := a.Remove(t.Context(), "b", "kim", "over"); err != nil {
			t.Fatal(err)
		}
		b.pass(overrides.DefaultPoll)
		b.wantTakes("once it is well", "bad", true)
		for text, want := range map[string]int{"overrides sync failed": 1, "overrides sync recovered": 1} {
			if got := strings.Count(b.log.String(), text); got != want {
				t.Errorf("the log says %q %d times, want %d:\n%s", text, got, want, b.log)
			}
		}
	})
}

// An expiration is recorded once, regardless of the process that follows. A day later, the override is no
// longer listed.
func TestFollow_Expiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		store := newStore(t, c)
		a, b := newNode(t, c, store, rules), newNode(t, c, store, rules)
		a.follow()
		b.follow()
		a.put(block("b", "bad")) // for an hour
		a.pass(time.Hour - time.Second)
		a.wantTakes("until then", "bad", false)
		a.pass(3 * time.Second)
		a.wantTakes("from then on", "bad", true)
		for _, n := range []*node{a, b} {
			audit := n.Audit()
			if len(audit) != 2 || audit[1].Kind != overrides.EntryExpired || audit[1].Override != "b" || !audit[1].At.Equal(audit[0].After.ExpiresAt) {
				t.Errorf("audit %+v, want that it was made and has expired, once", audit)
			}
		}
		a.pass(overrides.KeepExpired - time.Minute)
		if got := a.states()["b"]; got != overrides.StateExpired {
			t.Errorf("nearly a day later it is %q, want %q", got, overrides.StateExpired)
		}
		a.pass(time.Minute)
		if got := a.List(); len(got) > 0 || len(a.Audit()) != 2 {
			t.Errorf("a day later %+v is listed, and %d entries; want none, and 2", got, len(a.Audit()))
		}
	})
}

// One that has expired can be made again, and expires again.
func TestFollow_MadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		n := newNode(t, c, nil, rules)
		n.follow()
		for range 2 {
			n.put(block("b", "bad"))
			n.wantTakes("made", "bad", false)
			n.pass(time.Hour + 2*time.Second)
			n.wantTakes("expired", "bad", true)
		}
		if got := len(n.Audit()); got != 4 {
			t.Errorf("%d entries, want 4", got)
		}
	})
}
