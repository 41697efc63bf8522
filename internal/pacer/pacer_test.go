// SPDX-License-Identifier: Apache-2.0

package pacer_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/internal/pacer"
	"github.com/metehq/mete/internal/ratelimitfields"
)

func pass(t *testing.T, p *pacer.Pacer) pacer.Ticket {
	t.Helper()
	ticket, err := p.Wait(t.Context(), time.Time{}, false)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return ticket
}

func left(n int64, within time.Duration) pacer.Answer {
	return pacer.Answer{Announced: []ratelimitfields.Announced{{Name: "l", Remaining: n, Reset: within}}}
}

// A server without announced limits is not slowed down.
func TestPacer_SaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := pacer.New(), time.Now()
		for range 1000 {
			p.RecordAnswer(pass(t, p), pacer.Answer{})
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("1,000 requests took %v, want no time", took)
		}
	})
}

// One request goes first, because nothing is known before the first answer.
func TestPacer_AwaitsFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := pacer.New(), time.Now()
		first := pass(t, p)
		passed := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				pass(t, p)
				passed <- time.Since(begin)
			}()
		}
		if got := <-passed; got != time.Second {
			t.Errorf("the second passed after %v, want 1s: there was no answer", got)
		}
		time.Sleep(100 * time.Millisecond)
		p.RecordAnswer(first, pacer.Answer{})
		if got := <-passed; got != 1100*time.Millisecond {
			t.Errorf("the third passed after %v, want 1.1s, with the answer", got)
		}
	})
}

// The remainder is spent evenly until the reset, except for a tenth.
func TestPacer_SpendsEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := pacer.New(), time.Now()
		p.RecordAnswer(pass(t, p), left(100, 100*time.Second))
		for n := range 90 {
			pass(t, p)
			at := time.Since(begin).Seconds()
			if even := float64(n+1) - 12; at < even {
				t.Fatalf("request %d passed after %.1f s, want no earlier than %.1f", n, at, even)
			}
		}
	})
}

func TestPacer_FirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer.New()
		p.RecordAnswer(pass(t, p), left(1, 10*time.Second))
		var mu sync.Mutex
		var order []int
		for n := range 20 {
			go func() {
				pass(t, p)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, n)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 20 {
			t.Fatalf("%d of 20 passed in an hour: %v", len(order), order)
		}
		for i, n := range order {
			if i != n {
				t.Fatalf("passed in order %v", order)
			}
		}
	})
}

// A request that leaves the queue does not delay others.
func TestPacer_Canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer.New()
		p.RecordAnswer(pass(t, p), pacer.Answer{Refused: true, Wait: time.Minute, HasWait: true})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := p.Wait(ctx, time.Time{}, false)
			result <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want that of the context", err)
		}
		begin := time.Now()
		pass(t, p)
		if took := time.Since(begin); took < time.Minute || took > 61*time.Second {
			t.Errorf("the next one passed after %v, want after the pause of a minute", took)
		}
	})
}

func TestPacer_TooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer.New()
		p.RecordAnswer(pass(t, p), pacer.Answer{Refused: true, Wait: time.Minute, HasWait: true})
		begin := time.Now()
		if _, err := p.Wait(t.Context(), time.Now().Add(time.Second), false); !errors.Is(err, pacer.ErrTooLate) {
			t.Errorf("within a pause: got error %v, want ErrTooLate", err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("that took %v, want no time: it is known", took)
		}
	})
}

func TestPacer_TooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer.New()
		p.RecordAnswer(pass(t, p), pacer.Answer{Refused: true, Wait: time.Hour, HasWait: true})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range pacer.MaxWaiting {
			group.Go(func() { _, _ = p.Wait(ctx, time.Time{}, false) })
		}
		synctest.Wait()
		if _, err := p.Wait(ctx, time.Time{}, false); !errors.Is(err, pacer.ErrTooMany) {
			t.Errorf("got error %v, want ErrTooMany", err)
		}
		cancel()
		group.Wait()
	})
}

// After any answers, some request probes the server within the longest pause.
func TestPacer_HostileAnswers(t *testing.T) {
	const most, longest = 999_999_999_999_999, 31 * 24 * time.Hour
	for _, a := range []ratelimitfields.Announced{
		{}, {Remaining: most}, {Remaining: most, Reset: longest, Quota: most, Window: longest}, {Reset: longest}, {Window: longest},
		{Quota: most, Window: time.Second}, {Remaining: most, Reset: time.Second, Window: time.Second}, {Remaining: 1, Quota: 1, Reset: longest},
	} {
		for _, refused := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := pacer.New()
				for range 50 {
					begin := time.Now()
					ticket := pass(t, p)
					if took := time.Since(begin); took > pacer.LongestPause+2*time.Second {
						t.Fatalf("%+v, refused %v: a request waited %v", a, refused, took)
					}
					p.RecordAnswer(ticket, pacer.Answer{Refused: refused, Wait: math.MaxInt64, HasWait: refused, Announced: []ratelimitfields.Announced{a}})
				}
			})
		}
	}
}

// Refusals without a wait make the pauses longer.
func TestPacer_BareRefusals(t *testing.T) {
	for _, answer := range []pacer.Answer{{Refused: true}, {Refused: true, HasWait: true}} {
		synctest.Test(t, func(t *testing.T) {
			p := pacer.New()
			var waits []time.Duration
			for range 10 {
				begin := time.Now()
				ticket := pass(t, p)
				waits = append(waits, time.Since(begin))
				p.RecordAnswer(ticket, answer)
			}
			for i, least := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60, 60} {
				if least *= time.Second; waits[i] < least || waits[i] > least+least/10+time.Second {
					t.Errorf("request %d waited %v, want %v and little more", i, waits[i], least)
				}
			}
		})
	}
}

// Requests that wait for a pause do not leave together.
func TestPacer_RampsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer.New()
		p.RecordAnswer(pass(t, p), pacer.Answer{Refused: true, Wait: 10 * time.Second, HasWait: true})
		passed := make(chan pacer.Ticket, 100)
		for range cap(passed) {
			go func() { passed <- pass(t, p) }()
		}
		time.Sleep(11 * time.Second)
		for _, want := range []int{1, 2, 4, 8, 16} {
			synctest.Wait()
			if got := len(passed); got != want {
				t.Errorf("%d are under way, want %d", got, want)
			}
			for range len(passed) {
				p.RecordAnswer(<-passed, pacer.Answer{})
			}
		}
		synctest.Wait()
		p.RecordAnswer(<-passed, pacer.Answer{Refused: true, Wait: 10 * time.Second, HasWait: true})
		for range len(passed) {
			p.RecordAnswer(<-passed, pacer.Answer{})
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := len(passed); got != 1 {
			t.Errorf("after another refusal %d are under way, want 1", got)
		}
		for range 37 {
			p.RecordAnswer(<-passed, pacer.Answer{})
		}
	})
}

func TestPacer_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer.New()
		ticket := pass(t, p)
		if p.IsIdle() {
			t.Error("idle with a request under way")
		}
		p.RecordAnswer(ticket, left(1, time.Minute))
		if p.IsIdle() {
			t.Error("idle while what was announced holds")
		}
		time.Sleep(time.Minute)
		if !p.IsIdle() {
			t.Error("not idle after it has passed")
		}
	})
}
