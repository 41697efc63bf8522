// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"time"
)

// Clients with a bucket of their own can check the result of each request.

// honest asks until it is denied, waits as long as it is told to the microsecond,
// and must then be admitted.
func (w *world) honest(key string) func(context.Context) {
	attributes := map[string]string{"header:x-honest": key}
	return func(ctx context.Context) {
		for pause(ctx, 50*time.Millisecond) {
			a, d := w.take(w.api, attributes)
			v := w.closed("honest", a)
			if v == admitted {
				w.books.add("honest "+key, honestLimit, 0, grant{a.begin, a.end})
			}
			if v != denied {
				continue
			}
			if wait := d.RetryAfter.Duration(); wait <= 0 || wait > 200*time.Millisecond {
				w.wrongs.add("honest: told to wait %v, want at most a token's time, 200ms", wait)
				continue
			}
			if !pauseUntil(ctx, a.end+d.RetryAfter.Duration().Microseconds()) {
				return
			}
			again, _ := w.take(w.api, attributes)
			switch w.closed("honest", again) {
			case admitted:
				w.books.add("honest "+key, honestLimit, 0, grant{again.begin, again.end})
			case denied:
				if !w.outages.during(span{a.begin, again.end}) {
					w.wrongs.add("honest: waited the %v it was told, and was denied: %s, then %s", d.RetryAfter.Duration(), a.body, again.body)
				}
			}
		}
	}
}

// patient does the same through the gateway, by Retry-After.
func (w *world) patient(key string) func(context.Context) {
	return func(ctx context.Context) {
		for pause(ctx, 50*time.Millisecond) {
			a := w.pass("X-Honest", key)
			v := w.closed("patient", a)
			if v == admitted {
				w.books.add("honest "+key, honestLimit, 0, grant{a.begin, a.end})
			}
			if v != denied {
				continue
			}
			at, _ := retryAfter(a)
			if !pauseUntil(ctx, at) {
				return
			}
			again := w.pass("X-Honest", key)
			switch w.closed("patient", again) {
			case admitted:
				w.books.add("honest "+key, honestLimit, 0, grant{again.begin, again.end})
			case denied:
				if !w.outages.during(span{a.begin, again.end}) {
					w.wrongs.add("patient: waited for the Retry-After %s, and was denied: %s", a.header.Get("Retry-After"), again.body)
				}
			}
		}
	}
}

// paced asks for half of what its limit allows, and is never denied.
func (w *world) paced(key string) func(context.Context) {
	return func(ctx context.Context) {
		every(ctx, 400*time.Millisecond, func() {
			a, _ := w.take(w.api, map[string]string{"header:x-honest": key})
			if w.closed("paced", a) == denied && !w.outages.during(a.span) {
				w.wrongs.add("paced: denied at half of its rate: %s", a.body)
			}
		})
	}
}

// member falls under two limits, and the second sometimes denies it. The first hardly refills: it must
// charge exactly the admitted requests.
func (w *world) member(tenant string) func(context.Context) {
	return func(ctx context.Context) {
		left, since := int64(-1), int64(0) // -1: not known
		every(ctx, 200*time.Millisecond, func() {
			a, d := w.take(w.api, map[string]string{"header:x-tenant": tenant, "header:x-member": "m-" + tenant})
			v := w.closed("member", a)
			if v == useless || len(d.Limits) != 2 || w.outages.during(span{since, a.end}) {
				left, since = -1, a.end
				return
			}
			want := left
			if v == admitted {
				want--
			}
			got := d.Limits[0].Remaining
			if left >= 0 && got != want {
				w.wrongs.add("member: %d tokens left, want %d: %s", got, want, a.body)
			}
			left, since = got, a.end
		})
	}
}
