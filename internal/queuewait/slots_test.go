// SPDX-License-Identifier: Apache-2.0

package queuewait_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/queuewait"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// delayed delays every request of a client by 2s, and admits 100 of them.
const delayed = `{"name": "delayed", "limit_keys": ["header:client"], "algorithm_config": {"rate": "1/1m", "burst": 100,
	"staged_actions": [{"threshold": 0, "action": "throttle", "delay": "2s"}]}}`

// clients is a taker with so many places, and how a client asks it.
func clients(t *testing.T, places int) (*queuewait.Taker, func(context.Context, string) (mete.Decision, error)) {
	t.Helper()
	m, err := policy.Load([]byte(delayed), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) }), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tk := queuewait.NewTaker(lim, 0, places)
	return tk, func(ctx context.Context, client string) (mete.Decision, error) {
		return tk.Take(ctx, mete.Request{Attributes: policy.Map{"header:client": client}}, false, nil)
	}
}

// One client may use a quarter of the slots, and all clients together all of them. A request without a slot is
// denied at once and refunded.
func TestTake_Places(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tk, ask := clients(t, 8)
		var wait sync.WaitGroup
		var admitted, denied atomic.Int64
		send := func(client string) {
			wait.Go(func() {
				begin := time.Now()
				d, err := ask(t.Context(), client)
				switch took := time.Since(begin); {
				case err == nil && d.Allowed && took == 2*time.Second:
					admitted.Add(1)
				case err == nil && !d.Allowed && took == 0 && d.RetryAfter > 0 && d.Rule == "delayed" && d.Reason == "token_bucket_exceeded":
					denied.Add(1)
				default:
					t.Errorf("client %s: got %+v (%v) after %v", client, d, err, took)
				}
			})
			synctest.Wait()
		}
		for range 10 {
			send("a")
		}
		if now, refused := tk.Waiting(); now != 2 || refused != 8 {
			t.Errorf("10 requests of one client: %d are held, %d were refused; want 2 and 8", now, refused)
		}
		for _, client := range []string{"b", "b", "c", "c", "d", "d", "e", "f"} {
			send(client)
		}
		if now, refused := tk.Waiting(); now != 8 || refused != 10 {
			t.Errorf("8 more of others: %d are held, %d were refused; want 8 and 10", now, refused)
		}
		wait.Wait()
		if now, _ := tk.Waiting(); now != 0 || admitted.Load() != 8 || denied.Load() != 10 {
			t.Errorf("in the end %d are held, %d were admitted and %d denied; want 0, 8 and 10", now, admitted.Load(), denied.Load())
		}
		d, err := ask(t.Context(), "a")
		if err != nil || !d.Allowed || d.Limits()[0].Remaining().Whole() != 97 {
			t.Errorf("the third admission of a: got %+v (%v), want 97 tokens left: denials are free", d, err)
		}
	})
}

// A client that goes away gives its place back.
func TestTake_CanceledRequestFreesSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tk, ask := clients(t, 4)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := ask(ctx, "a")
			gone <- err
		}()
		synctest.Wait()
		if d, err := ask(t.Context(), "a"); err != nil || d.Allowed {
			t.Errorf("while its place is taken: got %+v (%v), want a denial", d, err)
		}
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want %v", err, context.Canceled)
		}
		if now, _ := tk.Waiting(); now != 0 {
			t.Errorf("%d are held, want 0", now)
		}
		if d, err := ask(t.Context(), "a"); err != nil || !d.Allowed {
			t.Errorf("after that: got %+v (%v), want it admitted", d, err)
		}
	})
}

// Addresses that share a bucket share its places.
func TestTake_SlotsPerNetwork(t *testing.T) {
	m, err := policy.Load([]byte(strings.Replace(delayed, "header:client", "ip:address", 1)), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) }), m, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		tk := queuewait.NewTaker(lim, 0, 8) // two for a bucket
		for i, tt := range []struct {
			address string
			held    int
		}{
			{"2001:db8::1", 1}, {"2001:db8::2", 2}, {"2001:db8::3", 2}, {"2001:db8:0:1::1", 3},
			{"192.0.2.1", 4}, {"192.0.2.1", 5}, {"192.0.2.1", 5}, {"192.0.2.2", 6},
		} {
			go tk.Take(t.Context(), mete.Request{Attributes: policy.Map{"ip:address": tt.address}}, false, nil)
			synctest.Wait()
			if now, _ := tk.Waiting(); now != tt.held {
				t.Errorf("request %d, of %s: %d are held, want %d", i, tt.address, now, tt.held)
			}
		}
	})
}
