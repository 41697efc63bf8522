// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/trace"
)

// A request without a duration ends at once. A concurrency limit then denies nothing, also beside other limits, in shadow
// mode, and if the response settles the charge.
func TestRun_SlotsEndAtOnce(t *testing.T) {
	const slot = `{"name": "jobs", "group": "jobs", "limit_keys": [], "algorithm": "concurrency", "max": 1, "lease": "1d"}`
	const bucket = `{"name": "calls", "group": "calls", "limit_keys": [], "algorithm_config": {"rate": "1/1s", "burst": 2}}`
	for rules, want := range map[string]string{
		slot:                    "++++++",
		slot + "," + bucket:     "++-+--", // and one more after a second
		slot + "," + onFailures: "++++++",
		slot + `, {"name": "few", "mode": "shadow", "group": "few", "limit_keys": [], "algorithm": "concurrency", "max": 1, "lease": "1d"}`: "++++++",
	} {
		log := strings.Repeat(`{"at": 1, "status": 200}`+"\n", 3) + strings.Repeat(`{"at": 2, "status": 200}`+"\n", 3)
		if got := outcomes(t, `{"rules": [`+rules+`]}`, log, trace.FormatJSONL); got != want {
			t.Errorf("%s: got %s, want %s", rules, got, want)
		}
	}
}

// A request with a duration holds its slot until it ends, for longer than a lease. Its response then settles the charge.
func TestRun_Durations(t *testing.T) {
	const slot = `{"name": "jobs", "group": "jobs", "limit_keys": [], "algorithm": "concurrency", "max": 2, "lease": "1s"}`
	const failures = `{"name": "failures", "group": "failures", "limit_keys": [], "charge_on": {"status": [401]}, "rate": "1/1d", "burst": 2}`
	for _, c := range []struct{ rules, log, want string }{
		{slot, `{"at": 0, "duration": 10}
			{"at": 1, "duration": 2.5}
			{"at": 2, "duration": 1}
			{"at": 3.499999, "duration": 1}
			{"at": 3.5, "duration": 1}
			{"at": 4}
			{"at": 4.5}
			{"at": 4.5, "duration": 100}
			{"at": 9.999999}
			{"at": 10}`, "++--+-++-+"},
		{failures, `{"at": 0, "duration": 1, "status": 200}
			{"at": 0, "duration": 2, "status": 401}
			{"at": 0.5, "status": 200}
			{"at": 1, "duration": 1, "status": 200}
			{"at": 1.5}
			{"at": 2, "status": 401}
			{"at": 2}`, "++-+-+-"},
		{slot + "," + failures, `{"at": 0, "duration": 5, "status": 200}
			{"at": 0, "duration": 5, "status": 200}
			{"at": 4}
			{"at": 5}`, "++-+"},
	} {
		if got := outcomes(t, `{"rules": [`+c.rules+`]}`, c.log, trace.FormatJSONL); got != c.want {
			t.Errorf("%s: got %s, want %s", c.rules, got, c.want)
		}
	}
}
