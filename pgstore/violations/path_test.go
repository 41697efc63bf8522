// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore/internal/impostors"
	"github.com/metehq/mete/pgstore/violations"
)

// TestSearchPath puts a schema with copies of PostgreSQL's functions, operators and types before pg_catalog. No
// statement of the package, and no trigger, function or constraint of its table, calls a copy.
func TestSearchPath(t *testing.T) {
	server := proctest.StartPostgres(t)
	impostors.Install(t, server.Psql)
	d := migrated(t, server.URL(), "mete")
	var keys [2]string
	for i := range keys { // the first call creates the secret
		key, err := violations.DeriveKey(t.Context(), d.pool, d.schema)
		if err != nil {
			t.Error(err)
		}
		keys[i] = string(key)
	}
	if keys[0] != keys[1] {
		t.Error("the second key is another than the first")
	}
	for _, now := range []func() bucket.Instant{nil, func() bucket.Instant { return bucket.At(time.Now()) }} {
		log := new(testkit.Log)
		r := d.recorder(func(c *violations.Config) { c.Logger, c.Now, c.Timeout = log.Logger(), now, patience })
		attributes := mete.Attrs{"jwt:sub": "alice", "ip:address": "192.0.2.7", "method": "GET", "path": "/a"}
		r.Record(t.Context(), denial("free", "free:a", attributes))
		r.Record(t.Context(), shadowed("free", "free:a", attributes))
		testkit.Eventually(t, "the database and its recorder", func() error { // maintenance precedes the first write
			if s := r.Stats(); s.Waiting != 0 && !strings.Contains(log.String(), "impostor") {
				return fmt.Errorf("%d denials wait to be written: %+v", s.Waiting, s)
			}
			return nil
		})
		if strings.Contains(log.String(), "impostor") {
			t.Errorf("log:\n%s", log)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	r, err := violations.NewReader(d.pool, violations.Config{Schema: d.schema, Key: hashKey, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	since, until := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, q := range map[string]violations.Query{
		"all":            {},
		"rule":           {Rule: "free"},
		"reason":         {Reason: "token_bucket_exceeded"},
		"key":            {Key: "free:a"},
		"user":           {User: "alice"},
		"network":        {Network: netip.MustParsePrefix("192.0.0.0/16")},
		"endpoint":       {Endpoint: "GET /"},
		"path":           {Endpoint: "/a"},
		"enforced":       {Mode: violations.ModeEnforced},
		"in shadow":      {Mode: violations.ModeShadow},
		"after":          {After: violations.Position{At: until, ID: 1}},
		"all of it":      {Rule: "free", Reason: "token_bucket_exceeded", Key: "free:a", User: "alice", Endpoint: "/a"},
		"limited to one": {Limit: 1},
	} {
		q.Since, q.Until = since, until
		list, err := r.List(t.Context(), q)
		if err != nil || len(list) == 0 {
			t.Errorf("%s: %d rows, %v", name, len(list), err)
		}
		s, err := r.Summarize(t.Context(), q)
		if err != nil || s.Rows == 0 || len(s.Rules) != 1 || len(s.Keys) != 1 || len(s.Users) != 1 || len(s.Networks) != 1 || len(s.Endpoints) != 1 || len(s.Hours) == 0 {
			t.Errorf("%s: summary %+v, %v", name, s, err)
		}
		h, err := r.Histogram(t.Context(), q)
		if err != nil || h.Rules != 1 || h.Rows == 0 {
			t.Errorf("%s: histogram %+v, %v", name, h, err)
		}
	}
	more := "INSERT INTO mete.rate_limit_violation (bucket_key, rule_name) VALUES ('k', 'a'), ('k', 'b'), ('k', 'c'), ('k', 'd'), ('k', 'e'), ('k', 'f')"
	if text, err := server.Psql(more); err != nil {
		t.Fatalf("%s, %v", text, err)
	}
	h, err := r.Histogram(t.Context(), violations.Query{Since: since, Until: until})
	if err != nil || h.Rules != 7 || len(h.Series) != 6 || h.Series[5].Rule != violations.Others {
		t.Errorf("more rules than series: histogram %+v, %v", h, err)
	}
}
