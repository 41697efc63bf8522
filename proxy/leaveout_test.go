// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/proxy"
)

// A health check that is answered ends the time for which a server is left out.
func TestWatch_EndsLeavingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("b:80", named("b"))()
		// So many checks must fail that it is never taken for down by them.
		p := n.gate(proxy.Config{}, proxy.Health{Path: "/", Interval: time.Second, Down: 1000}, "a:80", "b:80")
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Watch(ctx)
		load := func(d time.Duration) (byA int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if ask(p, getRequest()).Body.String() == "a" {
					byA++
				}
			}
			return byA
		}
		load(20 * time.Second) // it is left out until the 31st second
		defer n.serve("a:80", named("a"))()
		load(2 * time.Second)
		if load(2*time.Second) == 0 {
			t.Error("two seconds after it came up, and was checked, nothing goes to the server")
		}
	})
}
