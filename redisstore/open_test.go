// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// spend takes all tokens of a bucket and checks that it is empty.
func spend(t *testing.T, s mete.Store, key string) {
	t.Helper()
	l, err := bucket.NewLimit(3*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c := []store.Charge{{Key: key, Limit: l, Cost: 3 * bucket.Token}}
	for _, want := range []bool{true, false} {
		if _, allowed, err := s.Take(t.Context(), nil, c, mete.Mode{}); err != nil || allowed != want {
			t.Fatalf("take of %s: allowed %v, %v; want %v", key, allowed, err, want)
		}
	}
}

// openURL opens a store and closes it at the end of the test.
func openURL(t *testing.T, raw string) *redisstore.Node {
	t.Helper()
	n, err := redisstore.Open(t.Context(), raw)
	if err != nil {
		t.Fatalf("Open(%q): %v", raw, err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// refused opens a URL that must be rejected, and not just time out.
func refused(t *testing.T, raw string) (err error) {
	t.Helper()
	for range 20 {
		var n *redisstore.Node
		if n, err = redisstore.Open(t.Context(), raw); err == nil {
			n.Close()
		}
		if !errors.Is(err, store.ErrUnavailable) {
			break
		}
	}
	return err
}

func TestOpen(t *testing.T) {
	r := proctest.StartRedis(t)
	n := openURL(t, "redis://"+r.Addr+"/2?prefix=p:&timeout=2s")
	spend(t, n, "rule:k")
	if keys, err := r.Do("EVAL", "redis.call('SELECT', 2) return redis.call('KEYS', '*')", "0"); err != nil || !strings.Contains(keys, "p:tb:rule:k") {
		t.Errorf("keys in database 2: %q, %v; want p:tb:rule:k", keys, err)
	}
	if got := n.Nodes(); got != 1 {
		t.Errorf("Nodes() = %d, want 1", got)
	}
}

func TestOpen_Socket(t *testing.T) {
	// The path of a socket must be short.
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	proctest.StartRedis(t, "--unixsocket", socket)
	spend(t, openURL(t, "redis+unix://"+socket+"?db=1"), "rule:k")
}

func TestOpen_TLS(t *testing.T) {
	r, files := tlsRedis(t)
	good := url.Values{"ca": {files.cert}, "cert": {files.cert}, "key": {files.key}}
	spend(t, openURL(t, "rediss://"+r.Addr+"?"+good.Encode()), "rule:k")

	for _, tt := range []struct{ raw, want string }{
		{"rediss://" + r.Addr, "certificate"},
		{"rediss://" + r.Addr + "?ca=" + files.cert, ""}, // and without a client certificate
		{"rediss://" + r.Addr + "?server_name=other.example&" + good.Encode(), "other.example"},
	} {
		if err := refused(t, tt.raw); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Open(%q): %v; want an error with %q", tt.raw, err, tt.want)
		}
	}
}

func TestOpen_Sentinel(t *testing.T) {
	t.Parallel()
	s := proctest.StartSentinel(t)
	hosts := strings.Join(s.Addrs, ",")
	spend(t, openURL(t, "redis+sentinel://"+hosts+"/"+s.MasterName+"?timeout=1m"), "rule:k")
	if got, err := s.Master().Do("EXISTS", redisstore.DefaultPrefix+"tb:rule:k"); err != nil || got != "1" {
		t.Errorf("the master has the key: %q, %v", got, err)
	}
	for _, tt := range []struct{ raw, want string }{
		{"redis://" + s.Addrs[0], "the server is a Sentinel"},
		{"redis://" + s.Replica().Addr, "rejects writes"},
		{"redis+cluster://" + s.Master().Addr, "not a cluster node"},
	} {
		if err := refused(t, tt.raw); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Open(%q): %v, want an error with %q", tt.raw, err, tt.want)
		}
	}
	if _, err := redisstore.Open(t.Context(), "redis+sentinel://"+hosts+"/another"); err == nil {
		t.Error("a master that sentinels do not know: no error")
	}
}

func TestOpen_Cluster(t *testing.T) {
	t.Parallel()
	c := proctest.StartCluster(t, 3, 0)
	n := openURL(t, "redis+cluster://"+c.Addrs[0]+","+c.Addrs[1]+"?timeout=1m")
	for _, key := range []string{"rule:a", "rule:b", "rule:c", "rule:d"} {
		spend(t, n, key)
	}
	if err := refused(t, "redis://"+c.Addrs[0]); err == nil || !strings.Contains(err.Error(), "redis+cluster://") {
		t.Errorf("a node by itself: %v, want what to write instead", err)
	}
}

// TestOpen_Fails proves that errors distinguish an unavailable server from a rejection, and contain no password.
func TestOpen_Fails(t *testing.T) {
	r := proctest.StartRedis(t)
	if _, err := r.Do("CONFIG", "SET", "requirepass", "right"); err != nil {
		t.Fatal(err)
	}
	silent := proctest.StartProxy(t, r.Addr)
	silent.Blackhole(true)
	nowhere := proctest.FreeAddr(t)
	for _, tt := range []struct {
		raw  string
		want string
		down bool
	}{
		{"redis://" + nowhere, "refused", true},
		{"redis+sentinel://" + nowhere + "/m", "refused", true},
		{"redis+cluster://" + nowhere, "refused", true},
		{"redis://:secret@" + silent.Addr, "", true},
		{"redis+unix:///does/not/exist", "no such file", true},
		{"redis://" + r.Addr, "NOAUTH", false},
		{"redis://:secret@" + r.Addr, "WRONGPASS", false},
		{"redis://u:secret@" + r.Addr, "WRONGPASS", false},
		{"redis://:right@" + r.Addr + "/99", "out of range", false},
	} {
		var err error
		if !tt.down {
			err = refused(t, tt.raw)
		} else {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err = redisstore.Open(ctx, tt.raw)
			cancel()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): %v, want an error with %q and no secret", tt.raw, err, tt.want)
		}
		if errors.Is(err, store.ErrUnavailable) != tt.down {
			t.Errorf("Open(%q): %v: unavailable %v, want %v", tt.raw, err, !tt.down, tt.down)
		}
	}
}
