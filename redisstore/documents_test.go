// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	one := connect(t, proctest.StartRedis(t).Addr)
	cluster := connect(t, proctest.StartCluster(t, 3, 0).Addrs...)
	sentinel := proctest.StartSentinel(t)
	watched, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: sentinel.Addrs, DisableCache: true,
		Sentinel: rueidis.SentinelOption{MasterSet: sentinel.MasterName},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watched.Close)
	for name, client := range map[string]rueidis.Client{"one server": one, "cluster": cluster, "sentinel": watched} {
		t.Run(name, func(t *testing.T) {
			storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
				prefix := fmt.Sprintf("documents%d:", stores.Add(1))
				return func() store.Documents { return openAt(t, client, prefix) }
			})
		})
	}
}

func openAt(t *testing.T, client rueidis.Client, prefix string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client, redisstore.Config{Prefix: prefix, Timeout: awhile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestDocuments_Garbage proves that an invalid document is an error and is not overwritten.
func TestDocuments_Garbage(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s, key := openAt(t, client, "p:"), "p:doc:a"
	for _, garbage := range []string{"", "text", "0\ntext", "-1\ntext", "1", "x\ntext"} {
		if err := client.Do(t.Context(), client.B().Set().Key(key).Value(garbage).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Document(t.Context(), "a", 0); err == nil || !strings.Contains(err.Error(), "has no valid revision") {
			t.Errorf("Document where Redis has %q: %v, want an error", garbage, err)
		}
	}
	if err := client.Do(t.Context(), client.B().Del().Key(key).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), client.B().Lpush().Key(key).Element("x").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Document(t.Context(), "a", 0); err == nil {
		t.Error("a list is read as a document")
	}
	if _, err := s.SetDocument(t.Context(), "a", nil, 0); err == nil {
		t.Error("a list is written over")
	}
}

// TestDocuments_Lost proves that a document gets a different revision if it is lost and created again.
func TestDocuments_Lost(t *testing.T) {
	r := proctest.StartRedis(t)
	s := open(t, connect(t, r.Addr), redisstore.Config{})
	first, err := s.SetDocument(t.Context(), "a", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	if data, revision, err := s.Document(t.Context(), "a", first); data != nil || revision != 0 || err != nil {
		t.Errorf("after the loss: %q, revision %d, %v; want nothing", data, revision, err)
	}
	if second, err := s.SetDocument(t.Context(), "a", []byte("two"), 0); err != nil || second <= first {
		t.Errorf("made again: revision %d, %v; want one above %d", second, err, first)
	}
}
