// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/provider"
)

const (
	clients      = 64
	bufferTokens = 20
	eventTokens  = 8 // the most in one event
	ampleBudget  = 10_000_000
	completion   = 40 // reserved by requests without a maximum

	// overrun bounds the tokens that the streams of all clients may use above a budget: buffer_tokens and one event each.
	overrun = clients * (bufferTokens + eventTokens)
)

const budgetPolicy = `
rules:
  - name: team
    limit_keys: ["header:x-team"]
    on_missing: deny
    match: { "ai:model": "*" }
    group: team
    algorithm: cost_based
    budget: %d
    period: month
    timezone: UTC
    cost_source: ai:tokens
    default_max_completion: 40
    deadline: 10s
    streaming: { buffer_tokens: 20, on_limit_exceeded: graceful_close }` + each + `    deadline: 10s
    default_max_completion: 40
`

// An outcome is a question and the response to it, as the client saw it.
type outcome struct {
	question
	status   int
	received int    // tokens
	end      ending // of the response
	killed   bool   // the gateway died meanwhile
}

type ending string

const (
	complete ending = "complete"
	refused  ending = "refused"
	failed   ending = "failed at the provider"
	limited  ending = "cut by the limit"
	broken   ending = "broken"
	hungUp   ending = "hung up"
)

// randomQuestion returns a question of any format, to a provider that has any fault. Answers as JSON have at most the tokens that
// the question asks for. Half of the streams have more.
func randomQuestion(r *rand.Rand, id string) *question {
	q := &question{wire: wires[r.IntN(len(wires))], stream: r.IntN(4) > 0, asks: r.IntN(2) == 0, prompt: 1 + r.IntN(30), Plan: provider.Plan{ID: id}}
	for range 1 + r.IntN(30) {
		q.Events = append(q.Events, 1+r.IntN(eventTokens))
	}
	q.Pause = time.Duration(r.IntN(300)) * time.Microsecond
	switch r.IntN(8) {
	case 0:
		q.Status = []int{400, 404, 429, 500, 503, 529}[r.IntN(6)]
	case 1:
		q.Cut = 1 + r.IntN(len(q.Events))
	case 2:
		q.NoEnd = true
	case 3:
		q.Gzip = true
	}
	q.Events = append(q.Events, eventTokens) // a usage of one token is then too low
	q.Usage = []provider.Usage{provider.FinalUsage, provider.FinalUsage, provider.NoUsage, provider.GrowingUsage, provider.LowUsage}[r.IntN(5)]
	if q.asks = q.asks && q.stream && (q.name == "chat" || q.name == "completions"); !q.stream || r.IntN(2) == 0 {
		q.most = q.Tokens() + r.IntN(20)
	}
	q.Burst = r.IntN(4) == 0
	return q
}

// run asks a question. After the given number of bytes, the client hangs up.
func (g *gateway) run(q *question, leave int) (o outcome) {
	o = outcome{question: *q, end: broken}
	ctx, cancel := context.WithCancel(g.t.Context())
	defer cancel()
	res, err := transport.RoundTrip(g.request(ctx, q))
	if err != nil {
		return o
	}
	defer res.Body.Close()
	o.status = res.StatusCode
	from := io.Reader(res.Body)
	if leave > 0 {
		from = io.LimitReader(from, int64(leave))
	}
	body, err := io.ReadAll(from)
	o.received = q.tokensIn(string(body))
	switch {
	case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("X-RateLimit-Reason") != "":
		o.end = refused
	case res.StatusCode != http.StatusOK:
		o.end = failed
	case err != nil:
	case leave > 0 && len(body) == leave:
		o.end = hungUp
	case q.stream && strings.Contains(string(body), q.limit):
		o.end = limited
	default:
		o.end = complete
	}
	return o
}

// Without a compression of its own, the client counts every byte that arrives.
var transport = &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}

// used returns the tokens that an outcome has really used.
func (g *gateway) used(o *outcome) int {
	switch o.end {
	case refused, failed:
		return 0
	case complete:
		return o.prompt + g.sim.Record(o.ID).Sent
	}
	return o.prompt + o.received
}

// rounds returns the questions of each client.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("METE_TEST_QUESTIONS")); err == nil {
		return n
	}
	if long, err := time.ParseDuration(os.Getenv("METE_TEST_LONG")); err == nil && long > 0 {
		return 100
	}
	return 4
}

func seed(t *testing.T) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("METE_TEST_SEED"), 10, 64); err == nil {
		t.Logf("METE_TEST_SEED=%d", n)
		return n
	}
	return 1
}

func TestBudget(t *testing.T) {
	redis := proctest.StartRedis(t)
	for _, tt := range []struct {
		name, store string
		budget      int
	}{
		{"memory", "memory:", 1750 * rounds()},
		{"memory-ample", "memory:", ampleBudget},
		{"redis", "redis://" + redis.Addr + "?timeout=1m", 1750 * rounds()},
		{"redis-with-kills", "redis://" + redis.Addr + "?timeout=1m&prefix=kills:", 3500 * rounds()},
		{"postgres", proctest.PostgresURL(t) + "&timeout=1m&schema=" + proctest.PostgresSchema(t), 1750 * rounds()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			budget := tt.budget
			g := start(t, fmt.Sprintf(budgetPolicy, budget), fmt.Sprintf("store: %q", tt.store))
			outcomes := g.crowd(rounds(), strings.HasSuffix(tt.name, "kills"), seed(t))
			g.checkOutcomes(outcomes, budget)
		})
	}
}

