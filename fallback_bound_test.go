// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// byPath is localRule with a bucket per path.
var byPath = strings.Replace(localRule, `"limit_keys": []`, `"limit_keys": ["path"]`, 1)

func (n *node) takeAt(path string, cost bucket.Tokens) mete.Decision {
	n.Helper()
	d, err := n.Take(n.Context(), mete.Request{Attributes: mete.Attrs{"path": path}, Cost: mete.TokensOf(cost)})
	if err != nil {
		n.Fatal(err)
	}
	return d
}

// A flood of keys does not evict a limited client from the memory.
func TestLastKnown_Flood(t *testing.T) {
	c := start(t, 1, byPath)
	n := c.nodes[0]
	n.takeAt("/limited", 10*bucket.Token)
	for i := range 3 * 65536 {
		n.takeAt("/"+strconv.Itoa(i), bucket.Token)
	}
	c.cut(down)
	if d := n.takeAt("/limited", bucket.Token); d.Allowed {
		t.Errorf("%+v, want denied: nothing was left", d)
	}
}

// Keys beyond the bound of the ledger are still limited, and their costs count as excess.
func TestLedger_Full(t *testing.T) {
	c := start(t, 1, byPath)
	n := c.nodes[0]
	c.cut(down)
	for i := range 65536 {
		n.takeAt("/"+strconv.Itoa(i), bucket.Token)
	}
	for range 10 {
		if d := n.takeAt("/beyond", bucket.Token); !d.Allowed {
			t.Errorf("beyond the bound: %+v", d)
		}
	}
	if d := n.takeAt("/beyond", bucket.Token); d.Allowed || d.Reason != "token_bucket_exceeded" {
		t.Errorf("an 11th of 10: %+v", d)
	}
	if s := n.Stats(); s.Excess != 10*bucket.Token || s.Unsettled != 65536 {
		t.Errorf("stats %+v, want 10 in excess, 65536 keys unsettled", s)
	}
	r, err := n.Reserve(t.Context(), mete.Request{Attributes: mete.Attrs{"path": "/other"}})
	if err != nil || !r.Allowed {
		t.Fatalf("%+v, error %v", r, err)
	}
	c.cut(up)
	if err := r.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
}

// A key without an account takes from its local log. When the ledger has room, the key gets an account, which
// keeps its costs after the older ones have left the window.
func TestLedger_RoomAgain(t *testing.T) {
	c := start(t, 1, `{"name": "all", "limit_keys": ["path"], "on_store_error": "local", "algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}}`)
	n := c.nodes[0]
	c.cut(down)
	for i := range 65536 {
		n.takeAt("/"+strconv.Itoa(i), bucket.Token)
	}
	c.advance(8)
	n.takeAt("/beyond", 30*bucket.Token)
	c.advance(0.4)
	c.cut(up)
	n.takeAt("/beyond", bucket.Token) // the local bucket of the account begins with its cost
	c.cut(down)
	c.advance(0.7)
	n.takeAt("/0", bucket.Token) // at 9.1 s, accounts without local costs make room
	if d := n.takeAt("/beyond", 29*bucket.Token); !d.Allowed {
		t.Errorf("29 of 29: %+v", d)
	}
	if s := n.Stats(); s.Excess != 30*bucket.Token || s.Unsettled == 65536 {
		t.Fatalf("stats %+v, want 30 in excess and room in the ledger", s)
	}
	c.advance(8) // at 17.1 s, the 30 have left the local log
	if d := n.takeAt("/beyond", 31*bucket.Token); d.Allowed {
		t.Errorf("31 more after 29 within 9 s: %+v, want denied", d)
	}
	if d := n.takeAt("/beyond", 30*bucket.Token); !d.Allowed {
		t.Errorf("30 of 30: %+v", d)
	}
	c.cut(up)
	if d := n.takeAt("/beyond", bucket.Token); d.Allowed {
		t.Errorf("60 within 9 s, and then: %+v, want denied", d)
	}
}

// Many goroutines take several keys in different orders while the store fails and recovers. No cost is lost and
// none blocks.
func TestLocal_Concurrent(t *testing.T) {
	rule := func(name, key string) string {
		return `{"name": "` + name + `", "group": "` + name + `", "limit_keys": ["` + key + `"], "on_store_error": "local", "algorithm_config": {"rps": 1000, "burst": 1000}}`
	}
	c := start(t, 2, rule("z", "path")+","+rule("a", "method")+","+rule("m", "host"))
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			n := c.nodes[g%2]
			for i := range 400 {
				switch (i + g*13) % 60 {
				case 0:
					n.line.cut(fault(1 + g%3))
				case 20:
					n.line.cut(up)
				}
				c.clock.Advance(50)
				attrs := mete.Attrs{"path": fmt.Sprint(i % 3), "method": fmt.Sprint(i % 2), "host": fmt.Sprint(g % 2)}
				if _, err := n.Take(t.Context(), mete.Request{Attributes: attrs}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	c.cut(up)
	for i, n := range c.nodes {
		if err := n.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := n.Stats()
		if s.SpentLocally == 0 || s.Unsettled != 0 || s.Excess != 0 || s.Charged+s.Refilled != s.SpentLocally {
			t.Errorf("node %d: stats %+v do not add up", i, s)
		}
	}
}
