// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	sentinels       = 3
	sentinelTimeout = 30 * time.Second

	masterName = "mete"
)

// sentinelConfig has the ports of the sentinel and the master. A master is down after 1 s of silence, if two
// sentinels agree.
const sentinelConfig = `port %s
bind 127.0.0.1
sentinel monitor ` + masterName + ` 127.0.0.1 %s 2
sentinel down-after-milliseconds ` + masterName + ` 1000
sentinel failover-timeout ` + masterName + ` 3000
`

// A Sentinel is a Redis master with a replica and three sentinels, which replace a failed master with the
// replica. Only the test's goroutine may call its methods.
type Sentinel struct {
	MasterName string
	Addrs      []string // of the sentinels
	Sentinels  []*Redis

	t       testing.TB
	servers [2]*Redis // the first master, the first replica
}

// StartSentinel starts all five processes and waits until the replica follows the master, and the sentinels
// know both servers and each other. The args go to the two servers. A silent master counts as down after 1 s.
func StartSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	s := &Sentinel{MasterName: masterName, t: t}
	master := StartRedis(t, args...)
	replica := StartRedis(t, append([]string{"--replicaof", "127.0.0.1 " + portOf(master.Addr)}, args...)...)
	s.servers = [2]*Redis{master, replica}
	s.waitUntil("the replica follows the master", func() error { return checkReplica(replica) })
	for range sentinels {
		addr := FreeAddr(t)
		config := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf(sentinelConfig, portOf(addr), portOf(master.Addr))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		watcher := launchRedis(t, addr, nil, []string{config, "--sentinel"})
		watcher.waitReady()
		s.Sentinels = append(s.Sentinels, watcher)
		s.Addrs = append(s.Addrs, addr)
	}
	s.waitUntil("the sentinels agree", s.checkAgreement)
	return s
}

// Master returns the server that the sentinels name as master. The test fails if they disagree.
func (s *Sentinel) Master() *Redis {
	s.t.Helper()
	master, err := s.master()
	if err != nil {
		s.t.Fatal(err)
	}
	return master
}

// Replica returns the server that is not [Sentinel.Master]. It may be dead.
func (s *Sentinel) Replica() *Redis {
	s.t.Helper()
	if s.Master() == s.servers[0] {
		return s.servers[1]
	}
	return s.servers[0]
}

// WaitMaster waits until all sentinels that answer name this server, and it is a master.
func (s *Sentinel) WaitMaster(r *Redis) {
	s.t.Helper()
	s.waitUntil(r.Addr+" is master", func() error {
		master, err := s.master()
		if err != nil {
			return err
		}
		if master != r {
			return fmt.Errorf("the master is %s", master.Addr)
		}
		info, err := r.Do("INFO", "replication")
		if err == nil && !strings.Contains(info, "role:master") {
			err = fmt.Errorf("%s says %q", r.Addr, info)
		}
		return err
	})
}

func (s *Sentinel) waitUntil(what string, check func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), sentinelTimeout)
	defer cancel()
	if err := Poll(ctx, func(context.Context) error { return check() }); err != nil {
		s.t.Fatalf("waiting until %s: %v", what, err)
	}
}

func (s *Sentinel) master() (*Redis, error) {
	addr := ""
	for _, watcher := range s.Sentinels {
		if !watcher.Process.isRunning() {
			continue
		}
		reply, err := watcher.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		if err != nil {
			return nil, err
		}
		if addr != "" && reply != addr {
			return nil, fmt.Errorf("sentinels name %q and %q as master", addr, reply)
		}
		addr = reply
	}
	for _, server := range s.servers {
		if strings.ReplaceAll(addr, "\n", ":") == server.Addr {
			return server, nil
		}
	}
	return nil, fmt.Errorf("sentinels name %q as master", addr)
}

// checkAgreement returns an error unless every sentinel knows the two others and a healthy replica.
func (s *Sentinel) checkAgreement() error {
	for _, watcher := range s.Sentinels {
		master, err := watcher.Do("SENTINEL", "MASTER", masterName)
		if err != nil {
			return err
		}
		replicas, err := watcher.Do("SENTINEL", "REPLICAS", masterName)
		if err != nil {
			return err
		}
		for _, want := range []struct{ text, fact string }{
			{master, "flags\nmaster\n"},
			{master, fmt.Sprintf("num-other-sentinels\n%d\n", sentinels-1)},
			{master, "num-slaves\n1\n"},
			{replicas, "flags\nslave\n"},
			{replicas, "master-link-status\nok\n"},
		} {
			if !strings.Contains(want.text, want.fact) {
				return fmt.Errorf("sentinel %s reports %q, want %q in it", watcher.Addr, want.text, want.fact)
			}
		}
		if _, err := watcher.Do("SENTINEL", "CKQUORUM", masterName); err != nil {
			return err
		}
	}
	_, err := s.master()
	return err
}
