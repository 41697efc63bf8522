// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/provider"
)

// hangUp asks a question to a provider that holds its answer, and hangs up. A stream has begun by then.
func (g *gateway) hangUp(q *question) {
	g.t.Helper()
	q.Hold = true
	ctx, cancel := context.WithCancel(g.t.Context())
	defer cancel()
	if q.stream {
		res, err := transport.RoundTrip(g.request(ctx, q))
		if err != nil {
			g.t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := res.Body.Read(make([]byte, 1)); err != nil {
			g.t.Fatal(err)
		}
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if res, err := transport.RoundTrip(g.request(ctx, q)); err == nil {
			_, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}
	}()
	testkit.Eventually(g.t, "the request", func() error {
		if g.sim.Record(q.ID).Body == "" {
			return fmt.Errorf("it has not arrived")
		}
		return nil
	})
	cancel()
	<-done
}

// A client that hangs up pays for hidden reasoning that the provider reports at the end, in each format that reports it.
func TestHangUp(t *testing.T) {
	g := start(t, "rules:"+each)
	for _, w := range wires {
		for _, stream := range []bool{true, false} {
			q := &question{wire: w, stream: stream, prompt: 10, Plan: provider.Plan{ID: fmt.Sprint(w.name, stream), Events: []int{5, 5, 5}, Reasoning: 700}}
			g.hangUp(q)
			g.sim.Proceed(q.ID)
			g.wantCharge(q.ID, 10+15+700)
		}
	}
	transport.CloseIdleConnections() // the gateway would wait for unused ones
}

// A shutdown ends the rest of a response in time. The request keeps its reservation.
func TestHangUp_Shutdown(t *testing.T) {
	redis := proctest.StartRedis(t)
	g := start(t, "rules:"+strings.TrimSuffix(each, "\n")+"\n    default_max_completion: 40\n", fmt.Sprintf("store: %q", "redis://"+redis.Addr), "timeouts: { drain: 500ms }")
	q := &question{wire: wires[0], stream: true, prompt: 10, Plan: provider.Plan{ID: "held", Events: []int{5, 5, 5}, Reasoning: 700}}
	g.hangUp(q)
	transport.CloseIdleConnections()
	g.Process.Signal(syscall.SIGTERM)
	<-g.Process.Done()
	testkit.Eventually(t, "the end of the upstream's work", func() error {
		if !g.sim.Record(q.ID).Ended {
			return fmt.Errorf("it goes on")
		}
		return nil
	})
	g.Start()
	g.wantCharge(q.ID, 10+40)
}
