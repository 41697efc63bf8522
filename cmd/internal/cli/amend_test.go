// SPDX-License-Identifier: Apache-2.0

package cli_test

import "testing"

// A misspelled request must not look like a successful reset.
func TestAmend_SaysWhereNothingWasDone(t *testing.T) {
	url := adminServer(t)
	for _, verb := range []string{"reset", "refund"} {
		wantRun(t, 0, `allowed\n.*`, "", "take", "--server", url, "header:x-api-key="+verb)
		wantRun(t, 2, "", `mete `+verb+`: the attributes of a request are required: NAME=VALUE.*`, verb, "--server", url)
		wantRun(t, 1, "", `mete `+verb+`: no limit applies to the request, so nothing was done; 'mete explain' shows why\n`,
			verb, "--server", url, "header:x-api-kye="+verb)
		wantRun(t, 1, `denied by free: .*`, "", "peek", "--server", url, "header:x-api-key="+verb)
		wantRun(t, 0, `done\n`, "", verb, "--server", url, "header:x-api-key="+verb)
		wantRun(t, 0, `allowed\n.*`, "", "peek", "--server", url, "header:x-api-key="+verb)
	}
	// Blocked or not, the bucket is there to be filled.
	wantRun(t, 0, `allowed\n.*`, "", "take", "--server", url, "header:x-api-key=k9")
	wantRun(t, 0, `.*block .*`, "", "override", "set", "--server", url, "--action", "block", "--match", "header:x-api-key=k9",
		"--reason", "r", "--author", "a", "--expires", "1h")
	wantRun(t, 0, `done\n`, "", "reset", "--server", url, "header:x-api-key=k9")
}
