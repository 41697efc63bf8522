// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"context"
	"fmt"
	"io"
)

// Run measures cells. Rounds are the outer loop of a cell, and each starts with another entrant, so that
// drift of the machine affects all entrants alike. Before each turn, prepare empties the server. An entrant
// that fails has no figures in the cell. The error comes from prepare or ctx.
func (c Config) Run(ctx context.Context, cells []Cell, prepare func(context.Context) error, progress io.Writer) ([]Result, error) {
	var results []Result
	for _, at := range cells {
		task := Task{Scenario: at.Scenario, Callers: at.Callers, Time: c.Time, known: at.Scenario.eachKey(), random: at.Scenario.randomKeys()}
		samples, failed := make([][]Sample, len(at.Entrants)), make([]error, len(at.Entrants))
		for round := range c.Rounds {
			fmt.Fprintf(progress, "%v: round %d of %d\n", at, round+1, c.Rounds)
			for turn := range at.Entrants {
				i := (turn + round) % len(at.Entrants)
				if failed[i] != nil {
					continue
				}
				if err := prepare(ctx); err != nil {
					return nil, err
				}
				got, err := at.Entrants[i].Turn(ctx, task)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err != nil {
					fmt.Fprintf(progress, "%v/%s: %v\n", at, at.Entrants[i].Name, err)
				}
				samples[i], failed[i] = append(samples[i], got), err
			}
		}
		for i, entrant := range at.Entrants {
			results = append(results, summarize(at, entrant.Name, samples[i], failed[i]))
		}
	}
	return results, nil
}
