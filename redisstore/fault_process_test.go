// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

func TestFault_Killed(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"and forgets":   nil,
		"and remembers": {"--appendonly", "yes", "--appendfsync", "always"},
	} {
		t.Run(name, func(t *testing.T) {
			faulttest.Alone(t)
			r := proctest.StartRedis(t, args...)
			s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
			tr := startTraffic(t, s, client, plainAndOthers())
			tr.GoesOn(150)
			r.Kill()
			tr.Ends(6)
			r.Restart()
			tr.GoesOn(150)
			tr.Stop()
			tr.Harmed()
			tr.Prompt()
			if args == nil {
				tr.Bounded(1)
				return
			}
			tr.Bounded(0)
			tr.Conserved()
		})
	}
}

func TestFault_Paused(t *testing.T) {
	faulttest.Alone(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
	tr := startTraffic(t, s, client, plainAndOthers())
	tr.GoesOn(100)
	r.Pause()
	tr.Ends(30)
	r.Resume()
	tr.GoesOn(150)
	tr.Stop()
	tr.Harmed()
	tr.Prompt()
	tr.Bounded(0)
	tr.Conserved()
}

func TestFault_ScriptsFlushed(t *testing.T) {
	faulttest.Alone(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
	tr := startTraffic(t, s, client, faulttest.Patiently(plainAndOthers()))
	for range 20 {
		tr.GoesOn(5)
		if _, err := r.Do("SCRIPT", "FLUSH", "SYNC"); err != nil {
			t.Fatal(err)
		}
	}
	tr.GoesOn(5)
	tr.Stop()
	tr.Unharmed()
	tr.Bounded(0)
	tr.Conserved()
}
