// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/cli"
)

// Durations in a JSON log have a unit, as in text.
func TestServe_JSONLogHasUnits(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	stop() // it ends as soon as it serves
	var log strings.Builder
	code := cli.Main(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json"},
		cli.Streams{Out: io.Discard, Err: &log})
	for line := range strings.Lines(log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("%q is not JSON: %v", line, err)
		}
		if drain, ok := entry["drain"]; ok {
			if drain != "10s" || code != 0 {
				t.Errorf("code %d, drain %v; want 0, 10s", code, drain)
			}
			return
		}
	}
	t.Errorf("code %d, no line with drain in\n%s", code, log.String())
}
