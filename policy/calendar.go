// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// Calendar limits: a fixed_window or a budget whose windows follow the clocks of a time zone.

// calendarWords are the windows of calendar limits.
var calendarWords = []string{"day", "week", "month", "year"}

var weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// calendarOf returns the calendar window of a length, or false for a duration.
func calendarOf(n *parse.Node) (bucket.CalendarWindow, bool) {
	if n == nil || n.Kind != parse.KindText {
		return 0, false
	}
	return bucket.ParseCalendarWindow(n.Text)
}

// readLength reads the length of a window: a duration or a calendar window.
func (c *compiler) readLength(n *parse.Node, name string) (time.Duration, bool) {
	if window, ok := calendarOf(n); ok {
		return window.Length(), true
	}
	if n.Kind == parse.KindText && !strings.ContainsAny(n.Text, "0123456789") {
		c.Add(n, name+" must be a duration, or day, week, month or year", parse.Nearest(n.Text, calendarWords))
		return 0, false
	}
	return c.Duration(n, name, "1m")
}

// readCalendar reads where the windows of a calendar limit begin.
func (c *compiler) readCalendar(o *parse.Object, length *parse.Node, window bucket.CalendarWindow) (calendar bucket.Calendar, ok bool) {
	calendar.Window, ok = window, true
	if f := o.Field("anchor"); f != nil {
		c.AddAt(f, fmt.Sprintf("anchor cannot be combined with a calendar window such as %s", window), "remove it: the windows of all keys begin together")
		ok = false
	}
	if f := o.Field("start"); f != nil {
		var read bool
		calendar.Start, read = c.readTimeOfDay(f, "start")
		ok = ok && read
	}
	if f := o.Field("start_day"); f != nil {
		ok = c.readStartDay(f, &calendar) && ok
	}
	f := o.Field("timezone")
	if f == nil {
		c.warn(length, "calendar-zone", "the windows of a calendar limit begin by UTC, because timezone is absent", `set timezone: "Europe/Berlin", or "UTC"`)
		return calendar, ok
	}
	var read bool
	calendar.Zone, read = c.readZone(f, "timezone")
	return calendar, ok && read
}

// readZone reads a name of the IANA time zone database.
func (c *compiler) readZone(n *parse.Node, what string) (string, bool) {
	const hint = `as in "Europe/Berlin" or "UTC"`
	if n.Kind != parse.KindText || n.Text == "" {
		c.Add(n, what+" must be a name of the IANA time zone database", hint)
		return "", false
	}
	if err := (bucket.Calendar{Window: bucket.CalendarDay, Zone: n.Text}).Check(); errors.Is(err, bucket.ErrCalendar) {
		c.Add(n, what+" is not a name of the IANA time zone database", hint)
		return "", false
	}
	return n.Text, true
}

// readTimeOfDay reads a time such as 09:30.
func (c *compiler) readTimeOfDay(n *parse.Node, what string) (time.Duration, bool) {
	at, ok := parseTimeOfDay(n.Text)
	if n.Kind != parse.KindText || !ok || at == 24*time.Hour {
		c.Add(n, what+" must be a time of day", `as in "09:30"; quote it in YAML`)
		return 0, false
	}
	return at, true
}

// parseTimeOfDay parses hours and minutes, from 00:00 to 24:00.
func parseTimeOfDay(s string) (time.Duration, bool) {
	if len(s) != 5 || s[2] != ':' {
		return 0, false
	}
	hours, err := strconv.ParseUint(s[:2], 10, 8)
	minutes, err2 := strconv.ParseUint(s[3:], 10, 8)
	at := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	return at, err == nil && err2 == nil && minutes < 60 && at <= 24*time.Hour
}

// readStartDay reads the first day of a week, a month or a year.
func (c *compiler) readStartDay(n *parse.Node, calendar *bucket.Calendar) bool {
	switch calendar.Window {
	case bucket.CalendarDay:
		c.AddAt(n, "start_day cannot be combined with days", `remove it; to begin days at another time, use start, as in "09:00"`)
		return false
	case bucket.CalendarWeek:
		i, ok := c.readWeekday(n, "start_day")
		calendar.Day = i + 1
		return ok
	case bucket.CalendarMonth:
		day, err := strconv.Atoi(n.Text)
		switch {
		case n.Kind != parse.KindNumber || err != nil || day < 1 || day > 31:
			c.Add(n, "start_day of a month must be a number from 1 to 28", "as in 5")
			return false
		case day > 28:
			c.Add(n, fmt.Sprintf("start_day of a month must be at most 28, because not every month has a day %d", day), "use 28, or 1 for calendar months")
			return false
		}
		calendar.Day = day
		return true
	}
	day, err := time.Parse("01-02", n.Text)
	if n.Kind != parse.KindText || err != nil {
		c.Add(n, "start_day of a year must be a month and a day", `as in "04-06"; February 29 is not in every year`)
		return false
	}
	calendar.Month, calendar.Day = day.Month(), day.Day()
	if err := calendar.Check(); err != nil {
		c.Add(n, "start_day of a year must be in every year", `use "02-28" or "03-01"`)
		return false
	}
	return true
}

// readWeekday returns the number of a weekday from 0, Monday.
func (c *compiler) readWeekday(n *parse.Node, what string) (int, bool) {
	for i, day := range weekdays {
		if n.Kind == parse.KindText && (strings.EqualFold(n.Text, day) || strings.EqualFold(n.Text, day[:3])) {
			return i, true
		}
	}
	c.Add(n, what+" must be a weekday", `as in "monday" or "mon"`)
	return 0, false
}

// refuseCalendarFields reports fields that only calendar windows have.
func (c *compiler) refuseCalendarFields(o *parse.Object, length string) (ok bool) {
	ok = true
	for _, name := range []string{"timezone", "start_day"} {
		if f := o.Field(name); f != nil {
			c.AddAt(f, fmt.Sprintf("%s requires a calendar window", name), fmt.Sprintf("use %s: day, week, month or year", length))
			ok = false
		}
	}
	if f := o.Field("start"); f != nil && f.Kind == parse.KindText {
		if _, clock := parseTimeOfDay(f.Text); clock {
			c.Add(f, "a start at a time of day requires a calendar window", fmt.Sprintf("use %s: day with a timezone, or a duration such as \"7h\"", length))
			ok = false
		}
	}
	return ok
}
