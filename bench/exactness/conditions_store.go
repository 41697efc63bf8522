// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/bench/exactness/judge"
	"github.com/metehq/mete/internal/proctest"
)

// startStore starts the contender's store, if it has one, with the machine's clock.
func (r *run) startStore() { r.startServer() }

// A server is a Redis or a PostgreSQL.
type server interface {
	Kill()
	Restart()
}

// startServer starts the store with arguments for Redis.
func (r *run) startServer(redisArgs ...string) (s server, addr string) {
	r.clock.Start(func() {
		switch r.c.Place {
		case Redis:
			redis := proctest.StartRedis(r.t, redisArgs...)
			r.setup.Redis = redis.Addr
			s, addr = redis, redis.Addr
		case Postgres:
			postgres := proctest.StartPostgres(r.t)
			r.setup.Postgres = postgres.URL()
			s, addr = postgres, postgres.Addr
		}
	})
	return s, addr
}

func runFailover(r *run) {
	var s *proctest.Sentinel
	r.clock.Start(func() { s = proctest.StartSentinel(r.t) })
	r.setup.Sentinels, r.setup.Master = s.Addrs, s.MasterName
	n := r.start(r.clock)
	r.take(n, "before") // the contender has connected and loaded its scripts
	master, replica := s.Master(), s.Replica()
	replica.Pause()
	// Otherwise the replica would read the writes from its socket after the death of the master.
	if _, err := master.Do("CLIENT", "KILL", "TYPE", "replica"); err != nil {
		r.t.Fatal(err)
	}
	for range 15 {
		r.take(n, "k")
		r.pause(40 * time.Millisecond)
	}
	master.Kill()
	replica.Resume()
	s.WaitMaster(replica)
	if !r.untilAnswered(n) {
		return
	}
	for range 25 {
		r.take(n, "k")
		r.pause(20 * time.Millisecond)
	}
	r.probeNew(n, 1, "alone")
}

// untilAnswered waits until the contender reaches the store again, and reports whether it does. Its clients need a while
// after a failure.
func (r *run) untilAnswered(n Node) bool {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if outcome, _ := r.take(n, "after"); outcome != judge.Failed {
			return true
		}
	}
	r.t.Log("the contender does not reach the store again within a minute")
	r.cell.Reason = lostStore
	return false
}

func runKilled(r *run) {
	s, addr := r.startServer("--appendonly", "yes", "--appendfsync", "always")
	proxy := proctest.StartProxy(r.t, addr)
	r.setup.Redis = strings.Replace(r.setup.Redis, addr, proxy.Addr, 1)
	r.setup.Postgres = strings.Replace(r.setup.Postgres, addr, proxy.Addr, 1)
	n := r.start(r.clock)
	r.take(n, "before")
	for range 15 {
		r.take(n, "spent")
	}
	for range 4 {
		proxy.CutBeforeReply(1)
		r.take(n, "k")
		proxy.CutBeforeReply(0)
		r.take(n, "other") // reconnects
	}
	proxy.Delay(50 * time.Millisecond) // so that the store dies in a call
	var calls sync.WaitGroup
	calls.Go(func() { r.take(n, "k") })
	time.Sleep(25 * time.Millisecond)
	s.Kill()
	proxy.CutNow()
	proxy.Delay(0)
	r.clock.Start(s.Restart)
	calls.Wait()
	if !r.untilAnswered(n) {
		return
	}
	for range 25 {
		r.take(n, "k")
		r.take(n, "spent")
		r.pause(20 * time.Millisecond)
	}
	r.probeNew(n, 1, "alone")
}

const (
	// boundedKeys is the bound on keys in memory, of contenders that have one.
	boundedKeys = 1000

	redisFlood    = 20_000
	redisHeadroom = 1 << 20 // of memory for keys, in bytes
)

func runEviction(r *run) {
	r.setup.MaxKeys = boundedKeys
	flood := r.c.Flood
	s, _ := r.startServer("--maxmemory-policy", "allkeys-lru")
	n := r.start(r.clock)
	for range 15 {
		r.take(n, "victim")
	}
	if redis, ok := s.(*proctest.Redis); ok {
		flood = redisFlood
		r.boundMemory(redis)
	}
	const floods = 8 // callers; the memory of more connections would fill the headroom
	var all sync.WaitGroup
	for g := range floods {
		all.Go(func() {
			for i := g; i < flood; i += floods {
				r.take(n, fmt.Sprint("flood:", i))
			}
		})
	}
	all.Wait()
	// For longer than a contender may remember denials outside of its store.
	for range 30 {
		r.take(n, "victim")
		r.pause(100 * time.Millisecond)
	}
}

func (r *run) boundMemory(redis *proctest.Redis) {
	r.t.Helper()
	info, err := redis.Do("INFO", "memory")
	if err != nil {
		r.t.Fatal(err)
	}
	_, text, _ := strings.Cut(info, "used_memory:")
	text, _, _ = strings.Cut(text, "\r")
	used, err := strconv.Atoi(text)
	if err != nil {
		r.t.Fatalf("used_memory: %v", err)
	}
	if _, err := redis.Do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+redisHeadroom)); err != nil {
		r.t.Fatal(err)
	}
}
