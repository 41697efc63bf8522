// SPDX-License-Identifier: Apache-2.0

// The recipes of examples/README.md. They run in virtual time, so that their output is always the same. Without
// Config.Now they run in real time.
package recipes_test

import (
	"log"
	"time"

	"github.com/metehq/mete/bucket"
)

// A clock is a virtual time that recipes move.
type clock struct{ now bucket.Instant }

func newClock() *clock { return &clock{bucket.At(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))} }

func (c *clock) Now() bucket.Instant { return c.now }

func (c *clock) Pass(d time.Duration) { c.now = c.now.Add(d) }

// check and must handle errors that cannot happen here.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// limit compiles a constant spec.
func limit(spec bucket.Spec) bucket.Limit {
	compiled, _, err := spec.Compile()
	return must(compiled, err)
}

// rate parses a constant rate.
func rate(s string) bucket.Rate { return must(bucket.ParseRate(s)) }
