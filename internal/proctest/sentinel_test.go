// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

func TestSentinel_Failover(t *testing.T) {
	s := proctest.StartSentinel(t)
	if len(s.Addrs) != 3 || s.Addrs[2] != s.Sentinels[2].Addr {
		t.Fatalf("sentinels at %q, want 3", s.Addrs)
	}
	master, replica := s.Master(), s.Replica()
	do(t, master, "OK", "SET", "key", "value")
	do(t, master, "1", "WAIT", "1", "5000")
	do(t, replica, "value", "GET", "key")
	if _, err := replica.Do("SET", "key", "other"); err == nil || !strings.HasPrefix(err.Error(), "READONLY ") {
		t.Errorf("SET at the replica: %v, want READONLY", err)
	}
	master.Kill()
	s.WaitMaster(replica)
	do(t, replica, "OK", "SET", "key", "other")
	if s.Master() != replica || s.Replica() != master {
		t.Errorf("master %s, replica %s after the failover, want them swapped", s.Master().Addr, s.Replica().Addr)
	}
}
