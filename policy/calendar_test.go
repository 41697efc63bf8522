// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A policy compiles to the calendar limit that a program would create.
func TestCalendars(t *testing.T) {
	for _, tt := range []struct {
		config   string
		calendar bucket.Calendar
		capacity bucket.Tokens
	}{
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "day", "timezone": "Asia/Kathmandu"}`,
			bucket.Calendar{Window: bucket.CalendarDay, Zone: "Asia/Kathmandu"}, 10},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "day", "timezone": "UTC", "start": "09:30"}`,
			bucket.Calendar{Window: bucket.CalendarDay, Zone: "UTC", Start: 9*time.Hour + 30*time.Minute}, 10},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "week", "timezone": "UTC"}`,
			bucket.Calendar{Window: bucket.CalendarWeek}, 10},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "week", "timezone": "UTC", "start_day": "Sun"}`,
			bucket.Calendar{Window: bucket.CalendarWeek, Day: 7}, 10},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "month", "timezone": "Europe/Berlin", "start_day": 28, "capacity": 25}`,
			bucket.Calendar{Window: bucket.CalendarMonth, Zone: "Europe/Berlin", Day: 28}, 25},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "year", "timezone": "Europe/London", "start_day": "04-06"}`,
			bucket.Calendar{Window: bucket.CalendarYear, Zone: "Europe/London", Month: time.April, Day: 6}, 10},
		{`"algorithm": "cost_based", "algorithm_config": {"budget": 10, "period": "month", "timezone": "America/New_York", "start_day": 15}`,
			bucket.Calendar{Window: bucket.CalendarMonth, Zone: "America/New_York", Day: 15}, 10},
	} {
		want, _, err := bucket.Spec{
			Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: tt.calendar,
			Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: tt.calendar.Window.Length()}, Capacity: tt.capacity * bucket.Token,
		}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], `+tt.config+`}`), policy.Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.config, err)
			continue
		}
		if got := m.Rules()[0].Limits[0].Bucket; got != want {
			t.Errorf("%s: got %v, want %v", tt.config, got, want)
		}
		if w := m.Warnings(); len(w) > 0 {
			t.Errorf("%s: warnings %v", tt.config, w)
		}
	}
}

// A calendar window without a time zone begins by UTC, with a warning.
func TestCalendars_WithoutZone(t *testing.T) {
	m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "month"}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := m.Warnings()
	if len(w) != 1 || w[0].Code != "calendar-zone" || w[0].Path != "/algorithm_config/window" {
		t.Errorf("warnings %+v, want calendar-zone at the window", w)
	}
	if c, ok := m.Rules()[0].Limits[0].Bucket.Calendar(); !ok || c.Zone != "UTC" {
		t.Errorf("calendar %+v", c)
	}
}
