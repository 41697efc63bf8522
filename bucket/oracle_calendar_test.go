// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A calendarTable has the window starts of one calendar, which make.py computed with another time zone library.
type calendarTable struct {
	text     string
	calendar bucket.Calendar
	starts   []int64 // from 1968 to 2200
}

var readCalendars = sync.OnceValues(func() ([]calendarTable, error) {
	file, err := os.Open("testdata/calendars/boundaries.txt")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var tables []calendarTable
	lines := bufio.NewScanner(file)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "#") {
			tables = append(tables, readCalendar(lines.Text()))
		}
	}
	return tables, lines.Err()
})

// readCalendar reads a line of boundaries.txt. A malformed line panics.
func readCalendar(line string) calendarTable {
	words := strings.Fields(line)
	parts := strings.Split(words[0], ".")
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return n
	}
	window, _ := bucket.ParseCalendarWindow(parts[0])
	month, day, clock := number(parts[1]), number(parts[2]), number(parts[3])
	at := time.Duration(clock/100)*time.Hour + time.Duration(clock%100)*time.Minute
	table := calendarTable{text: words[0], calendar: bucket.Calendar{
		Window: window, Month: time.Month(month), Day: day, Start: at, Zone: parts[4],
	}}
	date, step := time.Date(1968, 1, 1, 0, 0, 0, 0, time.UTC), func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }
	switch window {
	case bucket.CalendarWeek:
		for (int(date.Weekday())+6)%7+1 != day {
			date = date.AddDate(0, 0, 1)
		}
		step = func(t time.Time) time.Time { return t.AddDate(0, 0, 7) }
	case bucket.CalendarMonth:
		date, step = date.AddDate(0, 0, day-1), func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }
	case bucket.CalendarYear:
		date, step = time.Date(1968, time.Month(month), day, 0, 0, 0, 0, time.UTC), func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }
	}
	for _, run := range words[1:] {
		offset, count, _ := strings.Cut(run, "x")
		for range number(count) {
			if start := date.Add(at).UnixMicro() + int64(number(offset))*1e6; !slices.Contains(table.starts[max(len(table.starts)-1, 0):], start) {
				table.starts = append(table.starts, start)
			}
			date = step(date)
		}
	}
	return table
}

// calendarsOf returns the tables of all calendars.
func calendarsOf(t testing.TB) []calendarTable {
	t.Helper()
	tables, err := readCalendars()
	if err != nil || len(tables) < 100 {
		t.Fatalf("%d calendars: %v", len(tables), err)
	}
	return tables
}

// startsOf returns the window starts of a calendar in the tables, or nil.
func startsOf(c bucket.Calendar) []int64 {
	tables, _ := readCalendars()
	for i := range tables {
		if tables[i].calendar == c {
			return tables[i].starts
		}
	}
	return nil
}

// A calendarView is a calendar bucket that looks at every window start.
type calendarView struct {
	l                 *oracleLimit
	capacity, debt, n int64
	level, asOf       int64
}

func (o *oracle) calendar(l *oracleLimit, now int64) *calendarView {
	n, _ := l.limit.Refill()
	v := &calendarView{l: l, capacity: int64(l.limit.Capacity()), debt: int64(l.limit.MaxReserved()), n: int64(n), asOf: o.asOf}
	v.level = v.capacity - o.carried(l).Num().Int64()
	v.level, v.asOf = v.at(now)
	v.level = max(v.level, -v.debt) // after a limit is lowered, the debt is within its debt limit
	return v
}

// later returns the window starts after t.
func (v *calendarView) later(t int64) []int64 {
	i, found := slices.BinarySearch(v.l.starts, t)
	if found {
		i++
	}
	return v.l.starts[i:]
}

// at returns the tokens at t, and the instant of the bucket.
func (v *calendarView) at(t int64) (level, asOf int64) {
	level, asOf = v.level, v.asOf
	for _, start := range v.later(v.asOf) {
		if start > t {
			break
		}
		level, asOf = min(level+v.n, v.capacity), start
	}
	return level, asOf
}

// comes returns the window start with want tokens.
func (v *calendarView) comes(t, want int64) int64 {
	level, asOf := v.at(t)
	for _, start := range v.later(max(t, asOf)) {
		if level >= want {
			return asOf
		}
		level, asOf = level+v.n, start
	}
	if level < want {
		panic("the table of window starts is too short")
	}
	return asOf
}

func (v *calendarView) admits(t, cost, maxWait int64) bool {
	level, asOf := v.at(t)
	switch {
	case cost < 0 || level-cost < -v.debt:
		return false
	case level >= cost || maxWait == forced || maxWait == 0 && v.l.limit.Queued():
		return true
	}
	return maxWait > 0 && cost <= v.capacity && v.comes(t, cost) <= max(t, asOf)+min(maxWait, longest)
}

func (v *calendarView) remaining(t int64) int64 { level, _ := v.at(t); return level }
func (v *calendarView) full(t int64) bool       { level, _ := v.at(t); return level == v.capacity }
func (v *calendarView) owes(t, _ int64) bool    { level, _ := v.at(t); return level < 0 }
func (v *calendarView) end() int64              { return v.comes(v.asOf, v.capacity) }

func (v *calendarView) spend(o *oracle, now, cost int64) {
	level, asOf := v.at(now)
	o.write(v.l, v.capacity-level+cost, asOf)
}

func (v *calendarView) refund(o *oracle, now, amount int64) {
	level, asOf := v.at(now)
	o.write(v.l, v.capacity-level-min(amount, v.capacity-level), asOf)
}
