// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// The tests in this file check values at the bounds of rules, which random tests rarely draw.

func second(t *testing.T, a bucket.Algorithm, capacity, rate bucket.Tokens) bucket.Limit {
	t.Helper()
	return compile(t, bucket.Spec{Algorithm: a, Capacity: capacity * bucket.Token, Rate: bucket.Rate{Tokens: rate * bucket.Token, Per: time.Second}})
}

// takeRow takes cost from a row, and reserves it if the bucket lacks it.
func takeRow(row bucket.Row, l bucket.Limit, now bucket.Instant, cost bucket.Tokens) (bucket.Row, bucket.Snapshot) {
	s, _ := row.StateFor(&l, now)
	s, snap := l.Reserve(s, now, cost, time.Hour)
	return row.WithState(&l, s, now, cost), snap
}

// named returns the take of a snapshot with an ID for a new history.
func named(snap bucket.Snapshot) bucket.Taken {
	t := snap.Taken()
	t.History = 1
	return t
}

func TestTimeFor_MostTokens(t *testing.T) {
	l := second(t, bucket.AlgorithmStepped, 1000, 1000)
	if got, want := l.TimeFor(bucket.MaxTokens), bucket.LongestWait; got == bucket.Never || got > want {
		t.Errorf("got %v, want at most %v", got, want)
	}
	if got := l.TimeFor(bucket.MaxTokens + 1); got != bucket.Never {
		t.Errorf("got %v for more tokens than any bucket holds, want Never", got)
	}
}

func TestParseDuration_NamesEachCalendarUnit(t *testing.T) {
	for unit, want := range map[string]string{
		"y": "365d", "yr": "365d", "yrs": "365d", "year": "365d", "years": "365d", "Year": "365d", "Y": "365d",
		"mo": "30d", "mon": "30d", "mth": "30d", "month": "30d", "months": "30d", "M": "30d",
	} {
		if _, err := bucket.ParseDuration("1" + unit); err == nil || !strings.Contains(err.Error(), "calendar ") || !strings.Contains(err.Error(), want) {
			t.Errorf("1%s: got the error %v, want the replacement %s", unit, err, want)
		}
	}
}

func TestDecodeLimit_OfConcurrency(t *testing.T) {
	l := mustSlots(t, 2, time.Second)
	fields := strings.Split(l.Encode(), ",")
	if got := strings.Join(fields[:4], ","); got != "2000,0,2000,1000000" {
		t.Fatalf("encoded as %s", got)
	}
	how := "," + fields[4]
	for _, text := range []string{"2000,1000,2000,1000000", "1500,0,1500,1000000", "2000,0,1000,1000000"} {
		if got, err := bucket.DecodeLimit(text + how); err == nil {
			t.Errorf("%s: got %v, want an error", text, got)
		}
	}
}

func TestDecodeLimit_DebtOfACalendar(t *testing.T) {
	l := compile(t, bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 24 * time.Hour},
		Anchor: bucket.AnchorCalendar, Calendar: bucket.Calendar{Window: bucket.CalendarDay},
	})
	fields := strings.Split(l.Encode(), ",")
	for _, tt := range []struct {
		more bucket.Tokens
		ok   bool
	}{{0, true}, {1, false}} {
		fields[1] = strconv.FormatInt(int64(bucket.MaxCalendarWindows*bucket.Token-l.Capacity()+tt.more), 10)
		if got, err := bucket.DecodeLimit(strings.Join(fields, ",")); (err == nil) != tt.ok {
			t.Errorf("%d more than the bound: got %v, error %v", tt.more, got, err)
		}
	}
}

// TestShare_IsALimit checks that a share is a limit that a store can keep.
func TestShare_IsALimit(t *testing.T) {
	for _, a := range []bucket.Algorithm{bucket.AlgorithmContinuous, bucket.AlgorithmStepped, bucket.AlgorithmSlidingWindow, bucket.AlgorithmSlidingLog, bucket.AlgorithmConcurrency} {
		l := second(t, a, 7, 7)
		for n := range 9 {
			share := l.Share(n, bucket.Token)
			if got, err := bucket.DecodeLimit(share.Encode()); err != nil || got != share {
				t.Errorf("%v, share of %d: %v is decoded as %v, error %v", a, n, share, got, err)
			}
			if tokens, _ := share.Refill(); a >= bucket.AlgorithmSlidingWindow && tokens != share.Capacity() {
				t.Errorf("%v, share of %d: its window has %v and it admits %v", a, n, share.Capacity(), tokens)
			}
		}
	}
}

// TestNoteWait records how many tokens will be missing before the work of a take starts.
func TestNoteWait(t *testing.T) {
	l := compile(t, bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: 1, Per: 3 * time.Microsecond}})
	row, snap := takeRow(nil, l, 0, 10*bucket.Token)
	row, _ = row.WithHold(&l, 0, named(snap), 1_000_000, false)
	row, _ = takeRow(row, l, 0, 4*bucket.Token)
	h := row[0].State.History
	if want := int64(6*bucket.Token) * l.Unit(); len(h.Epochs) != 1 || h.Epochs[0].Later != want {
		t.Errorf("got %+v, want %d later", h.Epochs, want)
	}
}

