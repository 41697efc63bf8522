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
			faulttest.RunParallel(t)
			r := proctest.StartRedis(t, args...)
			s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
			tr := startTraffic(t, s, client, plainAndOthers())
			tr.WaitAnswers(150)
			r.Kill()
			tr.WaitCalls(6)
			r.Restart()
			tr.WaitAnswers(150)
			tr.Stop()
			tr.CheckFailures()
			tr.CheckPrompt()
			if args == nil {
				tr.CheckBound(1)
				return
			}
			tr.CheckBound(0)
			tr.CheckConserved()
		})
	}
}

func TestFault_Paused(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{})
	tr := startTraffic(t, s, client, plainAndOthers())
	tr.WaitAnswers(100)
	r.Pause()
	tr.WaitCalls(30)
	r.Resume()
	tr.WaitAnswers(150)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

func TestFault_ScriptsFlushed(t *testing.T) {
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
	tr := startTraffic(t, s, client, faulttest.WaitForever(plainAndOthers()))
	for range 20 {
		tr.WaitAnswers(5)
		if _, err := r.Do("SCRIPT", "FLUSH", "SYNC"); err != nil {
			t.Fatal(err)
		}
	}
	tr.WaitAnswers(5)
	tr.Stop()
	tr.CheckNoFailures()
	tr.CheckBound(0)
	tr.CheckConserved()
}
