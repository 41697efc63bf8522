// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
)

// againVar has the argument of a process that [Again] has started.
const againVar = "METE_TEST_AGAIN"

// againOutput begins the line that such a process prints its result in.
const againOutput = "METE_TEST_RESULT "

var againResult = regexp.MustCompile(`(?m)^` + againOutput + `(.*)$`)

// Again runs the calling test, which is a top-level one, in n more processes at the same
// time. Each calls f with what prepare returned in the first process. Again returns what f
// returned in each, and nil in these processes themselves, where the test ends then.
func Again(t *testing.T, n int, prepare func() string, f func(argument string) string) []string {
	t.Helper()
	if given, ok := os.LookupEnv(againVar); ok {
		fmt.Printf("\n%s%s\n", againOutput, f(given))
		return nil
	}
	argument := prepare()
	results := make([]string, n)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
			cmd.Env = append(os.Environ(), againVar+"="+argument)
			out, err := cmd.CombinedOutput()
			found := againResult.FindSubmatch(out)
			if err != nil || found == nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
				return
			}
			results[i] = string(found[1])
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return results
}
