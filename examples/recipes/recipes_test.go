// SPDX-License-Identifier: Apache-2.0

// The recipes of examples/README.md. They run in a time of their own, so that
// their output is always the same: leave Config.Now away and they run in yours.
package recipes_test

import (
	"log"
	"time"

	"github.com/metehq/mete/bucket"
)

// A clock moves when it is told to.
type clock struct{ now bucket.Instant }

func newClock() *clock { return &clock{bucket.At(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))} }

func (c *clock) Now() bucket.Instant { return c.now }

func (c *clock) Pass(d time.Duration) { c.now = c.now.Add(d) }

// check and must are for what cannot fail here.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// limit compiles a spec whose numbers stand in the program.
func limit(spec bucket.Spec) bucket.Limit {
	compiled, _, err := spec.Compile()
	return must(compiled, err)
}

// rate reads a rate that stands in the program.
func rate(s string) bucket.Rate { return must(bucket.ParseRate(s)) }
