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

// runAgainVar holds the argument of a process that [RunAgain] started.
const runAgainVar = "METE_TEST_AGAIN"

// againOutput starts the line with the result of such a process.
const againOutput = "METE_TEST_RESULT "

var againResult = regexp.MustCompile(`(?m)^` + againOutput + `(.*)$`)

// RunAgain runs the calling top-level test in n more processes simultaneously. Each calls f with the result of prepare,
// which runs in the first process only. RunAgain returns the results of f. In the new processes, it ends the
// test and returns nil.
func RunAgain(t *testing.T, n int, prepare func() string, f func(argument string) string) []string {
	t.Helper()
	if given, ok := os.LookupEnv(runAgainVar); ok {
		fmt.Printf("\n%s%s\n", againOutput, f(given))
		return nil
	}
	argument := prepare()
	results := make([]string, n)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
			cmd.Env = append(os.Environ(), runAgainVar+"="+argument)
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
