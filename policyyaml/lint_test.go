// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

// Nothing in what people copy is probably not meant, on whatever day they read it.
func TestExamples_HaveNoWarnings(t *testing.T) {
	policies := 0
	clocks := []time.Time{written, time.Date(2031, time.March, 1, 0, 0, 0, 0, time.UTC), time.Date(2099, time.June, 1, 0, 0, 0, 0, time.UTC)}
	for _, pattern := range []string{"../examples/*.yaml", "../examples/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, now := range clocks {
				m, err := loadFile(file, policy.Options{Now: now})
				if err != nil {
					continue // it is of another program
				}
				policies++
				for _, w := range lint.Check(m, now) {
					if !lint.KindOf(w).Note {
						t.Errorf("%s on %s: %s: %v", file, now.Format(time.DateOnly), w.Code, w)
					}
				}
			}
		}
	}
	if policies < 20*len(clocks) {
		t.Errorf("%d policies: the test says little", policies)
	}
}
