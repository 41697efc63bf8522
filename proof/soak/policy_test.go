// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// Limits of the policy that the books repeat: tokens per second, and capacity.
var (
	steadyLimit = limit{rate: 10, capacity: 20}
	honestLimit = limit{rate: 5, capacity: 5}
	leasedLimit = limit{rate: 20, capacity: 100}
	localLimit  = limit{rate: 10, capacity: 20}
	windowLimit = limit{perWindow: 20, window: 2_000_000}
	planLimits  = [2]limit{{rate: 5, capacity: 10}, {rate: 8, capacity: 16}} // lowered and raised
)

// policyText is the policy of a version. Only the plan's limit changes, and what
// names the version.
const policyText = `# SPDX-License-Identifier: Apache-2.0
rules:
  - {name: steady, limit_keys: ["header:x-steady"], algorithm: token_bucket, algorithm_config: {rps: 10, burst: 20}, on_store_error: closed, deadline: 5s}
  - {name: honest, limit_keys: ["header:x-honest"], algorithm: token_bucket, algorithm_config: {rps: 5, burst: 5}, on_store_error: closed, deadline: 5s}
  - {name: leased, limit_keys: ["header:x-leased"], algorithm: token_bucket, algorithm_config: {rps: 20, burst: 100, leased: true}, on_store_error: closed, deadline: 5s}
  - {name: window, limit_keys: ["header:x-window"], algorithm: fixed_window, algorithm_config: {tokens: 20, window: 2s}, on_store_error: closed, deadline: 5s}
  - {name: tenant, limit_keys: ["header:x-tenant"], algorithm: token_bucket, algorithm_config: {rate: 1/1d, burst: 100000}, on_store_error: closed, deadline: 5s}
  - {name: member, limit_keys: ["header:x-member"], algorithm: token_bucket, algorithm_config: {rps: 3, burst: 3}, on_store_error: closed, deadline: 5s}
  - {name: open, limit_keys: ["header:x-open"], algorithm: token_bucket, algorithm_config: {rps: 1000, burst: 1000}, on_store_error: open, deadline: 5s}
  - {name: local, limit_keys: ["header:x-local"], algorithm: token_bucket, algorithm_config: {rps: 10, burst: 20}, on_store_error: local, deadline: 5s}
  - {name: plan, limit_keys: ["header:x-plan"], algorithm: token_bucket, algorithm_config: {rps: %v, burst: %v}, on_store_error: closed, deadline: 5s}
  - {name: version-%d, limit_keys: ["header:x-version"], algorithm: token_bucket, algorithm_config: {rps: 1000, burst: 1000}, on_store_error: open, deadline: 5s}
`

// A policyFile is the policy of both servers.
type policyFile struct {
	path            string
	written, broken int
	version         int // of the last one that was right

	mu     sync.Mutex
	raised []span // from writing a raised limit to its activation
}

func newPolicyFile(t *testing.T) *policyFile {
	p := &policyFile{path: filepath.Join(policyDir(t), "policy.yaml")}
	if err := p.write(p.text(0)); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *policyFile) text(version int) string {
	plan := planLimits[version%2]
	return fmt.Sprintf(policyText, plan.rate, plan.capacity, version)
}

// write puts a file in place in one step.
func (p *policyFile) write(text string) error {
	next := p.path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, p.path)
}

// raises are the spans in which the plan's limit was raised. One that is not over
// ends with time.
func (p *policyFile) raises() []span {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]span(nil), p.raised...)
}

// changePolicies writes a new policy at intervals; every third one is broken.
func (w *world) changePolicies(ctx context.Context) {
	every(ctx, w.schedule.change, func() {
		w.policy.written++
		if w.policy.written%3 == 2 {
			w.writeBroken(ctx)
			return
		}
		w.writeNext(ctx)
	})
}

// writeNext writes the next version, and waits until both servers go by it.
func (w *world) writeNext(ctx context.Context) {
	p := w.policy
	p.version++
	raise := planLimits[p.version%2].capacity > planLimits[(p.version+1)%2].capacity
	p.mu.Lock()
	if raise {
		p.raised = append(p.raised, span{now(), forever})
	}
	p.mu.Unlock()
	if err := p.write(p.text(p.version)); err != nil {
		w.wrongs.add("write the policy: %v", err)
		return
	}
	for _, s := range w.servers() {
		if !w.eventually(ctx, func() bool { return w.versionOf(s) == p.version }) {
			w.wrongs.add("%s is not at version %d of the policy after %v, but at %d", s.name, p.version, meted.Patience, w.versionOf(s))
		}
	}
	if raise && ctx.Err() == nil {
		p.mu.Lock()
		p.raised[len(p.raised)-1].end = now()
		p.mu.Unlock()
	}
}

// writeBroken writes an invalid policy and checks that it changes nothing.
func (w *world) writeBroken(ctx context.Context) {
	p := w.policy
	p.broken++
	broken := strings.Replace(p.text(p.version+1), "burst: 20", "burst: -20", 1)
	if err := p.write(broken); err != nil {
		w.wrongs.add("write the policy: %v", err)
		return
	}
	for _, s := range w.servers() {
		said := func() int { return strings.Count(s.Log(), "policy invalid, old policy stays active") }
		if !w.eventually(ctx, func() bool { return said() >= p.broken }) {
			w.wrongs.add("%s has not complained of %d broken policies, but of %d", s.name, p.broken, said())
		}
		if got := w.versionOf(s); got != p.version && ctx.Err() == nil {
			w.wrongs.add("%s goes by version %d after a broken policy, want %d", s.name, got, p.version)
		}
	}
}

// versionOf returns the version of a server's active policy, or -1 if unknown.
func (w *world) versionOf(s *server) int {
	_, d := w.take(s, map[string]string{"header:x-version": "soak"})
	version := -1
	if len(d.Limits) == 1 {
		fmt.Sscanf(d.Limits[0].Rule, "version-%d", &version)
	} else if d.Degraded { // an open rule has no limits to show then
		version = w.policy.version
	}
	return version
}
