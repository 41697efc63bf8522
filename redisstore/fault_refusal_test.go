// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// must sends a command that cannot be rejected.
func must(t *testing.T, r *proctest.Redis, args ...string) string {
	t.Helper()
	reply, err := r.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return reply
}

// A refusal is a server that answers with an error.
type refusal struct {
	name string
	args []string // of the server
	want string   // the error

	midway bool // the error may occur within the script

	begin, end func(t *testing.T, r *proctest.Redis)
}

var refusals = []refusal{{
	name: "out of memory", want: "OOM ",
	begin: func(t *testing.T, r *proctest.Redis) { must(t, r, "CONFIG", "SET", "maxmemory", "1mb") },
	end:   func(t *testing.T, r *proctest.Redis) { must(t, r, "CONFIG", "SET", "maxmemory", "0") },
}, {
	name: "read-only replica", want: "READONLY ",
	begin: func(t *testing.T, r *proctest.Redis) {
		must(t, r, "CONFIG", "SET", "replica-serve-stale-data", "yes")
		must(t, r, "REPLICAOF", "127.0.0.1", "1")
	},
	end: func(t *testing.T, r *proctest.Redis) { must(t, r, "REPLICAOF", "NO", "ONE") },
}, {
	name: "replica without its master", want: "MASTERDOWN ",
	begin: func(t *testing.T, r *proctest.Redis) {
		must(t, r, "CONFIG", "SET", "replica-serve-stale-data", "no")
		must(t, r, "REPLICAOF", "127.0.0.1", "1")
	},
	end: func(t *testing.T, r *proctest.Redis) { must(t, r, "REPLICAOF", "NO", "ONE") },
}, {
	name: "too few replicas", want: "NOREPLICAS ",
	begin: func(t *testing.T, r *proctest.Redis) { must(t, r, "CONFIG", "SET", "min-replicas-to-write", "1") },
	end:   func(t *testing.T, r *proctest.Redis) { must(t, r, "CONFIG", "SET", "min-replicas-to-write", "0") },
}, {
	name: "no permission", want: "can't run this command", midway: true,
	begin: func(t *testing.T, r *proctest.Redis) { must(t, r, "ACL", "SETUSER", "default", "-@write") },
	end:   func(t *testing.T, r *proctest.Redis) { must(t, r, "ACL", "SETUSER", "default", "+@write") },
}, {
	name: "no permission for keys", want: "NOPERM ",
	begin: func(t *testing.T, r *proctest.Redis) {
		must(t, r, "ACL", "SETUSER", "default", "resetkeys", "~tb:other:*")
	},
	end: func(t *testing.T, r *proctest.Redis) { must(t, r, "ACL", "SETUSER", "default", "allkeys") },
}, {
	name: "disk full", want: "MISCONF ", args: []string{"--enable-protected-configs", "yes"},
	begin: func(t *testing.T, r *proctest.Redis) {
		dir := t.TempDir()
		must(t, r, "CONFIG", "SET", "dir", dir)
		if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		must(t, r, "CONFIG", "SET", "save", "3600 1000000")
		must(t, r, "BGSAVE")
		faulttest.Eventually(t, "a save has failed", func() error {
			if info := must(t, r, "INFO", "persistence"); !strings.Contains(info, "rdb_last_bgsave_status:err") {
				return errors.New(info)
			}
			return nil
		})
	},
	end: func(t *testing.T, r *proctest.Redis) { must(t, r, "CONFIG", "SET", "save", "") },
}, {
	name: "busy", want: "BUSY ", args: []string{"--lua-time-limit", "50"},
	begin: func(t *testing.T, r *proctest.Redis) {
		go func() { _, _ = r.Do("EVAL", "while true do end", "0") }() // killed below
		faulttest.Eventually(t, "the server is busy", func() error {
			if _, err := r.Do("PING"); err == nil || !strings.HasPrefix(err.Error(), "BUSY ") {
				return errors.New("not yet")
			}
			return nil
		})
	},
	end: func(t *testing.T, r *proctest.Redis) { must(t, r, "SCRIPT", "KILL") },
}}

// TestFault_Refused proves that rejected calls spend nothing, unless the server rejects within the script. The
// error is a failure and not a denial, and ends with its cause.
func TestFault_Refused(t *testing.T) {
	t.Parallel()
	for _, fault := range refusals {
		t.Run(fault.name, func(t *testing.T) {
			faulttest.RunParallel(t)
			r := proctest.StartRedis(t, fault.args...)
			s, client := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
			tr := startTraffic(t, s, client, faulttest.WaitForever([]*faulttest.Taker{{Charges: chargesOf("k")}, {Charges: chargesOf("id", "k"), IDs: true}}))
			tr.WaitAnswers(20)
			fault.begin(t, r)
			charges, spent := slowCharges("l", "m"), mete.NotSpent
			if fault.midway {
				spent = mete.MaybeSpent
			}
			for _, mode := range []mete.Mode{{}, {ID: "x"}, {Within: faulttest.Within}, {UpTo: true}} {
				_, allowed, err := s.Take(t.Context(), nil, charges, mode)
				if mode.Within > 0 && errors.Is(err, context.DeadlineExceeded) {
					continue // a slow machine: the caller's deadline came first
				}
				if allowed || err == nil || mete.Spent(err) != spent || !strings.Contains(err.Error(), fault.want) {
					t.Errorf("take in mode %+v: %v, %v; want %q and spending %v", mode, allowed, err, fault.want, spent)
				}
			}
			tr.WaitCalls(2)
			fault.end(t, r)
			tr.WaitAnswers(20)
			if found := must(t, r, "EXISTS", "tb:l", "tb:m"); found != "0" {
				t.Errorf("%s buckets have been charged by takes that were refused", found)
			}
			if _, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{ID: "x"}); err != nil || !allowed {
				t.Errorf("take afterwards: %v, %v", allowed, err)
			}
			tr.Stop()
			if _, maybe, example := tr.Failures(); maybe > 0 && !fault.midway {
				t.Errorf("%d takes may have been, such as %v; want none", maybe, example)
			}
			tr.CheckBound(0)
			tr.CheckConserved()
		})
	}
}

// TestFault_NotLetIn proves that a failed authentication spends nothing.
func TestFault_NotLetIn(t *testing.T) {
	faulttest.RunParallel(t)
	s, direct, proxy := behindProxy(t, redisstore.Config{})
	tr := startTraffic(t, s, direct, plainAndOthers())
	let := func(how string) { // over a connection that was authenticated before
		user := direct.B().Arbitrary("ACL", "SETUSER", "default", how).Build()
		if err := direct.Do(t.Context(), user).Error(); err != nil {
			t.Fatal(err)
		}
	}
	tr.WaitAnswers(20)
	let("off")
	proxy.CutNow()
	faulttest.Eventually(t, "nobody is let in", func() error {
		_, _, err := s.Take(t.Context(), nil, chargesOf("k"), mete.Mode{})
		if err == nil || mete.Spent(err) != mete.NotSpent || !strings.Contains(err.Error(), "NOAUTH ") {
			return fmt.Errorf("take: %w, want NOAUTH and not spent", err)
		}
		return nil
	})
	tr.WaitCalls(2)
	let("on")
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}
