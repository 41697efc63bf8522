// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/metehq/mete/api"
)

func TestPoint(t *testing.T) {
	for _, tt := range []struct {
		point api.Point
		want  string
	}{
		{api.Point{}, "[0,0]"},
		{api.Point{After: 1500 * time.Millisecond, Level: 12_345}, "[1.5,12.345]"},
		{api.Point{After: -time.Microsecond, Level: -4000}, "[-0.000001,-4]"},
	} {
		text, err := json.Marshal(tt.point)
		var back api.Point
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if string(text) != tt.want || back != tt.point || err != nil {
			t.Errorf("%+v is %s and reads as %+v, %v; want %s", tt.point, text, back, err, tt.want)
		}
	}
	for _, wrong := range []string{`{}`, `["a",1]`, `[1,"a"]`, `[1]`} {
		var p api.Point
		if err := json.Unmarshal([]byte(wrong), &p); err == nil {
			t.Errorf("%s reads as %+v", wrong, p)
		}
	}
}

func TestInstant(t *testing.T) {
	const want = "1800000000.000001"
	text, err := json.Marshal(api.Instant(1_800_000_000_000_001))
	var back api.Instant
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if string(text) != want || back != 1_800_000_000_000_001 || err != nil {
		t.Errorf("got %s, which reads as %d, %v; want %s", text, back, err, want)
	}
}
