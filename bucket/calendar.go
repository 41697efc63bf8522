// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/internal/almanac"
)

// A CalendarWindow is the length of a calendar's windows. The zero value is no window.
type CalendarWindow uint8

const (
	CalendarDay CalendarWindow = 1 + iota
	CalendarWeek
	CalendarMonth
	CalendarYear
)

var calendarWindows = [...]string{CalendarDay: "day", CalendarWeek: "week", CalendarMonth: "month", CalendarYear: "year"}

// ParseCalendarWindow parses "day", "week", "month" or "year".
func ParseCalendarWindow(s string) (CalendarWindow, bool) {
	i := slices.Index(calendarWindows[:], s)
	return CalendarWindow(max(i, 0)), i > 0
}

func (w CalendarWindow) String() string {
	if w < CalendarDay || w > CalendarYear {
		return fmt.Sprintf("calendar window %d", uint8(w))
	}
	return calendarWindows[w]
}

// Length returns the mean length of the windows: 24 hours, 7 days, 30.436875 days or 365.2425 days. It is the
// [Rate.Per] of a calendar limit. Single windows are shorter or longer.
func (w CalendarWindow) Length() time.Duration {
	const day = 24 * time.Hour
	switch w {
	case CalendarDay:
		return day
	case CalendarWeek:
		return 7 * day
	case CalendarMonth:
		return 2_629_746 * time.Second
	case CalendarYear:
		return 12 * 2_629_746 * time.Second
	}
	return 0
}

// MaxCalendarWindows bounds the capacity plus the debt of a calendar limit, in tokens of one window. Stores need
// all windows since the last take.
const MaxCalendarWindows = 1000

// A Calendar defines the windows of an [AnchorCalendar] limit by the clocks of a time zone. It is a value.
//
// A window starts when the clocks in the zone first show its date and time, or a later time. If the clocks skip the
// time, the window starts at the end of the gap. If they show it twice, the window starts at the first. A date that
// the zone skips has no window of its own.
type Calendar struct {
	Window CalendarWindow

	// Zone is a name of the IANA time zone database, such as "Europe/Berlin". The zero value is UTC. Programs without
	// an operating system's database import time/tzdata.
	Zone string

	// Day is the first day of a window. In a week it is 1 (Monday) to 7, in a month 1 to 28, and in a year a day of
	// Month. Every year must have the day. The zero value is 1. It must be 0 or 1 for days.
	Day int

	// Month is the month of Day in a year. The zero value is January. It must be 0 for other windows.
	Month time.Month

	// Start is the time of day at which windows start, in whole minutes and below 24 hours.
	Start time.Duration
}

// ErrCalendar is wrapped by errors about invalid calendars.
var ErrCalendar = errors.New("bucket: invalid calendar")

// normalize returns c with its defaults, or an error.
func (c Calendar) normalize() (Calendar, error) {
	if c.Zone == "" {
		c.Zone = "UTC"
	}
	if c.Day == 0 {
		c.Day = 1
	}
	if c.Month == 0 && c.Window == CalendarYear {
		c.Month = time.January
	}
	days := 1
	switch c.Window {
	case CalendarDay:
	case CalendarWeek:
		days = 7
	case CalendarMonth:
		days = 28
	case CalendarYear:
		if c.Month < time.January || c.Month > time.December {
			return c, fmt.Errorf("%w: month %d: must be between 1 and 12", ErrCalendar, int(c.Month))
		}
		days = time.Date(1970, c.Month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	default:
		return c, fmt.Errorf("%w: %v is unknown", ErrCalendar, c.Window)
	}
	switch {
	case c.Month != 0 && c.Window != CalendarYear:
		return c, fmt.Errorf("%w: a %v has no month", ErrCalendar, c.Window)
	case c.Day < 1 || c.Day > days:
		return c, fmt.Errorf("%w: day %d: must be between 1 and %d, which every %v has", ErrCalendar, c.Day, days, c.Window)
	case c.Start < 0 || c.Start >= 24*time.Hour || c.Start%time.Minute != 0:
		return c, fmt.Errorf("%w: start %v: must be a time of day in whole minutes", ErrCalendar, c.Start)
	}
	return c, nil
}

// internCalendar returns the number of c in package almanac. It fails for an invalid calendar.
func internCalendar(c Calendar) (int, error) {
	c, err := c.normalize()
	if err != nil {
		return 0, err
	}
	number, err := almanac.Intern(almanac.Calendar{Window: almanac.Window(c.Window), Zone: c.Zone, Day: c.Day, Month: c.Month, Start: c.Start})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCalendar, err)
	}
	return number, nil
}

