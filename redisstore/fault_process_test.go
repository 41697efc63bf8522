// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// pass lets the time pass that a fault lasts, while takes go on.
func pass(d time.Duration) { <-time.After(d) }

func TestFault_Killed(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"and forgets":   nil,
		"and remembers": {"--appendonly", "yes", "--appendfsync", "always"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t)
			r := proctest.StartRedis(t, args...)
			s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
			tr := startTraffic(t, s, client, plainAndOthers())
			tr.goesOn(150)
			r.Kill()
			pass(300 * time.Millisecond)
			r.Restart()
			tr.goesOn(150)
			tr.stop()
			tr.harmed()
			tr.prompt()
			if args == nil {
				tr.bounded(1)
				return
			}
			tr.bounded(0)
			tr.conserved()
		})
	}
}

func TestFault_Paused(t *testing.T) {
	alone(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
	tr := startTraffic(t, s, client, plainAndOthers())
	tr.goesOn(100)
	r.Pause()
	pass(2 * time.Second)
	r.Resume()
	tr.goesOn(150)
	tr.stop()
	tr.harmed()
	tr.prompt()
	tr.bounded(0)
	tr.conserved()
}

func TestFault_ScriptsFlushed(t *testing.T) {
	alone(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
	tr := startTraffic(t, s, client, patiently(plainAndOthers()))
	for range 20 {
		tr.goesOn(5)
		if _, err := r.Do("SCRIPT", "FLUSH", "SYNC"); err != nil {
			t.Fatal(err)
		}
	}
	tr.goesOn(5)
	tr.stop()
	tr.unharmed()
	tr.bounded(0)
	tr.conserved()
}
