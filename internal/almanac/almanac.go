// SPDX-License-Identifier: Apache-2.0

// Package almanac computes the windows of calendars by the clocks of time zones. Package bucket uses it: the time zone
// database is a file of the operating system, and this package caches what it has read. The cache never changes a result.
//
// Instants are microseconds since 1970.
package almanac

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Calendar is a bucket.Calendar without zero values that stand for others. Its fields are valid, except that the zone
// may be unknown.
type Calendar struct {
	Window Window
	Zone   string
	Day    int // of a day, 1
	Month  time.Month
	Start  time.Duration
}

// A Window is the length of the windows.
type Window uint8

const (
	Day Window = 1 + iota
	Week
	Month
	Year
)

// An Almanac computes the windows of one calendar. It is safe for concurrent use.
type Almanac struct {
	Calendar
	loc   *time.Location
	skips bool // the windows are days, and the zone has skipped a date

	current atomic.Pointer[Span] // the last result of Around
}

// A Span is a half-open window.
type Span struct{ Start, End int64 }

// latest bounds instants: the arithmetic of package bucket ends there, in 2255.
const latest = 1<<53 - 1

// maxCalendars bounds the different calendars of a process. They are never removed.
const maxCalendars = 1 << 16

// calendars numbers the calendars of the process, so that a bucket.Limit stays small and comparable. The table is a cache
// and never changes a result.
var calendars struct {
	list atomic.Pointer[[]*Almanac] // append-only

	mu      sync.Mutex // guards the fields below, and writes to list
	numbers map[Calendar]int
	zones   map[string]zone
}

type zone struct {
	loc   *time.Location
	skips bool
}

// At returns the almanac with a number from [Intern].
func At(number int) *Almanac { return (*calendars.list.Load())[number] }

// Intern returns the number of c in this process. It fails for an unknown zone.
func Intern(c Calendar) (int, error) {
	t := &calendars
	t.mu.Lock()
	defer t.mu.Unlock()
	if number, ok := t.numbers[c]; ok {
		return number, nil
	}
	z, err := loadZone(c.Zone)
	if err != nil {
		return 0, err
	}
	var list []*Almanac
	if old := t.list.Load(); old != nil {
		list = *old
	}
	if len(list) == maxCalendars {
		return 0, fmt.Errorf("this process already has %d different calendars: restart it", maxCalendars)
	}
	c.Zone = strings.Clone(c.Zone) // the string may be part of a large one
	list = append(list, &Almanac{Calendar: c, loc: z.loc, skips: z.skips && c.Window == Day})
	if t.numbers == nil {
		t.numbers = map[Calendar]int{}
	}
	t.numbers[c] = len(list) - 1
	t.list.Store(&list)
	return len(list) - 1, nil
}

const maxZoneName = 64

// loadZone loads a zone of the IANA database. Files beside the database, such as those with leap seconds, are refused. The
// caller holds the mutex.
func loadZone(name string) (zone, error) {
	t := &calendars
	if z, ok := t.zones[name]; ok {
		return z, nil
	}
	refused := len(name) > maxZoneName || name == "Local" || name == "localtime" || name == "posixrules" ||
		strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") ||
		strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_+-/", r)
		})
	if refused {
		return zone{}, fmt.Errorf("time zone %q: must be a name of the IANA database, such as Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return zone{}, fmt.Errorf("time zone %q is unknown: use a name of the IANA database, such as Europe/Berlin", name)
	}
	if t.zones == nil {
		t.zones = map[string]zone{}
	}
	z := zone{loc, hasSkippedDate(loc)}
	t.zones[strings.Clone(name)] = z
	return z, nil
}

// hasSkippedDate reports whether clocks in a zone have moved forward by a day or more since 1970. Few zones at the date
// line did.
func hasSkippedDate(loc *time.Location) bool {
	const end = 4102444800 // 2100
	for t := int64(0); t < end; {
		before, next := offsetAt(loc, t)
		if after, _ := offsetAt(loc, next); after-before >= daySeconds {
			return true
		}
		t = next
	}
	return false
}

