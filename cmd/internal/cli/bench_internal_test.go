// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"testing"

	"github.com/metehq/mete/cmd/internal/loadtest"
)

func TestBenchUnreachable(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	failed := loadtest.Report{Errors: []loadtest.ErrorCount{{}}}
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		report loadtest.Report
		want   bool
	}{
		{"decisions", t.Context(), loadtest.Report{Decisions: 1}, false},
		{"no decision", t.Context(), loadtest.Report{}, true},
		{"interrupted before the first decision", interrupted, loadtest.Report{}, false},
		{"interrupted after failures", interrupted, failed, true},
	} {
		if got := benchUnreachable(tt.ctx, tt.report); got != tt.want {
			t.Errorf("%s: unreachable %v, want %v", tt.name, got, tt.want)
		}
	}
}
