// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// TestCalendar_AgreesWithZoneinfo compares all window starts from 1969 to 2199 with the window starts of Python's zoneinfo.
func TestCalendar_AgreesWithZoneinfo(t *testing.T) {
	for _, table := range calendarsOf(t) {
		first := slices.IndexFunc(table.starts, func(us int64) bool { return us >= time.Date(1969, 1, 5, 0, 0, 0, 0, time.UTC).UnixMicro() })
		want := table.starts[first:]
		from, to := bucket.Instant(want[0]), bucket.Instant(want[len(want)-1]-1)
		got := table.calendar.Boundaries(nil, from, to, len(want))
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || int64(got[i]) != want[i] {
				t.Errorf("%s: start %d of %d is %v, want %v; after an update of the time zone database, run testdata/calendars/make.py",
					table.text, i, len(want), at(got, i), at(want, i))
				break
			}
		}
	}
}

func at[T ~int64](starts []T, i int) time.Time {
	if i >= len(starts) {
		return time.Time{}
	}
	return bucket.Instant(starts[i]).Time()
}

// TestCalendar_WindowAtEachEdge asks for the window at the first and the last microsecond of windows.
func TestCalendar_WindowAtEachEdge(t *testing.T) {
	for _, table := range calendarsOf(t) {
		l := calendarLimit(t, table.calendar, 1, 1)
		for i := 400 % len(table.starts); i < len(table.starts)-1; i += 1 + len(table.starts)/500 {
			start, end := bucket.Instant(table.starts[i]), bucket.Instant(table.starts[i+1])
			for _, now := range []bucket.Instant{start, start + 1, (start + end) / 2, end - 1} {
				if gotStart, gotEnd := l.Window(now); gotStart != start || gotEnd != end {
					t.Fatalf("%s: window at %v is from %v to %v, want from %v to %v",
						table.text, now.Time(), gotStart.Time(), gotEnd.Time(), start.Time(), end.Time())
				}
			}
		}
	}
}

func calendarLimit(t testing.TB, c bucket.Calendar, tokens, capacity bucket.Tokens) bucket.Limit {
	t.Helper()
	l, _, err := bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: c,
		Rate: bucket.Rate{Tokens: tokens * bucket.Token, Per: c.Window.Length()}, Capacity: capacity * bucket.Token,
	}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCalendar_Gaps checks the documented rule at the changes of daylight saving time.