// crowd lets all clients ask at the same time. With kills, the gateway is killed after each third of the questions.
func (g *gateway) crowd(rounds int, kills bool, seed uint64) []outcome {
	var (
		mu       sync.Mutex
		outcomes []outcome
		all      sync.WaitGroup
		finished = make(chan struct{}, clients*rounds)
		life     sync.RWMutex // the gateway's: clients start requests only while it lives
		deaths   atomic.Int64
	)
	for client := range clients {
		r := rand.New(rand.NewPCG(seed, uint64(client)))
		all.Go(func() {
			for round := range rounds {
				q := randomQuestion(r, fmt.Sprintf("%d-%d", client, round))
				leave := 0
				if r.IntN(4) == 0 {
					leave = 1 + r.IntN(3000)
				}
				life.RLock()
				before := deaths.Load()
				life.RUnlock()
				o := g.run(q, leave)
				o.killed = deaths.Load() != before
				mu.Lock()
				outcomes = append(outcomes, o)
				mu.Unlock()
				finished <- struct{}{}
			}
		})
	}
	if kills {
		for range 2 {
			for range clients * rounds / 3 {
				<-finished
			}
			life.Lock()
			deaths.Add(1)
			g.Process.Kill()
			g.Start()
			life.Unlock()
		}
	}
	all.Wait()
	transport.CloseIdleConnections() // the gateway would wait for unused ones
	return outcomes
}

// checkOutcomes compares charges with the sent tokens.
func (g *gateway) checkOutcomes(outcomes []outcome, budget int) {
	g.t.Helper()
	sum, used, unpaid, ends := 0, 0, 0, map[ending]int{}
	testkit.Eventually(g.t, "correct charges", func() error {
		for len(outcomes) > 0 {
			o := &outcomes[0]
			charged, err := g.charged(o.ID)
			if err != nil {
				return err
			}
			if least, most := g.bounds(o, budget); charged < least || charged > most {
				return fmt.Errorf("%s, which was %s: %d, want %d to %d: %+v, record %+v", o.ID, o.end, charged, least, most, *o, g.sim.Record(o.ID))
			}
			sum += charged
			used += g.used(o)
			if o.killed { // between the settlements of two rules
				unpaid += bufferTokens + eventTokens
			}
			ends[o.end]++
			outcomes = outcomes[1:]
		}
		return nil
	})
	g.t.Logf("%d of %d tokens used, %d charged; %v", used, budget, sum, ends)
	if used > budget+overrun {
		g.t.Errorf("%d tokens are used, above the budget of %d and the overrun of %d", used, budget, overrun)
	}
	if sum > budget+overrun {
		g.t.Errorf("%d tokens are charged, above the budget of %d and the overrun of %d", sum, budget, overrun)
	}
	for _, end := range []ending{complete, failed, broken, hungUp} {
		if ends[end] == 0 {
			g.t.Errorf("no request was %s", end)
		}
	}
	if exhausted := ends[refused] > 0; exhausted != (budget < ampleBudget) {
		g.t.Errorf("the budget of %d is exhausted: %v", budget, exhausted)
	}
	var left float64
	testkit.Eventually(g.t, "the rest of the budget", func() (err error) {
		left, err = g.left("team", map[string]string{"header:x-team": "red", "header:x-case": "none"})
		return err
	})
	switch spent := budget - int(left); {
	case spent < sum-unpaid && left > 0:
		g.t.Errorf("the budget of %d has %v left, and the requests were charged %d", budget, left, sum)
	case spent != sum && budget == ampleBudget: // a limit in debt does not return reservations
		g.t.Errorf("%d tokens of the budget are spent, and the requests were charged %d", spent, sum)
	}
}

// bounds returns the least and the highest correct charge.
func (g *gateway) bounds(o *outcome, budget int) (least, most int) {
	record := g.sim.Record(o.ID)
	reserved := o.prompt + o.most
	if o.most == 0 {
		reserved = o.prompt + completion
	}
	sent := o.prompt + record.Sent + o.Reasoning
	switch {
	case o.end == failed && !o.killed && o.Status == 0: // the gateway answers for a provider that has the request
		return reserved, reserved
	case o.end == refused, o.end == failed && !o.killed:
		return 0, 0
	case o.end == failed, o.killed && record.Sent == 0:
		return 0, reserved
	case o.killed: // the reservation stays, and at most the tokens since the last charge of a stream are unpaid
		received := o.prompt + o.received
		return min(received, max(reserved, received-bufferTokens-eventTokens)), max(reserved, sent)
	case o.end == complete:
		return sent, sent
	case o.end == limited:
		return o.prompt + o.received, o.prompt + o.received
	case o.end == hungUp && o.Cut == 0 && budget == ampleBudget: // the gateway has read the rest of the response
		return sent, sent
	case o.status == 0: // gone before the response
		return o.prompt, max(reserved, sent)
	}
	return o.prompt + o.received, max(reserved, sent)
}
