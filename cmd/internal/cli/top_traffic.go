// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/metehq/mete/dashboard"
)

// maxTrafficBytes bounds what is read of an answer: there are at most as many rules as a
// policy may have.
const maxTrafficBytes = 8 << 20

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
func (t *traffic) add(answer *dashboard.Traffic, rule string) {
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

// askTraffic asks the server's dashboard what went on for so long. A server that has none
// answers otherwise, which is no error: there is nothing to show then.
func (r *reach) askTraffic(ctx context.Context, server string, window time.Duration) (*dashboard.Traffic, error) {
	base, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	to := base.JoinPath("dashboard/data/traffic")
	window = min(max(window.Round(time.Second), time.Second), dashboard.TrafficWindow)
	to.RawQuery = url.Values{"window": {window.String()}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("traffic: the server answers %d", resp.StatusCode)
	}
	var answer dashboard.Traffic
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxTrafficBytes)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("traffic: %w", err)
	}
	return &answer, nil
}
