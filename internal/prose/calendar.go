// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// calendarStarts describes the windows of a calendar: "per month, from the 1st at 00:00 Europe/Berlin".
func calendarStarts(c bucket.Calendar) string {
	clock := formatClock(time.UnixMicro(0).UTC().Add(c.Start))
	switch c.Window {
	case bucket.CalendarWeek:
		return fmt.Sprintf("per week, from %v at %s %s", time.Weekday(c.Day%7), clock, c.Zone)
	case bucket.CalendarMonth:
		return fmt.Sprintf("per month, from the %s at %s %s", ordinal(c.Day), clock, c.Zone)
	case bucket.CalendarYear:
		return fmt.Sprintf("per year, from %v %d at %s %s", c.Month, c.Day, clock, c.Zone)
	}
	return fmt.Sprintf("per day, from %s %s", clock, c.Zone)
}

// ordinal formats a day of a month: "1st".
func ordinal(n int) string {
	suffix := "th"
	if n < 11 || n > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
