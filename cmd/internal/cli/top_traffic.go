// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/metehq/mete/api"
)

// maxHistory is how many rates are kept: as many as the widest terminal shows.
const maxHistory = 400

// What traffic counts, by the places in an answer.
const (
	trafficAllowed = iota
	trafficDenied
	trafficShadow
	trafficNear
	trafficDegraded
	trafficKinds
)

// A traffic is how much there was of each kind in each second, for as long as it has been
// asked. The zero traffic knows nothing.
type traffic struct {
	rates [trafficKinds][]float64
}

// add adds what there was lately. Of no rule means of all.
func (t *traffic) add(answer *api.Traffic, rule string) {
	var sums [trafficKinds]uint64
	for name, counts := range answer.Rules {
		if rule == "" || rule == name {
			for kind, n := range counts {
				sums[kind] += n
			}
		}
	}
	for kind, n := range sums {
		rates := append(t.rates[kind], float64(n)/max(answer.Window, 1))
		t.rates[kind] = slices.Delete(rates, 0, max(len(rates)-maxHistory, 0))
	}
}

// known reports whether there is anything to show.
func (t *traffic) known() bool { return len(t.rates[0]) > 0 }

// now is the last rate of a kind.
func (t *traffic) now(kind int) float64 {
	if !t.known() {
		return 0
	}
	return t.rates[kind][len(t.rates[kind])-1]
}
