// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

// TestRun starts all there is, and measures it for a moment.
func TestRun(t *testing.T) {
	var out, progress strings.Builder
	if err := run(t.Context(), []string{"-rounds", "2", "-time", "1s", "-callers", "2", "-dashboards", "5"}, &out, &progress); err != nil {
		t.Fatalf("run: %v\n%s\n%s", err, &progress, &out)
	}
	for _, want := range []string{"decisions/s, 5 dashboards", "server CPU for one, no dashboard", "difference of server CPU", "At most +2.00 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output without %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "sent 0.0 events") {
		t.Errorf("the dashboards were sent nothing:\n%s", &out)
	}
}

func TestRunRefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-time", "1ms"}, {"-callers", "0"}, {"-dashboards", "0"}, {"take"}, {"-mete", "/none"}} {
		var out strings.Builder
		if err := run(t.Context(), args, &out, io.Discard); err == nil || out.Len() > 0 {
			t.Errorf("run(%q) = %v and printed %q, want an error and nothing", args, err, &out)
		}
	}
}
