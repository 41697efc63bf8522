// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// maxActiveHours bounds the intervals of active.
const maxActiveHours = 24

// A schedule is the time in which a rule applies, by the clocks of a time zone.
type schedule struct {
	loc   *time.Location
	days  [7]bool // from Monday
	hours []hours // none is the whole day
	text  string  // for people
}

// hours is a half-open interval of minutes of a day. If it ends before it begins, it ends on the next day.
type hours struct{ from, to int }

// contains reports whether the schedule contains an instant.
func (s *schedule) contains(now bucket.Instant) bool {
	t := now.Time().In(s.loc)
	today := (int(t.Weekday()) + 6) % 7
	if len(s.hours) == 0 {
		return s.days[today]
	}
	minute, yesterday := t.Hour()*60+t.Minute(), (today+6)%7
	for _, h := range s.hours {
		switch {
		case h.from < h.to:
			if s.days[today] && h.from <= minute && minute < h.to {
				return true
			}
		case s.days[today] && h.from <= minute, s.days[yesterday] && minute < h.to:
			return true
		}
	}
	return false
}

func (c *compiler) readActive(d *draft, n *parse.Node) {
	o := c.Object(n, activeTable)
	if o == nil {
		return
	}
	s, ok := &schedule{loc: time.UTC}, true
	days, times := o.Field("days"), o.Field("hours")
	if days == nil && times == nil {
		c.AddAt(n, "active has neither days nor hours", `as in {"days": ["mon", "fri"], "hours": "09:00-17:00", "timezone": "Europe/Berlin"}`)
		return
	}
	if days != nil {
		ok = c.readActiveDays(s, days)
	} else {
		s.days = [7]bool{true, true, true, true, true, true, true}
	}
	if times != nil {
		ok = c.readActiveHours(s, times) && ok
	}
	zone := "UTC"
	if f := o.Field("timezone"); f == nil {
		c.warn(n, "calendar-zone", "the active hours of a rule are by UTC, because timezone is absent", `set timezone: "Europe/Berlin", or "UTC"`)
	} else {
		var zoneOK bool
		if zone, zoneOK = c.readZone(f, "timezone"); !zoneOK {
			return
		}
	}
	loc, err := time.LoadLocation(zone)
	if err != nil || !ok {
		return // reported by readZone
	}
	s.loc = loc
	s.text = s.describe(zone)
	d.Rule.active = s
}

func (c *compiler) readActiveDays(s *schedule, n *parse.Node) bool {
	list, ok := c.Items(n, "days", true, len(s.days))
	for _, item := range list {
		i, read := c.readWeekday(item, "an active day")
		switch {
		case !read:
			ok = false
		case s.days[i]:
			c.Add(item, "the day is already in the list", "remove it")
			ok = false
		default:
			s.days[i] = true
		}
	}
	return ok
}

func (c *compiler) readActiveHours(s *schedule, n *parse.Node) bool {
	list := []*parse.Node{n}
	if n.Kind != parse.KindText {
		var ok bool
		if list, ok = c.Items(n, "hours", true, maxActiveHours); !ok {
			return false
		}
	}
	for _, item := range list {
		h, ok := parseHours(item)
		if !ok {
			c.Add(item, "active hours must be two times of day", `as in "09:00-17:00", or "22:00-06:00" over midnight`)
			return false
		}
		for _, other := range s.hours {
			if h.overlaps(other) {
				c.Add(item, fmt.Sprintf("active hours overlap %s", other), "join the intervals")
				return false
			}
		}
		s.hours = append(s.hours, h)
	}
	return true
}

// parseHours parses "09:00-17:00". The two times must differ.
func parseHours(n *parse.Node) (hours, bool) {
	first, last, found := strings.Cut(n.Text, "-")
	from, ok := parseTimeOfDay(first)
	to, ok2 := parseTimeOfDay(last)
	return hours{int(from / time.Minute), int(to / time.Minute)}, n.Kind == parse.KindText && found && ok && ok2 && from < 24*time.Hour && from != to
}

// overlaps compares intervals that apply every day.
func (h hours) overlaps(other hours) bool {
	inside := func(h hours, minute int) bool {
		if h.from < h.to {
			return h.from <= minute && minute < h.to
		}
		return h.from <= minute || minute < h.to
	}
	return inside(h, other.from) || inside(other, h.from)
}

func (h hours) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.from/60, h.from%60, h.to/60, h.to%60)
}

// describe formats the schedule: "Mon Fri 09:00-17:00 Europe/Berlin".
func (s *schedule) describe(zone string) string {
	var words []string
	if s.days != [7]bool{true, true, true, true, true, true, true} {
		for i, active := range s.days {
			if active {
				words = append(words, strings.ToUpper(weekdays[i][:1])+weekdays[i][1:3])
			}
		}
	}
	for _, h := range s.hours {
		words = append(words, h.String())
	}
	return strings.Join(append(words, zone), " ")
}

func (r *Rule) showActive() (string, bool) {
	if r.active == nil {
		return "", false
	}
	return r.active.text, true
}