func TestCalendar_Gaps(t *testing.T) {
	day := bucket.CalendarDay
	for _, c := range []struct {
		calendar    bucket.Calendar
		in, of, end string // an instant, and its window
	}{
		// The clocks skip 02:30, and the window starts at 03:00.
		{bucket.Calendar{Window: day, Zone: "Europe/Berlin", Start: 150 * time.Minute},
			"2026-03-29T12:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		// The clocks show 02:30 twice, and the first counts.
		{bucket.Calendar{Window: day, Zone: "Europe/Berlin", Start: 150 * time.Minute},
			"2026-10-25T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		// Apia skipped 2011-12-30.
		{bucket.Calendar{Window: day, Zone: "Pacific/Apia"}, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{bucket.Calendar{Window: day, Zone: "Pacific/Apia"}, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		// The clocks skip midnight.
		{bucket.Calendar{Window: day, Zone: "America/Sao_Paulo"}, "2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{bucket.Calendar{Window: bucket.CalendarMonth}, "2028-02-29T23:59:59Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{bucket.Calendar{Window: bucket.CalendarWeek}, "2026-11-28T13:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{bucket.Calendar{Window: bucket.CalendarYear, Month: time.April, Day: 6, Zone: "Europe/London"},
			"2026-04-05T22:59:59Z", "2025-04-05T23:00:00Z", "2026-04-05T23:00:00Z"},
	} {
		l := calendarLimit(t, c.calendar, 1, 1)
		start, end := l.Window(instantOf(t, c.in))
		if start != instantOf(t, c.of) || end != instantOf(t, c.end) {
			t.Errorf("%v at %s: from %v to %v, want from %s to %s", c.calendar, c.in, start.Time(), end.Time(), c.of, c.end)
		}
	}
}

func instantOf(t testing.TB, text string) bucket.Instant {
	t.Helper()
	i, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return bucket.At(i)
}

func TestCalendar_Refused(t *testing.T) {
	for name, c := range map[string]bucket.Calendar{
		"no window":          {},
		"unknown window":     {Window: 5},
		"day 31":             {Window: bucket.CalendarMonth, Day: 31},
		"day 29":             {Window: bucket.CalendarMonth, Day: 29},
		"weekday 8":          {Window: bucket.CalendarWeek, Day: 8},
		"negative day":       {Window: bucket.CalendarMonth, Day: -1},
		"day of a day":       {Window: bucket.CalendarDay, Day: 2},
		"month of a month":   {Window: bucket.CalendarMonth, Month: 2},
		"month 13":           {Window: bucket.CalendarYear, Month: 13},
		"february 29":        {Window: bucket.CalendarYear, Month: 2, Day: 29},
		"24:00":              {Window: bucket.CalendarDay, Start: 24 * time.Hour},
		"seconds":            {Window: bucket.CalendarDay, Start: time.Second},
		"negative start":     {Window: bucket.CalendarDay, Start: -time.Minute},
		"unknown zone":       {Window: bucket.CalendarDay, Zone: "Europe/Atlantis"},
		"local zone":         {Window: bucket.CalendarDay, Zone: "Local"},
		"path":               {Window: bucket.CalendarDay, Zone: "../etc/localtime"},
		"leap seconds":       {Window: bucket.CalendarDay, Zone: "right/Europe/Berlin"},
		"copy":               {Window: bucket.CalendarDay, Zone: "posix/Europe/Berlin"},
		"letters":            {Window: bucket.CalendarDay, Zone: "Europe/Zürich"},
		"text separators":    {Window: bucket.CalendarDay, Zone: "Etc/UTC,x"},
		"zone of 65 letters": {Window: bucket.CalendarDay, Zone: "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	} {
		if err := c.Check(); !errors.Is(err, bucket.ErrCalendar) {
			t.Errorf("%s: %v, want an error that wraps ErrCalendar", name, err)
		}
		if got := c.Boundaries(nil, 0, 1, 5); got != nil {
			t.Errorf("%s: boundaries %v", name, got)
		}
	}
	month := bucket.Calendar{Window: bucket.CalendarMonth}
	per, much := month.Window.Length(), 991*bucket.Token
	for name, s := range map[string]bucket.Spec{
		"another period":     {Calendar: month, Anchor: bucket.AnchorCalendar, Rate: bucket.Rate{Tokens: 1, Per: 30 * 24 * time.Hour}},
		"without the anchor": {Calendar: month, Rate: bucket.Rate{Tokens: 1, Per: per}},
		"without a calendar": {Anchor: bucket.AnchorCalendar, Rate: bucket.Rate{Tokens: 1, Per: per}},
		"start":              {Calendar: month, Anchor: bucket.AnchorCalendar, Start: time.Hour, Rate: bucket.Rate{Tokens: 1, Per: per}},
		"1001 windows":       {Calendar: month, Anchor: bucket.AnchorCalendar, Capacity: 1001, Rate: bucket.Rate{Tokens: 1, Per: per}},
		"much debt":          {Calendar: month, Anchor: bucket.AnchorCalendar, Capacity: 10 * bucket.Token, MaxReserved: &much, Rate: bucket.Rate{Tokens: bucket.Token, Per: per}},
		"long queue":         {Calendar: month, Anchor: bucket.AnchorCalendar, Capacity: 10 * bucket.Token, Queue: much, Rate: bucket.Rate{Tokens: bucket.Token, Per: per}},
	} {
		s.Algorithm = bucket.AlgorithmStepped
		if l, _, err := s.Compile(); !errors.Is(err, bucket.ErrLimit) {
			t.Errorf("%s: %v, %v, want an error that wraps ErrLimit", name, l, err)
		}
	}
	windows := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Anchor: bucket.AnchorCalendar, Calendar: month, Rate: bucket.Rate{Tokens: 1000, Per: per}}
	if _, _, err := windows.Compile(); !errors.Is(err, bucket.ErrLimit) {
		t.Errorf("sliding log with a calendar: %v", err)
	}
}

// TestCalendar_Identity checks which calendars are the same limit, and that limits survive encoding.
func TestCalendar_Identity(t *testing.T) {
	base := bucket.Calendar{Window: bucket.CalendarMonth, Zone: "Europe/Berlin", Day: 5, Start: 9 * time.Hour}
	l := calendarLimit(t, base, 10, 20)
	others := []bucket.Calendar{base, base, base, base}
	others[0].Zone, others[1].Day, others[2].Start, others[3].Window = "Europe/Paris", 6, 0, bucket.CalendarWeek
	for _, c := range others {
		if m := calendarLimit(t, c, 10, 20); l == m || l.EqualExceptKey(&m) {
			t.Errorf("%v and %v are the same limit", base, c)
		}
	}
	if m := calendarLimit(t, base, 10, 20); l != m || l.ForKey("x") != l {
		t.Errorf("%v and %v are different limits", l, m)
	}
	plain := bucket.Calendar{Window: bucket.CalendarYear}
	full := bucket.Calendar{Window: bucket.CalendarYear, Zone: "UTC", Day: 1, Month: time.January}
	if calendarLimit(t, plain, 1, 1) != calendarLimit(t, full, 1, 1) {
		t.Errorf("%v and %v are different limits", plain, full)
	}
	for _, table := range calendarsOf(t) {
		l := calendarLimit(t, table.calendar, 10, 20)
		text := l.Encode()
		if got, err := bucket.DecodeLimit(text); err != nil || got != l {
			t.Errorf("DecodeLimit(%q) = %v, %v, want %v", text, got, err, l)
		}
		if c, ok := l.Calendar(); !ok || c != table.calendar {
			t.Errorf("calendar of %s is %+v, %v", table.text, c, ok)
		}
	}
	for _, text := range []string{
		"1000,0,1000,2629746000000,13",                                // no calendar
		"1000,0,1000,2629746000000,13,month.0.31.0000.UTC",            // day 31
		"1000,0,1000,2629746000000,13,month.0.1.0060.UTC",             // minute 60
		"1000,0,1000,2629746000000,13,month.0.1.0000.Europe/Atlantis", // unknown zone
		"1000,0,1000,2629746000000,269,month.0.1.0000.UTC",            // a number of another process
		"1000,0,1000,2629746000000,1,month.0.1.0000.UTC",              // no calendar limit
		"1000,0,1000,2629746000000,12,month.0.1.0000.UTC",             // not stepped
		"1000,0,1000,86400000000,13,month.0.1.0000.UTC",               // another period
		"1001000,0,1000,2629746000000,13,month.0.1.0000.UTC",          // 1001 windows
		"1000,0,1000,2629746000000,13,month.0.1.0000.UTC,",
	} {
		if l, err := bucket.DecodeLimit(text); !errors.Is(err, bucket.ErrLimit) {
			t.Errorf("DecodeLimit(%q) = %v, %v, want an error", text, l, err)
		}
	}
}

func TestCalendar_Text(t *testing.T) {
	for _, c := range []struct {
		calendar bucket.Calendar
		want     string
	}{
		{bucket.Calendar{Window: bucket.CalendarDay}, "day UTC"},
		{bucket.Calendar{Window: bucket.CalendarDay, Zone: "Asia/Kathmandu", Start: 9*time.Hour + 5*time.Minute}, "day at 09:05 Asia/Kathmandu"},
		{bucket.Calendar{Window: bucket.CalendarWeek, Day: 1}, "week UTC"},
		{bucket.Calendar{Window: bucket.CalendarWeek, Day: 7}, "week from Sunday UTC"},
		{bucket.Calendar{Window: bucket.CalendarMonth, Day: 5}, "month from day 5 UTC"},
		{bucket.Calendar{Window: bucket.CalendarYear}, "year UTC"},
		{bucket.Calendar{Window: bucket.CalendarYear, Day: 6}, "year from January 6 UTC"},
		{bucket.Calendar{Window: bucket.CalendarYear, Month: time.April, Day: 6}, "year from April 6 UTC"},
		{bucket.Calendar{Window: bucket.CalendarYear, Month: time.December}, "year from December 1 UTC"},
	} {
		if got := c.calendar.String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.calendar, got, c.want)
		}
	}
	l := calendarLimit(t, bucket.Calendar{Window: bucket.CalendarMonth, Zone: "Europe/Berlin"}, 10, 20)
	if got, want := l.String(), "capacity 20, refill 10 every month Europe/Berlin"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCalendarWindow_Text(t *testing.T) {
	for w, want := range map[bucket.CalendarWindow]string{
		bucket.CalendarDay: "day", bucket.CalendarYear: "year", 0: "calendar window 0", 5: "calendar window 5",
	} {
		if got := w.String(); got != want {
			t.Errorf("window %d: got %q, want %q", uint8(w), got, want)
		}
		if w > bucket.CalendarYear && w.Length() != 0 {
			t.Errorf("window %d has the length %v", uint8(w), w.Length())
		}
	}
	if w, ok := bucket.ParseCalendarWindow(""); ok {
		t.Errorf("the empty text is the window %v", w)
	}
}

func TestDecodeCalendar(t *testing.T) {
	for _, want := range []bucket.Calendar{
		{Window: bucket.CalendarDay, Start: 23*time.Hour + 59*time.Minute},
		{Window: bucket.CalendarYear, Month: time.December, Day: 31, Zone: "Europe/Berlin"},
	} {
		text := want.Encode()
		if got, err := bucket.DecodeCalendar(text); err != nil || got.Encode() != text {
			t.Errorf("DecodeCalendar(%q) = %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "month.0.1.0000", "month.0.1.0000.UTC.x", "month.0.1.0000.", "month.0.1.000.UTC", ".0.1.0000.UTC", "century.0.1.0000.UTC",
		"month.x.1.0000.UTC", "month.0.x.0000.UTC", "month.0.1.00x0.UTC", "month.0.1.0060.UTC", "month.0.1.2400.UTC",
	} {
		if c, err := bucket.DecodeCalendar(text); !errors.Is(err, bucket.ErrCalendar) {
			t.Errorf("DecodeCalendar(%q) = %+v, %v, want an error that wraps ErrCalendar", text, c, err)
		}
	}
}

// TestCalendar_CloneOfAClock checks that a local bucket during an outage does not refill early by a clock that is behind.
func TestCalendar_CloneOfAClock(t *testing.T) {
	l := calendarLimit(t, bucket.Calendar{Window: bucket.CalendarDay}, 5, 5)
	midnight := instantOf(t, "2026-11-28T00:00:00Z")
	_, snap := l.Take(bucket.State{}, midnight+3, 5*bucket.Token)
	state := snap.State(midnight - 1000) // a local clock that is behind the store's
	if got := l.Peek(state, midnight+2, bucket.Token, 0); got.Allowed || got.RetryAfter != 24*time.Hour-2*time.Microsecond {
		t.Errorf("got %+v, want a denial until the end of the day", got)
	}
}

// TestCalendar_InAnyOrder asks for windows of one calendar in any order and by several goroutines: the last window is cached.
func TestCalendar_InAnyOrder(t *testing.T) {
	tables := calendarsOf(t)
	done := make(chan bool)
	for g := range 4 {
		go func() {
			defer func() { done <- true }()
			r := rand.New(rand.NewPCG(7, uint64(g)))
			for range 20_000 {
				table := &tables[r.IntN(8)]
				i := 3 + r.IntN(len(table.starts)-5)
				l := calendarLimit(t, table.calendar, 1, 1)
				now := table.starts[i] + r.Int64N(table.starts[i+1]-table.starts[i])
				if start, end := l.Window(bucket.Instant(now)); int64(start) != table.starts[i] || int64(end) != table.starts[i+1] {
					t.Errorf("%s at %d: %d to %d, want %d to %d", table.text, now, start, end, table.starts[i], table.starts[i+1])
					return
				}
			}
		}()
	}
	for range 4 {
		<-done
	}
}
