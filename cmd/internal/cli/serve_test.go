// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/cli"
	"github.com/metehq/mete/internal/proctest"
)

// A store that does not answer is no mistake in the settings.
func TestServe_StoreDoesNotAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out, errs strings.Builder
	code := cli.Main(ctx, []string{"serve", "--store", "redis://:secret@" + proctest.FreeAddr(t)}, cli.Streams{Out: &out, Err: &errs})
	if code != 3 || out.String() != "" || !strings.Contains(errs.String(), "mete starts where its store answers") || strings.Contains(errs.String(), "secret") {
		t.Errorf("code %d, stdout %q, stderr %q; want 3, the reason and no secret", code, out.String(), errs.String())
	}
}

func TestReplay_StoreDoesNotAnswer(t *testing.T) {
	var out, errs strings.Builder
	in := strings.NewReader(`{"at":0,"ip":"192.0.2.1"}` + "\n")
	code := cli.Main(t.Context(), []string{"replay", "--policy", "../../../examples/quickstart.yaml", "--store", "redis://" + proctest.FreeAddr(t), "-"},
		cli.Streams{In: in, Out: &out, Err: &errs})
	if code != 3 || out.String() != "" || !strings.Contains(errs.String(), "mete replay: --store: ") {
		t.Errorf("code %d, stdout %q, stderr %q; want 3 and the reason", code, out.String(), errs.String())
	}
}
