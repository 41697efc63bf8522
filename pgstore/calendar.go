// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/metehq/mete/bucket"
)

// addCalendars adds the windows of calendar limits to the call: see package internal/calendars.
func (g *mixedCall) addCalendars() {
	var reach int64
	for _, a := range g.asks {
		reach = max(reach, encodeWait(a.mode.MaxWait))
		for i, t := range a.taken {
			if a.refund && i < len(a.charges) {
				l := &a.charges[i].Limit
				g.windows.AddTaken(g.calendarName(l), l, t.At)
			}
		}
	}
	for i := range g.limits {
		g.windows.Add(g.calendarName(&g.limits[i]), &g.limits[i])
	}
	var numbers []int64
	g.packet.beginArray(pgtype.TextOID, g.windows.Len())
	g.windows.Each(reach, func(name string, reach int64, starts []bucket.Instant) {
		g.packet.appendText("", name)
		numbers = append(numbers, int64(len(starts)), reach)
		for _, at := range starts {
			numbers = append(numbers, int64(at))
		}
	})
	g.packet.addInts(numbers)
}

// calendarName returns the text of a calendar limit in rows, and nothing for other limits.
func (g *mixedCall) calendarName(l *bucket.Limit) string {
	if l.Anchor() != bucket.AnchorCalendar {
		return ""
	}
	return limVersion + l.Encode()
}

// learnWindows reads an answer that asks for windows.
func (g *mixedCall) learnWindows(numbers []int64, names []string) error {
	if len(numbers) != 2+len(names) || len(names) == 0 {
		return &AnswerError{"invalid windows"}
	}
	g.windows.Learn(bucket.Instant(numbers[1]))
	for i, name := range names {
		calendar := name[strings.LastIndexByte(name, ',')+1:]
		if err := g.windows.Need(name, calendar, bucket.Instant(numbers[2+i])); err != nil {
			return newNotSpent(err)
		}
	}
	return nil
}

// expectedTime returns the time that the function will probably read.
func (g *mixedCall) expectedTime() bucket.Instant {
	if g.clock >= 0 {
		return bucket.Instant(g.clock)
	}
	return bucket.At(time.Now())
}
