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

// runAgainVar holds the argument of a process that [RunAgain] or [AgainCommand] started.
const runAgainVar = "METE_TEST_AGAIN"

// againOutput starts the line with the result of such a process.
const againOutput = "METE_TEST_RESULT "

var againResult = regexp.MustCompile(`(?m)^` + againOutput + `(.*)$`)

// AgainCommand returns a command that runs the calling top-level test in a new process. [AgainArgument] returns the argument there.
func AgainCommand(t *testing.T, argument string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), runAgainVar+"="+argument)
	return cmd
}

// AgainArgument returns the argument of [AgainCommand], or false in the first process.
func AgainArgument() (string, bool) { return os.LookupEnv(runAgainVar) }

// RunAgain runs the calling top-level test in n more processes simultaneously. Each calls f with the result of prepare,
// which runs in the first process only. RunAgain returns the results of f. In the new processes, it ends the
// test and returns nil.
func RunAgain(t *testing.T, n int, prepare func() string, f func(argument string) string) []string {
	t.Helper()
	if given, ok := AgainArgument(); ok {
		fmt.Printf("\n%s%s\n", againOutput, f(given))
		return nil
	}
	argument := prepare()
	results := make([]string, n)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			out, err := AgainCommand(t, argument).CombinedOutput()
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