// TestCancel_NotBelowWaitingWork cancels a take whose amount was lower in an epoch with waiting work. Later epochs do not
// raise it again.
func TestCancel_NotBelowWaitingWork(t *testing.T) {
	l := compile(t, bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: 1, Per: time.Second}})
	const none = 1<<53 - 1
	unit := l.Unit()
	h := &bucket.History{ID: 1, Until: 1000, Longest: 1000, Epochs: []bucket.Epoch{
		{Start: 1, Least: 8000 * unit, Later: 2000 * unit, Holds: 1},
		{Start: 10, Least: 1000 * unit, Later: none},
	}}
	s := bucket.State{Spent: 9000 * unit, AsOf: 20, Unit: unit, History: h}
	after := l.Cancel(s, 20, 5000, bucket.Taken{Cost: 5000, At: 1, Spent: 5000 * unit, History: 1})
	if got := (s.Spent - after.Spent) / unit; got != 2000 {
		t.Errorf("the bucket gets back %d, want 2000: work waits for the rest", got)
	}
}

// TestRow_Due returns the first expiry with a refund, of any account.
func TestRow_Due(t *testing.T) {
	first, second := second(t, bucket.AlgorithmContinuous, 10, 1), second(t, bucket.AlgorithmContinuous, 20, 1)
	hold := func(row bucket.Row, l *bucket.Limit, until bucket.Instant, refund bool) bucket.Row {
		row, snap := takeRow(row, *l, 0, bucket.Token)
		row, _ = row.WithHold(l, 0, named(snap), until, refund)
		return row
	}
	var row bucket.Row
	for _, step := range []struct {
		limit  *bucket.Limit
		until  bucket.Instant
		refund bool
		want   bucket.Instant
	}{
		{&first, 100, false, 0}, {&first, 900, true, 900}, {&first, 950, true, 900}, {&second, 800, true, 800},
		{&first, 850, true, 800}, {&first, 700, true, 700},
	} {
		row = hold(row, step.limit, step.until, step.refund)
		if got := row.Due(); got != step.want {
			t.Fatalf("after a hold until %d, refunded %v: due at %d, want %d", step.until, step.refund, got, step.want)
		}
	}
	if got := row.WithDue(&first, 0).Due(); got != 800 {
		t.Errorf("without the first account: due at %d, want 800", got)
	}
	if got := row.WithDue(&second, 0).Due(); got != 700 {
		t.Errorf("without the second account: due at %d, want 700", got)
	}
}

// TestRow_WithoutHold settles a hold that is older than the history: the oldest epoch counts it.
func TestRow_WithoutHold_OfADebt(t *testing.T) {
	l := second(t, bucket.AlgorithmContinuous, 10, 1)
	for _, more := range []int{0, 1} {
		row, _ := takeRow(nil, l, 5, 10*bucket.Token)
		row, snap := takeRow(row, l, 5, 5*bucket.Token) // in debt: the history begins behind it
		row, taken := row.WithHold(&l, 5, named(snap), 10_000_000, false)
		for range more {
			row, snap = takeRow(row, l, 5_000_000, bucket.Token)
			row, _ = row.WithHold(&l, 5_000_000, named(snap), 10_000_000, false)
		}
		if h := row[0].State.History; len(h.Epochs) != 1+more || h.Epochs[0].Start <= taken.At {
			t.Fatalf("epochs %+v, want %d that begin after %d", h.Epochs, 1+more, taken.At)
		}
		row = row.WithoutHold(&l, 5_000_000, taken)
		if h := row[0].State.History; h.Epochs[0].Holds != 0 || row.Holds(&l, 5_000_000) != int64(more) {
			t.Errorf("epochs %+v with %d holds, want %d", h.Epochs, row.Holds(&l, 5_000_000), more)
		}
	}
}

// TestRow_WithAwait_OfNothing keeps no history for a take that awaits nothing.
func TestRow_WithAwait_OfNothing(t *testing.T) {
	l := second(t, bucket.AlgorithmContinuous, 10, 1)
	row, _ := takeRow(nil, l, 0, bucket.Token)
	row, snap := takeRow(row, l, 0, bucket.Token)
	for _, await := range []time.Duration{-time.Second, 0, time.Nanosecond} {
		if got := row.WithAwait(&l, 0, named(snap), await); got[0].State.History != nil {
			t.Errorf("a take that awaits %v has the history %+v", await, got[0].State.History)
		}
	}
	if got := row.WithAwait(&l, 0, named(snap), time.Microsecond); got[0].State.History == nil {
		t.Error("a take that awaits a microsecond has no history")
	}
}

