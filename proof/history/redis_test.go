// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// callTimeout bounds each call to a remote store. A call that takes longer has an unknown outcome, which the model allows.
const callTimeout = time.Second

// nodes is the number of stores that share a server, each behind its own proxy.
const nodes = 2

// startRedis returns a single server, with an AOF that is written before each answer, or without persistence.
func startRedis(t testing.TB, durable bool) *world {
	w := &world{name: "redis", keys: allKeys, slotKey: "s", versions: true, slots: true, holds: true}
	var args []string
	if durable {
		w.name, args = "redis with AOF", []string{"--appendonly", "yes", "--appendfsync", "always"}
	}
	server := proctest.StartRedis(t, args...)
	var proxies []*proctest.Proxy
	var urls []string
	for range nodes {
		p := proctest.StartProxy(t, server.Addr)
		proxies, urls = append(proxies, p), append(urls, "redis://"+p.Addr)
	}
	w.openRedis(t, urls)
	w.faults = append(proxyFaults(proxies),
		fault{"no fault", quiet, func(*run) {}},
		fault{"SIGKILL", breaking, func(r *run) {
			crash := func() {
				server.Kill()
				r.awaitFailures()
				server.Restart()
			}
			if durable {
				crash()
			} else {
				r.event(wipe, 0, crash)
			}
		}},
		fault{"SIGSTOP", breaking, func(r *run) {
			server.Pause()
			r.awaitFailures()
			server.Resume()
		}},
		fault{"scripts flushed", harmless, func(r *run) { redisCommands(r, server, 8, "SCRIPT", "FLUSH", "SYNC") }},
		fault{"clients killed", breaking, func(r *run) { redisCommands(r, server, 3, "CLIENT", "KILL", "TYPE", "normal") }},
		fault{"clients paused", harmless, func(r *run) { redisCommands(r, server, 2, "CLIENT", "PAUSE", "100", "ALL") }},
	)
	return w
}

// openRedis opens a store for each URL.
func (w *world) openRedis(t testing.TB, urls []string) {
	w.open = func(t testing.TB, timeout time.Duration) (all []store.Store) {
		for _, url := range urls {
			all = append(all, openRedis(t, url, timeout))
		}
		return all
	}
	w.stores = w.open(t, callTimeout)
}

func openRedis(t testing.TB, url string, timeout time.Duration) *redisstore.Store {
	t.Helper()
	options, config, err := redisstore.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	config.Timeout = timeout
	s, err := redisstore.New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may be down by now
	return s
}

func redisCommands(r *run, server *proctest.Redis, times int, command ...string) {
	for range times {
		if _, err := server.Do(command...); err != nil {
			r.Fatal(err)
		}
		r.await(clients / 2)
	}
}

// proxyFaults break the connections of all nodes, or of one.
func proxyFaults(proxies []*proctest.Proxy) []fault {
	some := func(r *run) []*proctest.Proxy { return proxies[r.rand.IntN(len(proxies)):] }
	return []fault{
		{"answers lost", breaking, func(r *run) {
			for _, p := range some(r) {
				p.CutBeforeReply(1 + r.rand.IntN(2))
			}
			r.await(clients)
			for _, p := range proxies {
				p.CutBeforeReply(0)
			}
		}},
		{"connections cut", breaking, func(r *run) {
			for range 3 {
				for _, p := range some(r) {
					p.CutNow()
				}
				r.await(clients / 4)
			}
		}},
		{"slow connections", harmless, func(r *run) {
			for _, p := range some(r) {
				p.Delay(time.Duration(r.rand.IntN(40)) * time.Millisecond)
			}
			r.await(2 * clients)
			for _, p := range proxies {
				p.Delay(0)
			}
		}},
		{"black hole", breaking, func(r *run) {
			down := some(r)
			for _, p := range down {
				p.Blackhole(true)
			}
			r.awaitFailures()
			for _, p := range down {
				p.Blackhole(false)
			}
		}},
		{"connections refused", breaking, func(r *run) {
			for _, p := range proxies {
				p.Refuse(true)
				p.CutNow()
			}
			r.awaitFailures()
			for _, p := range proxies {
				p.Refuse(false)
			}
		}},
	}
}
