// SPDX-License-Identifier: Apache-2.0

// Package testseed seeds random tests. Without METE_TEST_SEED each test draws the same numbers every time, so a
// failure points to the change. With METE_TEST_SEED=N, as in make test-long, all tests draw different numbers,
// which the same N reproduces.
package testseed

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
)

// Var is the environment variable with the seed of a run, a decimal number.
const Var = "METE_TEST_SEED"

// run reads the variable during a test, so that the go command reruns tests when it changes.
var run = sync.OnceValue(func() uint64 { return parse(os.Getenv(Var)) })

// PCG returns a source with the two seeds of a test and the seed of the run.
func PCG(seed1, seed2 uint64) *rand.PCG { return rand.NewPCG(seed1, seed2^run()) }

func parse(text string) uint64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("testseed: %s=%q: want a decimal number below 2^64", Var, text))
	}
	return n
}
