// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
)

// FuzzLoad: any file is either a policy that decides requests, or a list of errors. Each error is one line and
// has an existing place.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.json", "testdata/seeds/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte(`{"slot_by": "tenant", "rules": [{"name": "r", "limit_keys": ["tenant"], "on_store_error": "local", "deadline": "20ms",
		"algorithm_config": {"rps": 1, "burst": 1, "leased": true}}]}`))
	f.Add([]byte(`{"name": "r", "limit_keys": ["path"], "algorithm": "fixed_window", "limits": [
		{"tokens": 5, "window": "1d", "start": "7h", "capacity": 9}, {"algorithm": "sliding_window", "tokens": 5, "window": "1m"},
		{"algorithm": "sliding_log", "tokens": 5, "window": "1m", "cost_source": "query:a", "max_cost": 2},
		{"algorithm": "leaky_bucket", "rps": 5, "queue": "2s", "capacity": 2}, {"algorithm": "token_bucket", "rps": 5, "burst": 20, "shards": 4},
		{"algorithm": "token_bucket", "rps": 5, "burst": 20, "leased": true},
		{"algorithm": "token_bucket", "refill": "interval", "rate": "5/10s", "burst": "1m", "anchor": "key"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := policy.Load(data, policy.Options{HashKey: []byte("k"), Now: time.Unix(1, 0)})
		if (m == nil) == (err == nil) {
			t.Fatalf("Load = %v, %v", m, err)
		}
		if err == nil {
			attrs := policy.Map{"ip:address": "::1", "path": "/", "header:x-api-key": "k", "query:a": "1e5"}
			for _, attrs := range []policy.Attributes{nil, attrs} {
				matches, _ := m.Match(nil, attrs, 0, 0)
				if len(matches) > policy.MaxMatches {
					t.Errorf("%d matches", len(matches))
				}
				for _, match := range matches {
					if match.Cost <= 0 || match.Key == "" || len(match.Key) > policy.MaxKeyBytes {
						t.Errorf("match %+v", match)
					}
				}
			}
			return
		}
		var es policy.Errors
		if !errors.As(err, &es) {
			t.Fatalf("error %v is no Errors", err)
		}
		for _, e := range es {
			if strings.Contains(e.Error(), "\n") || e.Reason == "" {
				t.Errorf("error %q", e)
			}
			// Of fields that are given twice encoding/json knows the last only.
			if !strings.Contains(err.Error(), "given twice") && json.Valid(data) && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) && !resolves(data, e.Path) {
				t.Errorf("%v: nothing stands at %q", e, e.Path)
			}
		}
	})
}
