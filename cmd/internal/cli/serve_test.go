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

// absent are URLs of stores that do not answer.
func absent(t *testing.T) []string {
	return []string{"redis://:secret@" + proctest.FreeAddr(t), "postgres://u:secret@" + proctest.FreeAddr(t) + "/d?sslmode=disable"}
}

// A check that a variable names, which is empty, is not off.
func TestServe_EmptyChecks(t *testing.T) {
	for _, name := range []string{"--policy-key", "--jwks"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a server that starts
		defer cancel()
		var out, errs strings.Builder
		code := cli.Main(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", name, ""}, cli.Streams{Out: &out, Err: &errs})
		if code != 2 || out.String() != "" || !strings.Contains(errs.String(), "must not be empty") {
			t.Errorf("%s '': code %d, stdout %q, stderr %q; want 2 and the reason", name, code, out.String(), errs.String())
		}
	}
}

// A store that does not answer is no mistake in the settings.
func TestServe_StoreDoesNotAnswer(t *testing.T) {
	for _, store := range absent(t) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		var out, errs strings.Builder
		code := cli.Main(ctx, []string{"serve", "--store", store}, cli.Streams{Out: &out, Err: &errs})
		if code != 3 || out.String() != "" || !strings.Contains(errs.String(), "at the start, the store and the database of the policy must answer") || strings.Contains(errs.String(), "secret") {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want 3, the reason and no secret", store, code, out.String(), errs.String())
		}
	}
}

func TestReplay_StoreDoesNotAnswer(t *testing.T) {
	for _, store := range absent(t) {
		var out, errs strings.Builder
		in := strings.NewReader(`{"at":0,"ip":"192.0.2.1"}` + "\n")
		code := cli.Main(t.Context(), []string{"replay", "--policy", "../../../examples/quickstart.yaml", "--store", store, "-"},
			cli.Streams{In: in, Out: &out, Err: &errs})
		if code != 3 || out.String() != "" || !strings.Contains(errs.String(), "mete replay: --store: ") || strings.Contains(errs.String(), "secret") {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want 3, the reason and no secret", store, code, out.String(), errs.String())
		}
	}
}