func calendarFrom(c almanac.Calendar) Calendar {
	return Calendar{Window: CalendarWindow(c.Window), Zone: c.Zone, Day: c.Day, Month: c.Month, Start: c.Start}
}

// Check returns an error that wraps [ErrCalendar] if c is invalid or its zone is unknown.
func (c Calendar) Check() error {
	_, err := internCalendar(c)
	return err
}

// Boundaries appends to dst the start of the window that contains from, and all later starts up to the first one
// after to. It appends at most most+1 instants. It returns dst for an invalid calendar.
func (c Calendar) Boundaries(dst []Instant, from, to Instant, most int) []Instant {
	number, err := internCalendar(c)
	if err != nil {
		return dst
	}
	starts := almanac.At(number).Boundaries(make([]int64, 0, min(most, 64)+1), int64(from), int64(to), most)
	for _, start := range starts {
		dst = append(dst, Instant(start))
	}
	return dst
}

// Encode returns c as text without spaces, colons or commas: window.month.day.time.zone. [DecodeCalendar] parses it. It is
// empty for an invalid calendar.
func (c Calendar) Encode() string {
	c, err := c.normalize()
	if err != nil {
		return ""
	}
	minutes := int(c.Start / time.Minute)
	return fmt.Sprintf("%v.%d.%d.%02d%02d.%s", c.Window, c.Month, c.Day, minutes/60, minutes%60, c.Zone)
}

// DecodeCalendar parses the result of [Calendar.Encode]. Errors wrap [ErrCalendar].
func DecodeCalendar(text string) (Calendar, error) {
	f := strings.Split(text, ".")
	if len(f) != 5 || len(f[3]) != 4 || f[4] == "" {
		return Calendar{}, fmt.Errorf("%w: %q: must be window.month.day.time.zone", ErrCalendar, text)
	}
	window, ok := ParseCalendarWindow(f[0])
	month, err := strconv.Atoi(f[1])
	day, err2 := strconv.Atoi(f[2])
	clock, err3 := strconv.ParseUint(f[3], 10, 16)
	if !ok || err != nil || err2 != nil || err3 != nil || clock%100 > 59 {
		return Calendar{}, fmt.Errorf("%w: %q: must be window.month.day.time.zone", ErrCalendar, text)
	}
	c := Calendar{Window: window, Month: time.Month(month), Day: day, Zone: f[4]}
	c.Start = time.Duration(clock/100)*time.Hour + time.Duration(clock%100)*time.Minute
	return c, c.Check()
}

var dayNames = [...]string{1: "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// String formats c for display: "month from day 5 at 09:00 Europe/Berlin". Parts with default values are left out.
func (c Calendar) String() string {
	c, err := c.normalize()
	text := c.Window.String()
	switch {
	case err != nil:
	case c.Window == CalendarWeek && c.Day != 1:
		text += " from " + dayNames[c.Day]
	case c.Window == CalendarMonth && c.Day != 1:
		text += fmt.Sprintf(" from day %d", c.Day)
	case c.Window == CalendarYear && (c.Day != 1 || c.Month != time.January):
		text += fmt.Sprintf(" from %v %d", c.Month, c.Day)
	}
	if c.Start != 0 {
		minutes := int(c.Start / time.Minute)
		text += fmt.Sprintf(" at %02d:%02d", minutes/60, minutes%60)
	}
	return text + " " + c.Zone
}