// offsetAt returns the offset of a zone at t, and a later time until which the offset surely is the same. All are in
// seconds.
func offsetAt(loc *time.Location, t int64) (offset, next int64) {
	in := time.Unix(t, 0).In(loc)
	_, seconds := in.Zone()
	_, end := in.ZoneBounds()
	switch {
	case end.IsZero():
		return int64(seconds), math.MaxInt64
	case end.Unix() > t:
		return int64(seconds), end.Unix()
	}
	// On the last day of a leap year after 2037, ZoneBounds returns the start of the day. No rule changes clocks then.
	return int64(seconds), t + 3600
}

// Around returns the window that contains t.
func (a *Almanac) Around(t int64) *Span {
	if w := a.current.Load(); w != nil && w.Start <= t && t < w.End {
		return w
	}
	k := a.index(t)
	w := &Span{a.start(k), a.start(k + 1)}
	a.current.Store(w)
	return w
}

// Boundaries appends to dst the start of the window that contains from, and all later starts up to the first one after
// to. It appends at most most+1 starts.
func (a *Almanac) Boundaries(dst []int64, from, to int64, most int) []int64 {
	k := a.index(from)
	at := a.start(k)
	dst = append(dst, at)
	for ; at <= to && most > 0; k++ {
		if next := a.start(k + 1); next > at {
			at = next
			dst = append(dst, at)
			most--
		}
	}
	return dst
}

// StartAfter returns the start of the count-th window after t, for a count of at least 1. It returns false if the start is
// more than 500 years after t.
func (a *Almanac) StartAfter(t int64, count int64) (int64, bool) {
	if length := a.Window.shortest(); count > 2*latest/length {
		return 0, false
	}
	k := a.index(t)
	if !a.skips {
		return a.start(k + count), true
	}
	for at := a.start(k); ; k++ {
		if next := a.start(k + 1); next > at {
			if at = next; count == 1 {
				return at, true
			}
			count--
		}
	}
}

// CountStarts returns the number of windows that start after from and at or before to, at most most.
func (a *Almanac) CountStarts(from, to int64, most int64) int64 {
	if to <= from {
		return 0
	}
	k, last := a.index(from), a.index(to)
	if !a.skips {
		return min(last-k, most)
	}
	count := int64(0)
	for at := a.start(k); k < last && count < most; k++ {
		if next := a.start(k + 1); next > at {
			at = next
			count++
		}
	}
	return count
}

// index returns the number of the last window that starts at or before t. Windows are counted from 1970. The dates that
// a zone skips have numbers, too.
func (a *Almanac) index(t int64) int64 {
	t = min(max(t, -latest), latest)
	at := time.UnixMicro(t)
	_, offset := at.In(a.loc).Zone()
	local := at.Unix() + int64(offset) - int64(a.Start/time.Second)
	k := int64(0)
	switch a.Window {
	case Day:
		k = floorDiv(local, daySeconds)
	case Week:
		k = floorDiv(local-int64(a.Day+3)*daySeconds, 7*daySeconds)
	case Month:
		date := time.Unix(local, 0).UTC()
		k = int64(date.Year()-1970)*12 + int64(date.Month()) - 1
	case Year:
		k = int64(time.Unix(local, 0).UTC().Year() - 1970)
	}
	for a.start(k+1) <= t {
		k++
	}
	for a.start(k) > t {
		k--
	}
	return k
}

const daySeconds = 24 * 3600

// start returns the start of window k: the first instant at which the clocks show its date and time, or a later time.
func (a *Almanac) start(k int64) int64 {
	var date time.Time
	switch a.Window {
	case Day:
		date = time.Unix(k*daySeconds, 0)
	case Week:
		date = time.Unix((7*k+int64(a.Day)+3)*daySeconds, 0) // 1970-01-05 was a Monday
	case Month:
		date = time.Date(1970, 1+time.Month(k), a.Day, 0, 0, 0, 0, time.UTC)
	case Year:
		date = time.Date(1970+int(k), a.Month, a.Day, 0, 0, 0, 0, time.UTC)
	}
	want := date.Unix() + int64(a.Start/time.Second)

	// No zone is more than 25 hours away from UTC, so the clocks show less than want at first.
	const farthest = 25 * 3600
	for t := want - farthest; ; {
		offset, next := offsetAt(a.loc, t)
		if at := max(t, want-offset); at < next {
			return at * 1e6
		}
		t = next
	}
}

// shortest returns a length in microseconds that no window is shorter than.
func (w Window) shortest() int64 {
	return [...]int64{Day: 1, Week: 6, Month: 27, Year: 364}[w] * daySeconds * 1e6 / 2
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
