// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proof/provider"
)

// streamPolicy limits each case to 100 tokens, and charges each 20 of a stream.
const streamPolicy = `
rules:
  - name: stream
    limit_keys: ["header:x-case"]
    match: { "ai:model": "*" }
    group: stream
    algorithm: cost_based
    budget: 100
    period: month
    timezone: UTC
    cost_source: ai:tokens
    default_max_completion: 20
    streaming: { buffer_tokens: 20, on_limit_exceeded: %s }` + each

// A stream of 400 tokens reserves 30 of 100. A client gets at most buffer_tokens and one event above the limit. This is also
// true if the provider sends all events in one packet.
func TestStreamsAboveTheirLimit(t *testing.T) {
	const prompt, budget, buffer, event, events = 10, 100, 20, 5, 80
	for _, action := range []string{"graceful_close", "error_chunk", "continue"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			g := start(t, fmt.Sprintf(streamPolicy, action))
			for _, w := range wires {
				for _, pause := range []time.Duration{0, 50 * time.Microsecond} {
					q := &question{wire: w, stream: true, prompt: prompt, Plan: provider.Plan{ID: fmt.Sprint(w.name, pause), Pause: pause, Burst: pause == 0}}
					q.Events, q.model = slices.Repeat([]int{event}, events), q.ID
					_, body := g.ask(q)
					got, end := q.tokensIn(body), map[string]string{"graceful_close": w.limit, "error_chunk": w.fault}[action]
					switch {
					case action == "continue":
						if got != event*events || strings.Contains(body, w.limit) {
							t.Errorf("%s: %d tokens arrived: %s", q.ID, got, body)
						}
					case got+prompt <= budget-buffer || got+prompt > budget+buffer+event || !strings.Contains(body, end):
						t.Errorf("%s: %d tokens arrived, and the end is %q", q.ID, got, body[max(0, len(body)-400):])
					}
					g.wantCharge(q.ID, prompt+got)
				}
			}
		})
	}
}