func TestLevelCurve_Points(t *testing.T) {
	full := second(t, bucket.AlgorithmContinuous, 10, 1)
	seen := full.Peek(bucket.State{Spent: 3000 * full.Unit(), AsOf: 0, Unit: full.Unit()}, 0, 0, 0)
	want := []bucket.Point{{0, 7 * bucket.Token}, {3 * time.Second, 10 * bucket.Token}}
	if got := seen.LevelCurve(3*time.Second, 10); !slices.Equal(got, want) {
		t.Errorf("got %v until the bucket is full, want %v", got, want)
	}

	calendar := compile(t, bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 24 * time.Hour},
		Anchor: bucket.AnchorCalendar, Calendar: bucket.Calendar{Window: bucket.CalendarDay},
	})
	stepped := second(t, bucket.AlgorithmStepped, 100, 1)
	for _, tt := range []struct {
		name string
		l    *bucket.Limit
		most int // the calendar counts the start of the window after the last step, too
	}{{"calendar", &calendar, 21}, {"stepped", &stepped, 20}} {
		l, name := tt.l, tt.name
		s := bucket.State{Spent: 20 * int64(bucket.Token), AsOf: 0, Unit: l.Unit()}
		seen := l.Peek(s, 0, 0, 0)
		if got := seen.LevelCurve(seen.FullAfter(), tt.most); len(got) <= 20 {
			t.Errorf("%s: %d points for as many steps as allowed, want all steps", name, len(got))
		}
		if got := seen.LevelCurve(seen.FullAfter(), 19); len(got) != 2 {
			t.Errorf("%s: %v for one more step than allowed, want one line", name, got)
		}
	}
}

func TestNewSlots_Order(t *testing.T) {
	r := rand.New(testseed.PCG(1, 9))
	list := make([]bucket.Slot, 50)
	for i, end := range r.Perm(len(list)) {
		list[i] = bucket.Slot{ID: bucket.SlotID{byte(i)}, End: bucket.Instant(end / 2)}
	}
	s := bucket.NewSlots(list)
	for i, b := range s.All()[1:] {
		if a := s.All()[i]; a.End > b.End || a.End == b.End && a.ID.Compare(b.ID) >= 0 {
			t.Fatalf("slot %v is before %v", a, b)
		}
	}
}

func TestNextAfter(t *testing.T) {
	slots, tokens := mustSlots(t, 2, time.Second), second(t, bucket.AlgorithmStepped, 10, 1)
	var none bucket.Slots
	verdict := none.Peek(&slots, bucket.SlotID{1}, 5, 0)
	var snap bucket.Snapshot
	verdict.Show(&snap, &slots, 0, 5)
	if got := snap.NextAfter(); got != 0 {
		t.Errorf("got %v without slots, want 0", got)
	}
	some := bucket.NewSlots([]bucket.Slot{{ID: bucket.SlotID{1}, End: 300_000}, {ID: bucket.SlotID{2}, End: 900_000}})
	verdict = some.Peek(&slots, bucket.SlotID{3}, 100_000, bucket.Token)
	verdict.Show(&snap, &slots, bucket.Token, 100_000)
	if got := snap.NextAfter(); got != 200*time.Millisecond {
		t.Errorf("got %v, want 200 ms until the first slot ends", got)
	}
	snap = tokens.Peek(bucket.State{Spent: 5000, AsOf: 0, Unit: 1}, 300_000, 0, 0)
	if got, want := snap.NextAfter(), snap.FullAfter(); got != want || want != 4700*time.Millisecond {
		t.Errorf("got %v for another limit, want %v", got, want)
	}
}

// TestAfter_OfAnExpiredLog compares a snapshot after the expiry of its log with a new one.
func TestAfter_OfAnExpiredLog(t *testing.T) {
	l := second(t, bucket.AlgorithmSlidingLog, 10, 10)
	s, _ := l.Reserve(bucket.State{}, 100, bucket.Token, bucket.Forced)
	for _, us := range []int64{999_999, 1_000_000, 1_000_001, 5_000_000} {
		got := l.Peek(s, 100, 0, 0).After(time.Duration(us) * time.Microsecond)
		if want := l.Peek(s, bucket.Instant(100+us), 0, 0); got != want {
			t.Errorf("after %d µs: got %+v, want %+v", us, got, want)
		}
	}
}

func TestPeek_OfSlots(t *testing.T) {
	l := mustSlots(t, 2, time.Second)
	s := bucket.State{Spent: 2000, AsOf: 700_000, Unit: 1}
	if got := l.Peek(s, 0, bucket.Token, 0); got.Allowed || got.RetryAfter != 700*time.Millisecond {
		t.Errorf("got %+v, want a wait of 700 ms", got)
	}
}

func TestSaturatingAdd(t *testing.T) {
	const endless = 1 << 62
	for _, tt := range [][3]int64{{0, 0, 0}, {1, -1, 0}, {1, -2, endless}, {1, 2, 3}, {endless - 1, 0, endless - 1}, {endless - 1, 1, endless}, {math.MaxInt64, 1, endless}} {
		if got := bucket.SaturatingAdd(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%d + %d: got %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
}
