// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"strings"
	"testing"
	"time"
)

var penaltyRule = strings.Replace(localRule, `"name"`, `"penalty": "1m", "name"`, 1)

// Local buckets neither start penalties nor know them, and the store keeps its penalty during an outage.
func TestPenalty_Outage(t *testing.T) {
	c := start(t, 1, penaltyRule)
	n := c.nodes[0]
	c.cut(down)
	if got := n.drain(); got != 10 {
		t.Errorf("%d tokens during an outage, want 10", got)
	}
	if d := n.take(1); d.Allowed || !d.Degraded || d.RetryAfter != time.Second {
		t.Errorf("allowed %v, wait %v; want denied for a second", d.Allowed, d.RetryAfter)
	}
	c.advance(1)
	if d := n.take(1); !d.Allowed {
		t.Error("a local bucket started a penalty")
	}
	c.cut(up)
	if d := n.take(1); d.Allowed || d.Degraded || d.RetryAfter != time.Minute {
		t.Errorf("allowed %v, degraded %v, wait %v; want the store's penalty of a minute", d.Allowed, d.Degraded, d.RetryAfter)
	}
	c.cut(down)
	c.advance(10)
	if d := n.take(1); !d.Allowed || !d.Degraded {
		t.Error("a local bucket obeyed the penalty of the store")
	}
	c.cut(up)
	if d := n.take(1); d.Allowed || d.RetryAfter != 50*time.Second {
		t.Errorf("allowed %v, wait %v; want the rest of the penalty", d.Allowed, d.RetryAfter)
	}
}

// Denials from memory agree with the store: the first one after a penalty reaches it and starts the next.
func TestPenalty_DenialMemory(t *testing.T) {
	c := startDenying(t, 1, strings.Replace(penaltyRule, `"1m"`, `{"first": "2s", "factor": 2, "most": "1h"}`, 1), time.Second)
	n := c.nodes[0]
	n.drain()
	asked := n.line.takes.Load()
	for range 19 {
		c.advance(0.1)
		if n.take(1).Allowed {
			t.Fatal("admitted during a penalty")
		}
	}
	if got := n.line.takes.Load() - asked; got > 3 {
		t.Errorf("%d denials reached the store, want at most one per second", got)
	}
	c.advance(0.1)
	if got := n.drain(); got != 2 {
		t.Errorf("%d tokens after the penalty, want 2", got)
	}
	if d := n.take(1); d.RetryAfter != 4*time.Second {
		t.Errorf("wait %v, want the second penalty of 4 s", d.RetryAfter)
	}
}
