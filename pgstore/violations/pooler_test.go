// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/violations"
)

// TestRecorder_BehindAPooler proves that no session is needed: each transaction can use a different one.
func TestRecorder_BehindAPooler(t *testing.T) {
	server := proctest.StartPostgres(t)
	pooler := proctest.StartPgBouncer(t, server.URL())
	d := migrated(t, pooler.URL(), "mete")
	key, err := violations.DeriveKey(t.Context(), d.pool, "mete")
	if err != nil {
		t.Fatal(err)
	}
	const nodes, each = 4, 300
	var wg sync.WaitGroup
	var all []*violations.Recorder
	for range nodes {
		r := d.recorder(func(c *violations.Config) { c.Key = key })
		all = append(all, r)
		wg.Go(func() {
			for i := range each {
				r.Record(t.Context(), denial("free", fmt.Sprint("key ", i%50), mete.Attrs{"jwt:sub": "alice"}))
			}
		})
	}
	wg.Wait()
	for _, r := range all {
		if s := settle(t, r); s.Written != each || s.Failed != 0 {
			t.Errorf("stats %+v, want %d written and no failure", s, each)
		}
	}
	reader, err := violations.NewReader(d.pool, violations.Config{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		s, err := reader.Summarize(t.Context(), violations.Query{User: "alice"})
		if err != nil || s.Denials != nodes*each {
			t.Fatalf("%d denials, %v; want %d", s.Denials, err, nodes*each)
		}
		if rows, err := reader.List(t.Context(), violations.Query{Key: "key 1", Limit: 1}); err != nil || len(rows) != 1 {
			t.Fatalf("%d rows of a key, %v; want 1", len(rows), err)
		}
	}
}

// TestDeriveKey proves that concurrent callers get the same key, and that other schemas have other keys.
func TestDeriveKey(t *testing.T) {
	d, other := newDatabase(t), newDatabase(t)
	keys := make([]string, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			key, err := violations.DeriveKey(t.Context(), d.pool, d.schema)
			if err != nil {
				t.Error(err)
			}
			keys[i] = string(key)
		})
	}
	wg.Wait()
	for i, key := range keys {
		if key != keys[0] || len(key) != 32 {
			t.Errorf("key %d: %x, want %x as the first", i, key, keys[0])
		}
	}
	if key, err := violations.DeriveKey(t.Context(), other.pool, other.schema); err != nil || string(key) == keys[0] {
		t.Errorf("another schema: %x, %v; want another key", key, err)
	}
	if _, err := violations.DeriveKey(t.Context(), d.pool, "nobody made this"); err == nil {
		t.Error("without a schema: no error")
	}
}
