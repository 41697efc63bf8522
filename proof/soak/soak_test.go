// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// A world is all that one soak is made of. Clients use it concurrently.
type world struct {
	t        *testing.T
	schedule schedule
	redis    *proctest.Redis
	upstream *upstream
	gateway  *server
	api      *server
	policy   *policyFile

	books   *books
	wrongs  *failures
	outages outages
	tally   tally

	gate    sync.RWMutex // clients hold it while they ask; a quiet moment takes it from all
	leaving atomic.Bool  // the servers were told to end: connections may be refused
	stop    context.CancelFunc
}

func TestSoak(t *testing.T) {
	w := newWorld(t)
	w.schedule.began = time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.stop = cancel

	var clients sync.WaitGroup
	for _, run := range w.clients() {
		clients.Go(func() { run(ctx) })
	}
	var keepers sync.WaitGroup
	keeping, done := context.WithTimeout(ctx, w.schedule.total)
	defer done()
	for _, run := range []func(context.Context){w.changePolicies, w.breakStore, w.watchHeap, w.quietPeriodically, w.tell} {
		keepers.Go(func() { run(keeping) })
	}
	keepers.Wait()
	if ctx.Err() == nil {
		w.quiet()
		w.compareUpstream()
	}
	w.end(cancel, &clients)
	w.checkResults()
}

// newWorld starts everything.
func newWorld(t *testing.T) *world {
	w := &world{t: t, schedule: newSchedule(t), books: newBooks(), upstream: newUpstream(t)}
	w.wrongs = &failures{enough: func() { w.stop() }, tell: t.Logf}
	w.redis = proctest.StartRedis(t)
	w.policy = newPolicyFile(t)
	config := fmt.Sprintf("policy: %s\nstore: \"redis://%s?prefix=soak:&timeout=5s\"\nhash_key: soak\n"+
		"reload_interval: 500ms\ntimeouts: {notice: 1s}\n", w.policy.path, w.redis.Addr)
	w.gateway = startServer(t, "gateway", config+"upstream: "+w.upstream.URL+"\n")
	w.api = startServer(t, "api", config)
	return w
}

// A server is one of the two servers with its observations.
type server struct {
	*meted.Server
	name   string
	token  string   // of the admin API
	vitals []vitals // at quiet moments
	heap   []float64
}

func startServer(t *testing.T, name, config string) *server {
	t.Helper()
	s := meted.Start(t, config)
	return &server{Server: s, name: name, token: s.Token()}
}

func (w *world) servers() []*server { return []*server{w.gateway, w.api} }

// end tells both servers to end while clients still ask.
func (w *world) end(cancel context.CancelFunc, clients *sync.WaitGroup) {
	w.leaving.Store(true)
	for _, s := range w.servers() {
		s.Process.Signal(syscall.SIGTERM)
	}
	for _, s := range w.servers() {
		select {
		case <-s.Process.Done():
		case <-time.After(meted.Patience):
			w.wrongs.add("%s has not ended %v after SIGTERM", s.name, meted.Patience)
		}
	}
	cancel()
	clients.Wait()
	for _, s := range w.servers() {
		if err := s.Process.Stop(); err != nil {
			w.wrongs.add("%s ended with %v, want status 0", s.name, err)
		}
	}
}

// checkResults checks all observations, and reports errors and totals.
func (w *world) checkResults() {
	w.books.check(&w.outages, w.policy.raises(), w.wrongs)
	for _, s := range w.servers() {
		s.checkVitals(w.wrongs)
		s.checkHeap(w.wrongs)
		checkLog(s, w.wrongs)
		w.t.Logf("%s", s.summary())
	}
	w.t.Logf("%s", w.tally.String())
	w.t.Logf("%d grants in %d buckets; %d policies, %d of them broken; the store was lost %d times",
		w.books.grants(), w.books.size(), w.policy.written, w.policy.broken, w.outages.count())
	for _, wrong := range w.wrongs.list() {
		w.t.Error(wrong)
	}
}

// policyDir makes a directory that outlives no test.
func policyDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policy")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
